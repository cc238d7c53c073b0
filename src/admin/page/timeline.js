// The leases of one lock as a picture: a row for each lease, its overrun hatched behind it, and a band where two were at
// work. The same stands beside it in words and as a table. Asks nobody.

import { count, counted, el, measured, memo, moment, plain, say, svg, time } from "./draw.js";

/** How many of the latest leases are shown; the first choice also leaves out what is far away from the rest. */
const SHOWN = [8, 20, Infinity];
/** So much longer than everything after it may a gap be. */
const LONGEST_GAP = 4;
const SHORT_GAP_MS = 20000;
const ROW = 30;
const ROW_NARROW = 42;
const BAR = 14;
const HEAD = 40;
const LABELS = [70, 210];
const NARROW = 620;
const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400]
  .map((seconds) => seconds * 1000);

// ---- what is to be seen

/** Until when the holder was at work, as far as anybody knows. */
const workEnd = (lease, now) => lease.late_release_ms ?? (lease.owed ? now : lease.end_ms ?? now);

/** From the expiry to the late release, or to now while it is owed. */
function overrun(lease, now) {
  if (!lease.owed && !lease.late_release_ms) return null;
  const from = lease.end_ms ?? lease.due_ms;
  const to = workEnd(lease, now);
  return from !== null && from !== undefined && to > from ? { from, to } : null;
}

/** The stretches in which somebody else held the lock while an earlier holder was still at work. */
export function overlaps(leases, now) {
  const found = [];
  for (const late of leases) {
    const over = late.overlapped && overrun(late, now);
    if (!over) continue;
    for (const other of leases) {
      if (other.owner === late.owner || other.start_ms < over.from - 2) continue;
      const from = Math.max(over.from, other.start_ms);
      const to = Math.min(over.to, workEnd(other, now));
      if (to > from) found.push({ from, to, late, other });
    }
  }
  return found.sort((a, b) => a.from - b.from);
}

function merged(bands) {
  const out = [];
  for (const band of bands) {
    const last = out.at(-1);
    if (last && band.from <= last.to) last.to = Math.max(last.to, band.to);
    else out.push({ from: band.from, to: band.to });
  }
  return out;
}

const who = (lease) => plain(lease.client_name || lease.owner.replace(/^[a-z-]+=(?=[^=]*$)/, "") || lease.connection, 60);

const ENDS = {
  released: "released", expired: "expired", forced: "released by force", disconnect: "released on disconnect",
  taken_over: "taken over", ended: "ended, found out afterwards",
};

/** How a lease stands or ended, in words. */
function ending(lease, now) {
  const over = overrun(lease, now);
  if (lease.ended === "removed") return `lost to another's release${over ? `, at work for ${measured(over.to - over.from)} more` : ""}`;
  if (over && lease.owed) return `expired, release still owed after ${measured(over.to - over.from)}`;
  if (over) return `expired, released ${measured(over.to - over.from)} too late`;
  if (!lease.end_ms) return "held now";
  if (lease.ended === "expired") return "expired, never released";
  return ENDS[lease.ended] ?? "ended";
}

/** The latest leases, as far as they can be drawn beside each other: not those before a long gap. */
function latest(leases, limit, now) {
  const some = leases.slice(-limit);
  if (limit !== SHOWN[0]) return some;
  const end = Math.max(...some.map((lease) => workEnd(lease, now)));
  for (let index = some.length - 1; index > 0; index -= 1) {
    const start = Math.min(...some.slice(index).map((lease) => lease.start_ms));
    const gap = start - Math.max(...some.slice(0, index).map((lease) => workEnd(lease, now)));
    if (gap > Math.max(SHORT_GAP_MS, LONGEST_GAP * (end - start))) return some.slice(index);
  }
  return some;
}

/** The whole in one or two sentences. */
function summary(leases, all, now) {
  const overran = leases.filter((lease) => overrun(lease, now));
  const bands = overlaps(leases, now);
  const said = [];
  for (const lease of overran.slice(-2)) {
    const over = overrun(lease, now);
    const did = lease.ended === "removed" ? "lost the lock to another's release and was at work for" : "overran its TTL by";
    said.push(`${who(lease)} ${did} ${measured(over.to - over.from)}${lease.owed ? " so far" : ""}.`);
  }
  for (const band of bands.slice(-2)) {
    said.push(`${who(band.other)} held the lock beside ${who(band.late)}: two at work for ${measured(band.to - band.from)}.`);
  }
  if (!said.length) said.push("No overrun and no overlap.");
  const shown = leases.length < all ? `The last ${leases.length} of ${counted(all, "lease")}.` : `${counted(all, "lease")}.`;
  return `${shown} ${said.join(" ")}`;
}

