// The rules with their figures, and the last minutes as small charts: granted beside contended, and what was refused
// (enforce) beside what would have been (observe).

import { chart } from "./charts.js";
import { count, counted, el, measured, memo, mode, name, plain, span, sum } from "./draw.js";
import { ask } from "./live.js";
import { figures } from "./locks.js";

const SERIES = ["granted", "contended", "refused", "would_refuse"];

function legend(series) {
  return el("ul", { class: "legend" }, series.map((one) => el("li", null,
    el("span", { class: `swatch ${one.kind}`, "aria-hidden": "true" }), `${count(sum(one.values))} ${one.words}`)));
}

function charts(recent) {
  const series = (words, kind, values) => ({ words, kind, values: values ?? [] });
  const block = (title, list) => el("figure", { class: "small-chart" }, el("figcaption", { text: title }), legend(list), chart(recent, list));
  return [
    block("Acquires", [series("granted", "granted", recent.granted), series("contended", "contended", recent.contended)]),
    block("Refusals: enforce beside observe", [series("refused", "refused", recent.refused), series("would be refused", "would", recent.would_refuse)]),
  ];
}

/** The charts of several rules as one. */
function together(rules) {
  const first = rules[0].recent;
  const added = (field) => rules.reduce((total, rule) => (rule.recent[field] ?? []).map((value, index) => value + (total[index] ?? 0)), []);
  return { step_ms: first.step_ms, start_ms: first.start_ms, ...Object.fromEntries(SERIES.map((field) => [field, added(field)])) };
}

function settings(rule) {
  const said = [];
  if (rule.mode === "off") return "These keys are left alone, and nothing is counted.";
  if (rule.owner.length) said.push(`owner = ${rule.owner.join(" + ")}`);
  if (rule.default_ttl_ms) said.push(`default TTL ${span(rule.default_ttl_ms)}`);
  if (rule.max_ttl_ms) said.push(`longest TTL ${span(rule.max_ttl_ms)}`);
  said.push(rule.late_release_window_ms ? `late releases for ${span(rule.late_release_window_ms)}` : "no late releases");
  if (rule.renew) said.push("renewed");
  if (rule.release_on_disconnect) said.push("released on disconnect");
  return said.join(" · ");
}

function facts(rule) {
  const some = (spread, field) => (spread.count ? measured(spread[field]) : "–");
  const grave = (number) => ({ number, weight: number ? "grave" : "" });
  return [
    ["Held", rule.held], ["Waiting", rule.waiters],
    ["Without TTL", { number: rule.without_ttl, weight: rule.without_ttl ? "mild" : "" }],
    ["Oldest", rule.held ? span(rule.oldest_age_ms) : "–"],
    ["Hold p50", some(rule.hold, "p50_ms")], ["Hold p99", some(rule.hold, "p99_ms")],
    ["Wait p95", some(rule.wait, "p95_ms")], ["Expired", rule.totals.expired],
    ["Late", grave(rule.totals.late)], ["Foreign", grave(rule.totals.foreign)], ["Overlaps", grave(rule.totals.overlaps)],
    ["Granted", rule.totals.granted],
  ];
}

function card() {
  const heading = el("div", { class: "card-head" });
  const pairs = el("dl", { class: "facts" });
  const drawings = el("div", { class: "chart-pair" });
  const node = el("article", { class: "panel card" }, heading, drawings, pairs);
  const drawHead = memo(heading, (rule) => [
    el("h2", null, el("a", { href: `#/locks?${new URLSearchParams({ rule: rule.name })}`, title: "The locks of this rule" }, name(rule.name))), mode(rule.mode),
    !rule.matched && rule.mode !== "off" && el("span", { class: "tag mild", title: "no key has matched it since the start", text: "matched nothing yet" }),
    el("p", { class: "patterns" }, rule.patterns.slice(0, 6).map((pattern) => el("code", null, name(pattern, 80))),
      rule.patterns.length > 6 && el("span", { class: "quiet", title: plain(rule.patterns.join(" ")), text: ` and ${rule.patterns.length - 6} more` })),
    el("p", { class: "quiet", text: plain(rule.said) })]);
  const drawPairs = memo(pairs, (list) => list.map(([words, value]) => {
    const { number, weight } = value?.weight === undefined ? { number: value } : value;
    return el("div", null, el("dt", { text: words }), el("dd", { class: weight || null, text: typeof number === "number" ? count(number) : number }));
  }));
  const drawCharts = memo(drawings, charts);
  return {
    node,
    show(rule) {
      drawHead({ name: rule.name, mode: rule.mode, matched: rule.matched, patterns: rule.patterns, said: settings(rule) });
      drawPairs(facts(rule));
      drawings.hidden = pairs.hidden = rule.mode === "off";
      drawCharts(rule.recent);
    },
  };
}

/** The view of all rules. */
export function rules(main, frame) {
  const summary = figures();
  const whole = el("div", { class: "chart-pair" });
  const all = el("section", { class: "panel whole", "aria-labelledby": "whole-head" }, el("h2", { id: "whole-head", text: "All rules" }), whole);
  const grid = el("div", { class: "cards" });
  const note = el("p", { class: "empty", text: "Reading the rules …" });
  const known = new Map();
  let heard = false;
  let left = false;
  main.append(el("h1", { class: "unseen-caption", text: "Rules" }), summary.node, all, grid, note);
  all.hidden = true;
  const drawWhole = memo(whole, charts);

  function hear(snapshot) {
    heard = true;
    summary.show(snapshot);
    const list = snapshot.rules;
    // Rules have a place, and two may have one name.
    list.forEach((rule, index) => {
      if (!known.has(index)) {
        known.set(index, card());
        grid.append(known.get(index).node);
      }
      known.get(index).show(rule);
    });
    for (const [index, one] of known) {
      if (index < list.length) continue;
      one.node.remove();
      known.delete(index);
    }
    all.hidden = list.length < 2;
    if (list.length) drawWhole(together(list));
    note.hidden = list.length > 0;
    note.textContent = "There is no rule, so no key is a lock.";
    frame.title(counted(list.length, "rule"));
  }

  /** Opened while paused: the rules as they are now, once. */
  async function once() {
    try {
      const [table, list] = await Promise.all([ask("api/v1/locks?limit=1"), ask("api/v1/rules")]);
      if (!heard && !left) hear({ table, rules: list });
    } catch (error) {
      if (!heard && !left) note.textContent = `The rules could not be read: ${plain(error.message)}.`;
    }
  }

  frame.watch(hear);
  if (frame.isPaused()) once();
  return { leave: () => { left = true; } };
}
