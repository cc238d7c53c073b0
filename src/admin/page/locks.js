// The table of the locks that this lockward knows. It updates itself; what it shows and in which order stands in the
// address. Draws no single lock.

import {
  bar, client, clock, count, counted, database, el, lockAddress, memo, mode, name, owner, plain, say, span, sum, ttlLeft,
  warning,
} from "./draw.js";
import { ask, path } from "./live.js";

const PAGE_ROWS = 100;
const TYPING_PAUSE_MS = 150;
/** What each sort shows first. */
const SORTS = { age: "desc", ttl: "asc", waiters: "desc", key: "asc" };
const SORT_WORDS = { age: "Held for", ttl: "TTL left", waiters: "Waiters", key: "Key" };

// ---- the view's state, as it stands in the address

function stateOf(params) {
  const sort = Object.hasOwn(SORTS, params.sort) ? params.sort : "age";
  const order = ["asc", "desc"].includes(params.order) ? params.order : SORTS[sort];
  return {
    pattern: params.pattern ?? "",
    owner: params.owner ?? "",
    rule: params.rule ?? "",
    warned: params.warned === "1",
    sort,
    order,
    page: Math.max(1, Math.floor(Number(params.page)) || 1),
  };
}

function addressOf(state) {
  return path("#/locks", {
    pattern: state.pattern,
    owner: state.owner,
    rule: state.rule,
    warned: state.warned && "1",
    sort: state.sort === "age" ? "" : state.sort,
    order: state.order === SORTS[state.sort] ? "" : state.order,
    page: state.page > 1 && state.page,
  });
}

function questionOf(state) {
  return {
    pattern: state.pattern,
    owner: state.owner,
    rule: state.rule,
    warned: state.warned && "true",
    sort: state.sort,
    order: state.order,
    limit: PAGE_ROWS,
    offset: (state.page - 1) * PAGE_ROWS,
  };
}

// ---- figures above the table

const FIGURES = [
  ["held", "held", (table) => table.total],
  ["waiting", "waiting", (_, rules) => sum(rules.map((rule) => rule.waiters))],
  ["without", "without TTL", (_, rules) => sum(rules.map((rule) => rule.without_ttl)), "mild"],
  ["overlaps", "overlaps, 10 min", (_, rules) => recent(rules, "overlaps"), "grave"],
  ["refused", "refused, 10 min", (_, rules) => recent(rules, "refused"), "grave"],
  ["would", "would be refused, 10 min", (_, rules) => recent(rules, "would_refuse"), "mild"],
];

const recent = (rules, series) => sum(rules.map((rule) => sum(rule.recent[series] ?? [])));

/** The row of figures; `show(snapshot)` brings it up to date. */
export function figures() {
  const values = Object.fromEntries(FIGURES.map(([id]) => [id, el("dd", { text: "–" })]));
  const node = el("dl", { class: "figures" }, FIGURES.map(([id, words]) =>
    el("div", { "data-figure": id }, el("dt", { text: words }), values[id])));
  return {
    node,
    show({ table, rules }) {
      for (const [id, , read, weight] of FIGURES) {
        const number = read(table, rules);
        say(values[id], count(number));
        values[id].className = number && weight ? weight : "";
      }
    },
  };
}

function droppedWords(dropped) {
  const parts = [
    dropped.leases && counted(dropped.leases, "lease"),
    dropped.waiters && counted(dropped.waiters, "waiter"),
    dropped.histories && counted(dropped.histories, "history", "histories"),
  ].filter(Boolean);
  return parts.length ? `The table is not complete: to stay within its bounds, lockward left out ${parts.join(", ")} since its start.` : "";
}

// ---- one row

function row(lock) {
  const cells = {};
  const cell = (id, label, kind) => {
    cells[id] = el("td", { class: kind ? `${id} ${kind}` : id, "data-label": label, role: "cell" });
    return cells[id];
  };
  const link = el("a", { class: "key", href: lockAddress(lock), title: plain(lock.key) }, name(lock.key));
  const ttlBar = bar();
  const ttlWords = el("span", { class: "words" });
  const node = el("tr", { role: "row" },
    el("th", { scope: "row", role: "rowheader", class: "lock" }, database(lock.database), link),
    cell("holder", "Owner"), cell("client", "Client"), cell("age", "Held for", "number"), cell("ttl", "TTL left", "number"),
    cell("waiters", "Waiters", "number"), cell("warnings", "Warnings"), cell("rule", "Rule"));
  cells.ttl.append(ttlWords, ttlBar);
  const drawHolder = memo(cells.holder, (of) => owner(of.owner));
  const drawClient = memo(cells.client, (of) => client(of));
  const drawWarnings = memo(cells.warnings, (warnings) => warnings.map(warning));
  const drawRule = memo(cells.rule, (of) => [el("span", { class: "name", title: plain(of.rule) }, name(of.rule)), mode(of.mode)]);
  let now = lock;
  return {
    node,
    update(next) {
      now = next;
      drawHolder({ owner: next.owner });
      drawClient({
        owner: next.owner, client_name: next.client_name, client_address: next.client_address, connection: next.connection,
        connected: next.connected,
      });
      drawWarnings(next.warnings);
      node.classList.toggle("has-grave", next.warnings.some((one) => ["overrun", "foreign_release"].includes(one.kind)));
      drawRule({ rule: next.rule, mode: next.mode });
    },
    tick(at) {
      say(cells.age, span(at - now.since_ms));
      const [words, part, level] = ttlLeft(now, at);
      say(ttlWords, words);
      ttlBar.set(part, level);
      const longest = now.waiters.length ? Math.min(...now.waiters.map((waiter) => waiter.first_ms)) : null;
      say(cells.waiters, now.waiting ? `${count(now.waiting)}${longest ? ` · ${span(at - longest)}` : ""}` : "–");
      cells.waiters.classList.toggle("none", !now.waiting);
    },
  };
}