// ---- the picture

function range(leases, tries, now) {
  const from = Math.min(...leases.map((lease) => lease.start_ms));
  const open = leases.some((lease) => !lease.end_ms || lease.owed);
  const last = Math.max(...leases.map((lease) => workEnd(lease, now)), ...tries.map((entry) => entry.until_ms ?? entry.time_ms));
  let to = open ? now : last;
  const live = leases.find((lease) => !lease.end_ms);
  if (live?.due_ms > to) to = Math.min(live.due_ms, to + Math.max(1000, 0.3 * (to - from)));
  const pad = Math.max(50, 0.015 * (to - from));
  return { from: from - pad, to: Math.max(to + pad, from + 200) };
}

function tick(from, to, room) {
  const least = (to - from) / Math.max(2, Math.floor(room / 90));
  return STEPS.find((step) => step >= least) ?? Math.ceil(least / 86400000) * 86400000;
}

function axis(view) {
  const { from, to, x, bottom } = view;
  const step = tick(from, to, view.right - view.left);
  const parts = [];
  // Ticks at round times of day where this clock is.
  const shift = new Date(from).getTimezoneOffset() * 60000;
  for (let at = Math.ceil((from - shift) / step) * step + shift; at <= to; at += step) {
    const place = x(at);
    parts.push(svg("line", { class: "grid", x1: place, x2: place, y1: HEAD - 16, y2: bottom }));
    if (place > view.right - 34 || place < view.left + 24) continue;
    parts.push(svg("text", { class: "tick", x: place, y: HEAD - 22, "text-anchor": "middle", text: time(at, step < 1000) }));
  }
  return parts;
}

function hatch() {
  return svg("defs", null, svg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("rect", { class: "hatch-ground", width: 6, height: 6 }), svg("rect", { class: "hatch-line", width: 2.5, height: 6 })));
}

/** The bands, the latest first in having its words: where two would cover each other, only one says how long. */
function bandsDrawn(view, bands) {
  let free = view.width;
  return bands.toReversed().flatMap((one) => {
    const [left, right] = [view.x(one.from), view.x(one.to)];
    const words = `two at work ${measured(one.to - one.from)}`;
    const half = words.length * 3.4;
    const middle = Math.min(Math.max((left + right) / 2, half), view.width - half - 2);
    const worded = middle + half <= free;
    if (worded) free = middle - half - 8;
    return [
      svg("rect", { class: "overlap", x: left, y: HEAD - 14, width: Math.max(2, right - left), height: view.bottom - HEAD + 14 }, svg("title", { text: words })),
      worded && svg("text", { class: "overlap-words", x: middle, y: HEAD - 3, "text-anchor": "middle", text: words }),
    ].filter(Boolean);
  });
}

function lease(view, one, index) {
  const { x, now } = view;
  const top = HEAD + index * view.row + (view.narrow ? 20 : (view.row - BAR) / 2);
  const over = overrun(one, now);
  const live = !one.end_ms;
  const end = one.end_ms ?? now;
  const [left, right] = [x(one.start_ms), x(end)];
  const title = () => svg("title", { text: `${who(one)}: from ${time(one.start_ms, true)}, ${ending(one, now)}` });
  const parts = [svg("text", { class: "who", x: view.narrow ? view.left : 8, y: view.narrow ? top - 6 : top + BAR - 3 }, who(one).slice(0, view.narrow ? 40 : 25))];
  if (live && one.due_ms > now) {
    parts.push(svg("rect", { class: "ahead", x: right, y: top, width: Math.max(0, x(Math.min(one.due_ms, view.to)) - right), height: BAR }));
  }
  parts.push(svg("rect", { class: live ? "lease live" : "lease", x: left, y: top, width: Math.max(2, right - left), height: BAR, rx: 2 }, title()));
  if (over) {
    const width = Math.max(3, x(over.to) - x(over.from));
    parts.push(svg("rect", { class: one.owed ? "overrun owed" : "overrun", fill: "url(#hatch)", x: x(over.from), y: top, width, height: BAR }, title()));
    const words = `+${measured(over.to - over.from)}`;
    if (width > 8 * words.length + 8) parts.push(svg("text", { class: "over-words", x: x(over.from) + width / 2, y: top + BAR - 3, "text-anchor": "middle", text: words }));
  }
  if (one.due_ms && one.due_ms <= view.to && (over || live || one.due_ms <= end + 2)) {
    const place = x(one.due_ms);
    parts.push(svg("path", { class: "due", d: `M${place} ${top - 4}V${top + BAR + 4}M${place - 3.5} ${top - 4}h7` }, svg("title", { text: `TTL due at ${time(one.due_ms, true)}` })));
  }
  if (one.late_release_ms) {
    const [place, middle] = [x(one.late_release_ms), top + BAR / 2];
    parts.push(svg("path", { class: "late", d: `M${place} ${middle - 7}l6 7 -6 7 -6 -7z` }, svg("title", { text: `late release at ${time(one.late_release_ms, true)}` })));
  }
  return parts;
}

