// One lock: who holds it, who waits, what the server says, and what happened lately. Asks again every second and
// whenever the event stream tells of this lock.

import {
  bar, client, clock, copier, count, counted, database, el, measured, memo, mode, moment, name, owner, plain, say, span, ttlLeft,
  warning,
} from "./draw.js";
import { ask, path } from "./live.js";
import { stateWords } from "./records.js";
import { releaser } from "./release.js";
import { timeline } from "./timeline.js";

const EVERY_MS = 1000;
const SOONEST_MS = 200;
const ANSWER_LIMIT_MS = 8000;
const HISTORY_ROWS = 200;
/** Fields that change by the passing of time alone. */
const PASSING = ["held_ms", "ttl_left_ms", "waited_ms"];

const EVENTS = {
  acquired: ["acquired", "good"],
  contended: ["contended", ""],
  acquire_failed: ["acquire failed", "mild"],
  released: ["released", "good"],
  late_release: ["late release", "grave"],
  foreign_release: ["foreign release", "grave"],
  absent_release: ["release of nothing", ""],
  refused: ["refused", "grave"],
  extended: ["extended", ""],
  overwritten: ["overwritten", ""],
  taken_over: ["taken over", "grave"],
  expired: ["expired", "mild"],
  ended: ["ended", ""],
  renewed: ["renewed", ""],
  renewal_lost: ["renewal lost", "mild"],
  renewal_capped: ["renewal capped", "mild"],
  debts_dropped: ["debts dropped", "mild"],
};

/** A pattern for the event stream that matches this key, and perhaps a few others: a key may be no text, and long. */
function patternFor(encoded) {
  const bytes = encoded.match(/%[0-9A-F]{2}|./gi) ?? [];
  const part = bytes.slice(0, 250).map((byte) => (/^[A-Za-z0-9:_-]$/.test(byte) ? byte : "?"));
  // A pattern needs a wildcard, or it would match wherever the key is part of another.
  if (part.length) part[0] = "?";
  return part.join("") + (bytes.length > 250 || !part.length ? "*" : "");
}

function pair(words, ...values) {
  return el("div", null, el("dt", { text: words }), el("dd", null, ...values));
}

// ---- sections

/** The holder. `tick(now)` moves its ages. */
function holder() {
  const node = el("section", { class: "panel holder", "aria-labelledby": "holder-head" });
  const inside = el("div");
  node.append(el("h2", { id: "holder-head", text: "Holder" }), inside);
  let lease = null;
  const age = el("span");
  const left = el("span", { class: "words" });
  const leftBar = bar();
  const draw = memo(inside, ({ known, record }) => {
    const now = known.lease;
    if (!now) return free(record);
    return [
      now.warnings.length > 0 && el("ul", { class: "warnings" }, now.warnings.map((one) => el("li", null, warning(one), el("span", null, name(one.text, 500))))),
      el("dl", { class: "pairs" },
        pair("Owner", owner(now.owner)),
        pair("Client", client({ ...now, owner: null }), now.client_name && now.client_address ? el("span", { class: "quiet", text: ` ${plain(now.client_address)}` }) : null),
        pair("Connection", el("span", { class: "name" }, name(now.connection)), el("span", { class: "quiet", text: now.connected ? " open" : " closed" })),
        pair("Held for", age, el("span", { class: "quiet" }, " since ", moment(now.since_ms, true))),
        pair("TTL left", left, leftBar, now.expires_at_ms
          ? el("span", { class: "quiet" }, `of ${span(now.ttl_ms ?? 0)}, expires `, moment(now.expires_at_ms))
          : el("span", { class: "quiet", text: "a crash would leave it for ever" })),
        pair("Extended", `${counted(now.extensions, "time")} by clients, ${counted(now.renewals, "time")} by lockward`),
        now.fence !== null && now.fence !== undefined && pair("Fencing token", el("code", { text: String(now.fence) })),
        now.owed > 0 && pair("Owed", el("span", { class: "grave", text: `${counted(now.owed, "release")} of earlier holders: they may be at work` }))),
    ];
  }, PASSING);
  return {
    node,
    show(detail) {
      lease = detail.known.lease;
      const { exists, state, owner: whose } = detail;
      draw({ known: { lease }, record: { exists, state, owner: whose } });
    },
    tick(now) {
      if (!lease) return;
      say(age, span(now - lease.since_ms));
      const [words, part, level] = ttlLeft(lease, now);
      say(left, words);
      leftBar.set(part, level);
    },
  };
}

function free(record) {
  if (record.exists) {
    return el("p", null, "This lockward knows of no lease, but the key exists in the server",
      record.owner ? [", held by ", owner(record.owner), " through another lockward, or from before this one began."] : ".");
  }
  return el("p", { class: "quiet", text: record.state === "unknown" ? "This lockward knows of no lease." : "Nobody holds it." });
}

