// The lease records as they stand in the server: the locks of all proxies. Read on request only, a page at a time, with
// rests between, since lockward has to search the server for them.

import { count, counted, database, el, lockAddress, moment, name, owner, plain, say, span } from "./draw.js";
import { ask, path } from "./live.js";

const STATES = {
  free: "free: nobody holds it",
  held: "held",
  unmanaged: "unmanaged: the key exists, set past lockward",
  adrift: "adrift: its TTL was changed past lockward",
  open: "open: taken over, anybody may release it",
  unknown: "unknown: the server could not be asked",
};

export const stateWords = (state) => STATES[state] ?? state;

/** The lease records in the server: the locks of all proxies, read on request, a page at a time. */
export function records(main, frame, _parts, params) {
  let cursor = null;
  let number = 0;
  let stopped = false;
  const pattern = el("input", {
    type: "search", id: "search", placeholder: "Key: a text or a pattern", autocomplete: "off", spellcheck: "false", maxlength: 256, value: params.pattern ?? "",
  });
  const db = el("input", { type: "number", id: "db", min: 0, max: 1000000, value: params.db ?? "0" });
  const read = el("button", { type: "submit", text: "Read from the server" });
  const more = el("button", { type: "button", class: "small", text: "Read on", hidden: true });
  const said = el("p", { class: "told-below", role: "status" });
  const body = el("tbody", { role: "rowgroup" });
  const head = (words, kind) => el("th", { scope: "col", role: "columnheader", class: kind, text: words });
  const grid = el("table", { class: "records", role: "table", hidden: true },
    el("caption", { class: "unseen-caption", text: "Lease records in the server" }),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head("Key"), head("State"), head("Owner"), head("Connection"),
      head("Acquired"), head("TTL left", "number"), head("Owed", "number"), head("Rule here"))), body);
  main.append(
    el("h1", { text: "Locks of all proxies" }),
    el("p", { class: "lead", text: "The lease records as they stand in the server, whichever lockward wrote them. Read with SCAN, a little at a time, and only when you ask. Rules in observe mode write no records." }),
    el("form", { class: "filters", role: "search", on: { submit: (event) => { event.preventDefault(); begin(); } } },
      el("label", { class: "grow" }, el("span", { text: "Search" }), pattern), el("label", { class: "narrow" }, el("span", { text: "Database" }), db), read),
    grid, said, more);

  function begin() {
    cursor = null;
    number = 0;
    body.replaceChildren();
    grid.hidden = true;
    frame.go(path("#/records", { pattern: pattern.value, db: db.value === "0" ? "" : db.value }), true);
    next();
  }

  const wait = (ms) => new Promise((done) => setTimeout(done, ms));

  /** Reads on until something was found or the end is reached, with rests between. */
  async function next() {
    read.disabled = more.disabled = true;
    more.hidden = true;
    say(said, "Reading …");
    try {
      let found = 0;
      let pages = 0;
      do {
        const page = await patient({ pattern: pattern.value, db: db.value || 0, cursor });
        if (stopped) return;
        cursor = page.cursor;
        found += page.records.length;
        pages += 1;
        number += page.records.length;
        body.append(...page.records.map(record));
        grid.hidden = !number;
        say(said, `${counted(number, "record")} so far …`);
        if (cursor) await wait(120);
      } while (cursor && found < 20 && pages < 50 && !stopped);
      say(said, cursor ? `${counted(number, "record")} so far; there is more to look through.` : number
        ? `${counted(number, "record")}: all there are.` : "No lease record was found in this database.");
      more.hidden = !cursor;
    } catch (error) {
      say(said, `It could not be read: ${plain(error.message)}`);
      more.hidden = !cursor;
    }
    read.disabled = more.disabled = false;
  }

  /** Asks, and waits where lockward says that somebody else is reading. */
  async function patient(query) {
    for (let tries = 0; ; tries += 1) {
      try {
        return await ask(path("api/v1/records", query));
      } catch (error) {
        if (error.status !== 429 || tries >= 10 || stopped) throw error;
        await wait(Math.min(5000, (error.wait ?? 0.3) * 1000));
      }
    }
  }

  function record(of) {
    const cell = (label, kind, ...inside) => el("td", { "data-label": label, class: kind, role: "cell" }, ...inside);
    return el("tr", { role: "row" },
      el("th", { scope: "row", role: "rowheader", class: "lock" }, database(of.database),
        el("a", { class: "key", href: lockAddress(of), title: plain(of.key) }, name(of.key))),
      cell("State", null, el("span", { title: stateWords(of.state), text: of.state })),
      cell("Owner", null, of.owner ? owner(of.owner) : "–"),
      cell("Connection", null, of.connection ? el("span", { class: "name" }, name(of.connection), !of.connection_open && el("span", { class: "gone", text: " closed" })) : "–"),
      cell("Acquired", null, of.acquired_at_ms ? moment(of.acquired_at_ms) : "–"),
      cell("TTL left", "number", of.ttl_ms !== null && of.ttl_ms !== undefined ? span(of.ttl_ms) : of.exists ? "none" : "–"),
      cell("Owed", of.debts.length ? "number grave" : "number", count(of.debts.length)),
      cell("Rule here", null, of.rule ? name(of.rule) : "–"));
  }

  more.addEventListener("click", next);
  frame.watch();
  return { leave: () => { stopped = true; } };
}