/** Refused tries and releases by others, below the leases. */
function others(view, tries) {
  const top = view.bottom - view.row + (view.narrow ? 20 : (view.row - BAR) / 2);
  const parts = [svg("text", { class: "who others", x: view.narrow ? view.left : 8, y: view.narrow ? top - 6 : top + BAR - 3, text: "others" })];
  for (const entry of tries) {
    const until = entry.until_ms ?? entry.time_ms;
    if (until < view.from || entry.time_ms > view.to) continue;
    const [left, right] = [Math.max(view.left, view.x(entry.time_ms)), view.x(until)];
    const words = `${plain(entry.client_name || entry.owner, 60)}: ${entry.event.replaceAll("_", " ")}${entry.count > 1 ? ` ${count(entry.count)} times` : ""}`;
    if (entry.event === "contended") {
      parts.push(svg("rect", { class: "try", x: left - 1, y: top + 3, width: Math.max(2, right - left + 2), height: BAR - 6 }, svg("title", { text: words })));
    } else {
      const middle = top + BAR / 2;
      parts.push(svg("path", { class: "foreign", d: `M${left - 5} ${middle - 5}l10 10m0 -10l-10 10` }, svg("title", { text: words })));
    }
  }
  return parts;
}

function picture(leases, history, words, width, now) {
  const narrow = width < NARROW;
  const row = narrow ? ROW_NARROW : ROW;
  const tries = history.filter((entry) => ["contended", "foreign_release"].includes(entry.event));
  const { from, to } = range(leases, tries.filter((entry) => entry.time_ms >= leases[0].start_ms), now);
  const labels = 30 + 7.2 * Math.max(6, ...leases.map((lease) => Math.min(26, who(lease).length)));
  const left = narrow ? 4 : Math.min(LABELS[1], Math.max(LABELS[0], labels));
  const right = width - 10;
  const seen = tries.filter((entry) => (entry.until_ms ?? entry.time_ms) >= from);
  const bottom = HEAD + (leases.length + (seen.length ? 1 : 0)) * row;
  const x = (at) => Math.round((left + ((at - from) / (to - from)) * (right - left)) * 10) / 10;
  const view = { from, to, left, right, bottom, row, narrow, x, now, width };
  const drawn = svg("svg", { width, height: bottom + 4, viewBox: `0 0 ${width} ${bottom + 4}`, role: "img", "aria-label": words }, hatch());
  leases.forEach((_, index) => {
    if (index % 2) drawn.append(svg("rect", { class: "stripe", x: 0, y: HEAD + index * row, width, height: row }));
  });
  drawn.append(...axis(view));
  const bands = merged(overlaps(leases, now));
  drawn.append(...bandsDrawn(view, bands));
  if (now > from && now < to) {
    drawn.append(svg("line", { class: "now", x1: x(now), x2: x(now), y1: HEAD - 16, y2: bottom }));
    if (!bands.some((one) => Math.abs(x(one.to) - x(now)) < 90)) drawn.append(svg("text", { class: "now-words", x: x(now), y: HEAD - 3, "text-anchor": "middle", text: "now" }));
  }
  leases.forEach((one, index) => drawn.append(...lease(view, one, index)));
  if (seen.length) drawn.append(...others(view, seen));
  return drawn;
}