/** The lock as the server has it. */
function server() {
  const inside = el("div");
  const node = el("section", { class: "panel server", "aria-labelledby": "server-head" }, el("h2", { id: "server-head", text: "In the server" }), inside);
  const left = el("span");
  const draw = memo(inside, (of) => [
    of.server_error && el("p", { class: "grave", text: `The server could not be asked: ${plain(of.server_error)}` }),
    el("dl", { class: "pairs" },
      pair("State", stateWords(of.state)),
      pair("TTL left", left),
      of.owner && pair("Owner", owner(of.owner)),
      of.connection && pair("Connection", el("span", { class: "name" }, name(of.connection)), el("span", { class: "quiet", text: of.connection_open ? " open" : " closed" })),
      of.acquired_at_ms && pair("Acquired", moment(of.acquired_at_ms, true), el("span", { class: "quiet", text: " on its clock" })),
      of.fence !== null && of.fence !== undefined && pair("Fencing token", el("code", { text: String(of.fence) })),
      pair("Owed", of.debts.length
        ? el("ul", { class: "debts" }, of.debts.map((debt) => el("li", null, owner(debt.owner), el("span", { class: "quiet" }, " expired ", moment(debt.expired_at_ms)))))
        : "nothing"))]);
  return {
    node,
    show(detail) {
      const { known, ttl_ms: ttl, key, key_encoded: encoded, ...rest } = detail;
      draw(rest);
      say(left, ttl !== null && ttl !== undefined ? span(ttl) : detail.exists ? "none" : "–");
    },
  };
}

/** Who waits. */
function waiters() {
  const title = el("h2", { id: "waiters-head" });
  const inside = el("div");
  const node = el("section", { class: "panel waiters", "aria-labelledby": "waiters-head" }, title, inside);
  let ages = [];
  const draw = memo(inside, (list) => {
    ages = list.map((waiter) => [el("span"), el("span"), waiter]);
    if (!list.length) return el("p", { class: "quiet", text: "Nobody waits." });
    const head = [["Owner"], ["Client"], ["Waits for", "number"], ["Tries", "number"], ["Last try", "number"]];
    return el("div", { class: "scroller" }, el("table", { class: "plain" },
      el("thead", null, el("tr", null, head.map(([words, kind]) => el("th", { scope: "col", class: kind, text: words })))),
      el("tbody", null, ages.map(([waits, last, waiter]) => el("tr", null,
        el("th", { scope: "row" }, owner(waiter.owner)), el("td", null, client(waiter)), el("td", { class: "number" }, waits),
        el("td", { class: "number", text: count(waiter.tries) }), el("td", { class: "number" }, last))))));
  }, PASSING);
  return {
    node,
    show(list, all) {
      say(title, list.length ? `Waiters (${count(all)})` : "Waiters");
      draw(list);
    },
    tick(now) {
      for (const [waits, last, waiter] of ages) {
        say(waits, span(now - waiter.first_ms));
        say(last, `${span(now - waiter.last_ms)} ago`);
      }
    },
  };
}

/** What happened lately, the newest first. */
function history() {
  const inside = el("div");
  const node = el("section", { class: "panel history", "aria-labelledby": "history-head" }, el("h2", { id: "history-head", text: "What happened" }), inside);
  const draw = memo(inside, ({ entries, dropped }) => {
    if (!entries.length) return el("p", { class: "quiet", text: "Nothing that this lockward remembers." });
    const hidden = entries.length - HISTORY_ROWS;
    return [
      el("ol", { class: "events" }, entries.slice(-HISTORY_ROWS).toReversed().map(entry)),
      (dropped > 0 || hidden > 0) && el("p", { class: "quiet", text: `${counted(dropped + Math.max(0, hidden), "older entry", "older entries")} not shown.` }),
    ];
  });
  return { node, show: (known) => draw({ entries: known.history, dropped: known.history_dropped }) };
}

function entry(of) {
  const [words, weight] = EVENTS[of.event] ?? [of.event, ""];
  return el("li", { "data-event": of.event },
    moment(of.time_ms, true),
    el("span", { class: `tag ${weight}` }, words, of.count > 1 && ` ×${count(of.count)}`),
    el("span", { class: "told" }, of.text ? name(of.text, 500) : facts(of),
      of.overlap && el("span", { class: "tag grave", text: "overlap" }),
      of.action === "observed" && el("span", { class: "tag mode observe", text: "only observed" })));
}