// ---- the view

/** The table of the locks that this lockward knows. */
export function table(main, frame, _parts, params) {
  let state = stateOf(params);
  let typing = null;
  let typed = false;
  let snapshot = null;
  const rows = new Map();

  const search = el("input", {
    type: "search", id: "search", placeholder: "Key: a text or a pattern, lock:job:*", autocomplete: "off", spellcheck: "false",
    maxlength: 256, "aria-keyshortcuts": "/",
  });
  const ownerField = el("input", { type: "text", id: "owner", placeholder: "Owner", autocomplete: "off", spellcheck: "false", maxlength: 300 });
  const ruleField = el("select", { id: "rule" });
  const warned = el("input", { type: "checkbox", id: "warned" });
  const sortField = el("select", { id: "sort" }, Object.entries(SORT_WORDS).map(([id, words]) => el("option", { value: id, text: words })));
  const clear = el("button", { type: "button", class: "small quiet", text: "Clear filters" });
  const summary = figures();
  const heads = {};
  const head = (words, sort, kind) => {
    const th = el("th", { scope: "col", class: kind, role: "columnheader" }, sort
      ? el("button", { type: "button", "data-sort": sort, on: { click: () => sortBy(sort) } }, words, el("span", { class: "arrow", "aria-hidden": "true" }))
      : words);
    if (sort) heads[sort] = th;
    return th;
  };
  const body = el("tbody", { role: "rowgroup" });
  const grid = el("table", { class: "locks", role: "table" },
    el("caption", { class: "unseen-caption", text: "Locks that this lockward knows" }),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" },
      head("Key", "key"), head("Owner"), head("Client"), head("Held for", "age", "number"), head("TTL left", "ttl", "number"),
      head("Waiters", "waiters", "number"), head("Warnings"), head("Rule"))),
    body);
  const note = el("div", { class: "empty", hidden: true });
  const dropped = el("p", { class: "note", hidden: true });
  const range = el("span", { class: "range" });
  const before = el("button", { type: "button", class: "small", text: "Previous", on: { click: () => change({ page: state.page - 1 }) } });
  const after = el("button", { type: "button", class: "small", text: "Next", on: { click: () => change({ page: state.page + 1 }) } });
  const pager = el("nav", { class: "pager", "aria-label": "Pages", hidden: true }, before, range, after);

  main.append(
    el("h1", { class: "unseen-caption", text: "Locks" }),
    summary.node,
    el("form", { class: "filters", role: "search", on: { submit: (event) => event.preventDefault() } },
      el("label", { class: "grow" }, el("span", { text: "Search" }), search),
      el("label", null, el("span", { text: "Owner" }), ownerField),
      el("label", null, el("span", { text: "Rule" }), ruleField),
      el("label", { class: "sort-field" }, el("span", { text: "Sort by" }), sortField),
      el("label", { class: "check" }, warned, el("span", { text: "Only with warnings" })),
      clear),
    dropped, grid, note, pager);

  function change(more, replace = false) {
    state = { ...state, page: 1, ...more };
    frame.go(addressOf(state), replace);
    listen();
  }

  function sortBy(sort) {
    const other = state.order === "asc" ? "desc" : "asc";
    change({ sort, order: state.sort === sort ? other : SORTS[sort] });
  }

  let listening = null;
  function listen() {
    const question = questionOf(state);
    const address = path("api/v1/live", question);
    controls();
    if (address === listening) return;
    listening = address;
    frame.line.listen({ address, chatty: true, probe: path("api/v1/locks", { ...question, limit: 1 }), heard: { snapshot: hear }, refused });
    if (frame.isPaused()) ask(path("api/v1/locks", question)).then((locks) => hear({ ...snapshot, table: locks }, true), refused);
  }

  /** Brings the controls in line with the state. */
  function controls() {
    if (document.activeElement !== search) search.value = state.pattern;
    if (document.activeElement !== ownerField) ownerField.value = state.owner;
    warned.checked = state.warned;
    sortField.value = state.sort;
    rulesKnown({ rules: (snapshot?.rules ?? []).map((rule) => rule.name), rule: state.rule });
    clear.hidden = !(state.pattern || state.owner || state.rule || state.warned);
    for (const [sort, th] of Object.entries(heads)) {
      const now = sort === state.sort ? `${state.order}ending` : "none";
      if (th.getAttribute("aria-sort") !== now) th.setAttribute("aria-sort", now);
    }
  }

  const rulesKnown = memo(ruleField, ({ rules, rule }) => {
    const names = rule && !rules.includes(rule) ? [...rules, rule] : rules;
    return [el("option", { value: "", text: "all rules" }),
      ...names.map((one) => el("option", { value: one, selected: one === rule, text: plain(one, 60) }))];
  });

  function hear(next, whilePaused = false) {
    if (frame.isPaused() && !whilePaused) return;
    snapshot = { rules: [], ...next };
    if (!whilePaused) frame.met(next);
    // A page that has emptied meanwhile: back to the last one.
    if (!next.table.locks.length && next.table.matched && state.page > 1) {
      change({ page: Math.ceil(next.table.matched / PAGE_ROWS) }, true);
      return;
    }
    render();
  }

  function render() {
    const { table: list } = snapshot;
    summary.show(snapshot);
    controls();
    const seen = new Set();
    let place = body.firstChild;
    const at = clock.now();
    for (const lock of list.locks) {
      const id = `${lock.database}/${lock.key_encoded}`;
      seen.add(id);
      if (!rows.has(id)) rows.set(id, row(lock));
      const one = rows.get(id);
      one.update(lock);
      one.tick(at);
      if (one.node === place) place = place.nextSibling;
      else body.insertBefore(one.node, place);
    }
    for (const [id, one] of rows) {
      if (seen.has(id)) continue;
      one.node.remove();
      rows.delete(id);
    }
    say(dropped, droppedWords(list.dropped));
    dropped.hidden = !dropped.textContent;
    grid.hidden = !list.locks.length;
    drawNote({ total: list.total, matched: list.matched });
    note.hidden = list.locks.length > 0;
    pager.hidden = list.matched <= PAGE_ROWS;
    say(range, `${count(list.offset + 1)}–${count(list.offset + list.locks.length)} of ${count(list.matched)}`);
    before.disabled = state.page <= 1;
    after.disabled = list.offset + list.locks.length >= list.matched;
    const waiting = sum(snapshot.rules.map((rule) => rule.waiters));
    frame.title(`${count(list.total)} held${waiting ? `, ${count(waiting)} waiting` : ""}`);
  }

  const drawNote = memo(note, ({ total, matched, error }) => {
    if (error) return el("p", { text: `lockward refuses this view: ${error}` });
    if (total && !matched) return [el("p", { text: total === 1 ? "The one lock that is held does not fit these filters." : `None of the ${count(total)} locks that are held fits these filters.` })];
    return [el("p", { text: "No lock is held, as far as this lockward has seen since it was started." }),
      el("p", null, "Take one through lockward: ", el("code", { text: "SET lock:demo 1 NX EX 60" }), ". Those taken elsewhere, or before, are under ", el("a", { href: "#/records", text: "All proxies" }), "."),
      el("p", { class: "quiet", text: "Nothing here although programs take locks? Look at the suggestions: their keys may match no rule." })];
  });

  function refused(error) {
    drawNote({ error: plain(error.message) });
    note.hidden = false;
    grid.hidden = true;
    pager.hidden = true;
  }

  function type(event) {
    const more = event.target === search ? { pattern: search.value } : { owner: ownerField.value };
    clearTimeout(typing);
    typing = setTimeout(() => {
      change(more, typed);
      typed = true;
    }, TYPING_PAUSE_MS);
  }
  for (const field of [search, ownerField]) {
    field.addEventListener("input", type);
    field.addEventListener("blur", () => { typed = false; });
  }
  ruleField.addEventListener("change", () => change({ rule: ruleField.value }));
  sortField.addEventListener("change", () => sortBy(sortField.value));
  warned.addEventListener("change", () => change({ warned: warned.checked }));
  clear.addEventListener("click", () => {
    search.value = ownerField.value = "";
    change({ pattern: "", owner: "", rule: "", warned: false });
    search.focus();
  });

  grid.hidden = true;
  note.append(el("p", { text: "Reading the locks …" }));
  note.hidden = false;
  listen();
  return {
    update(next) {
      state = stateOf(next);
      listen();
    },
    tick() {
      const at = clock.now();
      for (const one of rows.values()) one.tick(at);
    },
    leave: () => clearTimeout(typing),
  };
}