// ---- legend, table, and the whole

function sample(draw) {
  return svg("svg", { width: 30, height: 16, viewBox: "0 0 30 16", "aria-hidden": "true" }, draw);
}

function legend() {
  const item = (words, ...draw) => el("li", null, sample(draw), words);
  const block = (kind, more) => svg("rect", { class: kind, x: 2, y: 2, width: 26, height: 12, ...more });
  return el("ul", { class: "legend" },
    item("lease", block("lease", { rx: 2 })),
    item("held now", block("lease live", { rx: 2 })),
    item("overrun: at work past its TTL", block("overrun", { fill: "url(#hatch)" })),
    item("overlap: two at work", block("overlap", { y: 0, height: 16 })),
    item("TTL due", svg("path", { class: "due", d: "M15 1V15M11.5 1h7" })),
    item("late release", svg("path", { class: "late", d: "M15 1l6 7 -6 7 -6 -7z" })),
    item("refused tries", svg("rect", { class: "try", x: 4, y: 4, width: 8, height: 8 }), svg("rect", { class: "try", x: 15, y: 4, width: 2, height: 8 }), svg("rect", { class: "try", x: 21, y: 4, width: 4, height: 8 })),
    item("release by somebody else", svg("path", { class: "foreign", d: "M10 3l10 10m0 -10l-10 10" })));
}

function rows(leases, now) {
  const at = (ms) => (ms ? moment(ms, true) : "–");
  const head = ["Holder", "Acquired", "TTL due", "Ended", "How", "Overlap"].map((words) => el("th", { scope: "col", text: words }));
  return el("div", { class: "scroller" }, el("table", { class: "plain" }, el("thead", null, el("tr", null, head)),
    el("tbody", null, leases.toReversed().map((one) => el("tr", null,
      el("th", { scope: "row", title: plain(one.owner), text: who(one) }), el("td", null, at(one.start_ms)), el("td", null, one.due_ms ? at(one.due_ms) : "no TTL"),
      el("td", null, at(one.end_ms)), el("td", { text: ending(one, now) }),
      el("td", { text: one.overlapped ? overlaps(leases, now).filter((two) => two.late === one).map((two) => `${measured(two.to - two.from)} with ${who(two.other)}`).join(", ") || "yes" : "–" }))))));
}

/** The timeline's section; `show(known, now)` draws it. */
export function timeline() {
  let limit = SHOWN[0];
  let last = null;
  const drawing = el("div", { class: "drawing" });
  const words = el("figcaption");
  const table = el("div");
  const choices = SHOWN.map((number) => el("button", {
    type: "button", class: "small", "aria-pressed": String(number === limit), text: { [SHOWN[0]]: "latest", Infinity: "all" }[number] ?? `last ${number}`,
    on: { click: () => { limit = number; choices.forEach((one, index) => one.setAttribute("aria-pressed", String(SHOWN[index] === limit))); redraw(); } },
  }));
  const chooser = el("div", { class: "choices", role: "group", "aria-label": "Leases shown" }, choices);
  const details = el("details", null, el("summary", { text: "The same as a table" }), table);
  const figure = el("figure", { class: "timeline", hidden: true }, el("div", { class: "figure-head" }, words, chooser), drawing, legend(), details);
  const none = el("p", { class: "quiet", text: "No lease of this lock is remembered." });
  const drawTable = memo(table, ({ leases }) => rows(leases, last.now));
  new ResizeObserver(() => redraw()).observe(drawing);

  function redraw() {
    if (!last) return;
    const { known, now } = last;
    const leases = known.spans.length ? latest(known.spans, limit, now) : [];
    figure.hidden = !leases.length;
    none.hidden = leases.length > 0;
    chooser.hidden = leases.length === known.spans.length && limit === SHOWN[0];
    if (!leases.length || !drawing.clientWidth) return;
    const text = summary(leases, known.spans.length, now);
    say(words, text);
    figure.classList.toggle("grave", overlaps(leases, now).length > 0);
    drawing.replaceChildren(picture(leases, known.history, text, drawing.clientWidth, now));
    if (details.open) drawTable({ leases, second: Math.floor(now / 1000) });
  }
  details.addEventListener("toggle", redraw);
  return {
    node: el("div", null, figure, none),
    show(known, now) {
      last = { known, now };
      redraw();
    },
  };
}