/** The same from the fields, should there be no sentence. */
function facts(of) {
  return [owner(of.owner), ...[["ttl_ms", "TTL"], ["held_ms", "held"], ["waited_ms", "waited"], ["overrun_ms", "overran by"]]
    .filter(([field]) => of[field] !== undefined).map(([field, words]) => ` ${words} ${measured(of[field])}`)];
}

/** When lockward read it, on its own clock: an age and a beginning say so together; else the answer's date does. */
function readAt(detail, answered) {
  const { lease, waiters: [first] } = detail.known;
  if (lease) return lease.since_ms + lease.held_ms;
  return first ? first.first_ms + first.waited_ms : answered;
}

// ---- the view

export function page(main, frame, parts) {
  const [db, encoded = ""] = parts;
  const address = (more) => path(`api/v1/locks/${encoded}`, { db: db === "0" ? "" : db, ...more });
  let detail = null;
  let timer = null;
  let asking = false;
  let again = false;
  let left = false;
  let away = false;
  let askedAt = 0;

  const title = el("h1", { class: "lock-name" });
  const tags = el("div", { class: "tags" });
  const copy = copier(() => detail?.key ?? "", () => title, "Copy key");
  const force = el("button", { type: "button", class: "danger", text: "Release by force …", hidden: true });
  const trouble = el("p", { class: "note grave", role: "status", hidden: true });
  const [holding, inServer, waiting, past, picture] = [holder(), server(), waiters(), history(), timeline()];
  const body = el("div", { class: "lock-grid", hidden: true },
    holding.node, inServer.node, waiting.node,
    el("section", { class: "panel line", "aria-labelledby": "line-head" }, el("h2", { id: "line-head", text: "Timeline" }), picture.node),
    past.node);
  const dialog = releaser(() => detail, address, () => soon(0));
  main.append(
    el("p", { class: "back" }, el("a", { href: "#/locks", text: "← All locks" })),
    el("div", { class: "lock-head" }, title, copy, force), tags, trouble, body, dialog.node);
  force.addEventListener("click", () => dialog.open());

  const drawTitle = memo(title, (key) => name(key, 2000));
  const drawTags = memo(tags, (of) => [database(of.database), of.mode && mode(of.mode),
    of.rule && el("span", { class: "quiet" }, "rule ", el("span", { class: "name" }, name(of.rule)))]);

  function show(next) {
    detail = next;
    drawTitle(next.key);
    drawTags({ database: next.database, rule: next.rule, mode: next.known.lease?.mode });
    holding.show(next);
    inServer.show(next);
    waiting.show(next.known.waiters, next.known.waiting);
    past.show(next.known);
    picture.show(next.known, clock.now());
    tick();
    force.hidden = !next.exists && !next.known.lease;
    body.hidden = false;
    trouble.hidden = true;
    frame.title(plain(next.key, 60));
    dialog.refresh();
  }

  /** Whether nothing may be shown: what is opened while paused shows its first answer. */
  const still = () => left || (frame.isPaused() && detail !== null);

  function tick() {
    const now = clock.now();
    holding.tick(now);
    waiting.tick(now);
  }

  /** Asks after so many milliseconds. What is being answered may be older than the reason to ask: then once more. */
  function soon(wait) {
    if (asking) again = true;
    clearTimeout(timer);
    if (asking || left || frame.isPaused()) return;
    timer = setTimeout(refresh, Math.max(wait, askedAt + SOONEST_MS - performance.now()));
  }

  async function refresh() {
    asking = true;
    again = false;
    askedAt = performance.now();
    let answered = Date.now();
    let wait = document.hidden ? 5 * EVERY_MS : EVERY_MS;
    try {
      const next = await ask(address(), { signal: AbortSignal.timeout(ANSWER_LIMIT_MS) }, (date) => { answered = date; });
      if (still()) return;
      clock.set(readAt(next, answered));
      if (frame.isPaused()) clock.freeze();
      show(next);
      if (away) frame.line.answered();
      away = false;
    } catch (error) {
      if (still()) return;
      say(trouble, error.status === 404 ? `This is no lock here: ${plain(error.message)}.` : `It could not be read: ${plain(error.message)}.`);
      trouble.hidden = false;
      if (!error.status) {
        away = true;
        frame.line.broken();
      }
      if (error.status === 404) wait = 10 * EVERY_MS;
    } finally {
      asking = false;
    }
    soon(again ? 0 : wait);
  }

  frame.line.listen({
    address: path("api/v1/events", { pattern: patternFor(encoded), db }),
    heard: { lock: (event) => event.key_encoded === encoded && soon(0), missed: () => soon(0) },
    opened: () => soon(0),
  });
  drawTitle("…");
  refresh();
  return {
    tick,
    paused: (paused) => (paused ? clearTimeout(timer) : soon(0)),
    leave() {
      left = true;
      clearTimeout(timer);
      dialog.close();
    },
  };
}
