// How things are drawn and worded on this page: elements, keys, times, numbers, tags. What came from outside goes in as
// text, never as markup. Knows no view and asks nobody.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. `class`, `text` and `on` (listeners) are special, everything else is an attribute; what is null,
 *  undefined or false is left out. */
export function el(name, properties, ...children) {
  return fill(document.createElement(name), properties, children);
}

/** The same for SVG. */
export function svg(name, properties, ...children) {
  return fill(document.createElementNS(SVG, name), properties, children);
}

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name === "on") for (const [event, heard] of Object.entries(value)) node.addEventListener(event, heard);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Sets a text if it is another, so that a selection in it lives on. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Draws into `node` what `draw(data)` gives, whenever the data has changed; the fields in `passing` do not count. */
export function memo(node, draw, passing = []) {
  let last;
  return (data) => {
    const now = JSON.stringify(data, (name, value) => (passing.includes(name) ? undefined : value));
    if (now === last) return false;
    last = now;
    node.replaceChildren(...[draw(data)].flat(Infinity).filter(Boolean));
    return true;
  };
}

// ---- keys and names

/** What a reader would not see, or what would disturb the text around it: control, format and separator characters. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u3164\uffa0\ufe00-\ufe0f]/gu;
const LONGEST_SHOWN = 200;
const LONGEST_TITLE = 2000;

function cut(text, limit) {
  if (text.length <= limit) return text;
  const end = text.charCodeAt(limit - 1) >> 10 === 0x36 ? limit - 1 : limit; // not between two surrogates
  return `${text.slice(0, end)}…`;
}

function escaped(character) {
  const code = character.codePointAt(0);
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
}

/** A key or a name as nodes: what cannot be seen is written out, what is very long is cut. */
export function name(text, limit = LONGEST_SHOWN) {
  const shown = cut(text, limit);
  const nodes = [];
  let from = 0;
  for (const match of shown.matchAll(UNSEEN)) {
    if (match.index > from) nodes.push(shown.slice(from, match.index));
    nodes.push(el("span", { class: "unseen", text: escaped(match[0]) }));
    from = match.index + match[0].length;
  }
  nodes.push(shown.slice(from));
  return text === "" ? [el("span", { class: "unseen", text: "(empty)" })] : nodes;
}

/** The same as plain text, for titles. */
export function plain(text, limit = LONGEST_TITLE) {
  return cut(text, limit).replace(UNSEEN, escaped);
}

/** An owner: `address=10.0.0.7` with its first word set back. */
export function owner(text) {
  const at = text.indexOf("=");
  const several = text.indexOf("=", at + 1) >= 0;
  if (at < 0 || several) return el("span", { class: "name", title: plain(text) }, name(text));
  return el("span", { class: "name", title: plain(text) },
    el("span", { class: "kind", text: text.slice(0, at + 1) }), name(text.slice(at + 1)));
}

/** A client: its name, or its address where the owner says the name already, and whether it is gone. */
export function client(of) {
  const told = of.owner === `client-name=${of.client_name}` && of.client_address;
  const gone = of.connected === false;
  const words = (!told && of.client_name) || of.client_address || (gone ? "" : of.connection) || "";
  const all = [of.client_name, of.client_address, of.connection].filter(Boolean).map((text) => plain(text)).join(" · ");
  return el("span", { class: "name", title: all }, words && name(words), gone && el("span", { class: "gone", text: words ? " closed" : "closed" }));
}

/** The address of a lock's page. */
export function lockAddress(lock) {
  return `#/lock/${lock.database}/${lock.key_encoded}`;
}

// ---- times and numbers

/** The server's time, as far as this page knows it; stands still while nothing comes. */
export const clock = {
  ahead: 0,
  frozen: null,
  /** The server says that it is `now`. The least delayed word counts, until the clocks drift apart. */
  set(now) {
    const ahead = now - performance.now();
    if (this.frozen !== null || ahead > this.ahead || this.ahead - ahead > 1000) this.ahead = ahead;
    this.frozen = null;
  },
  now() {
    return this.frozen ?? performance.now() + this.ahead;
  },
  freeze() {
    this.frozen ??= this.now();
  },
};

const two = (number) => String(number).padStart(2, "0");

/** A span of time, never rounded up: 0.4s, 42s, 3m 05s, 2h 04m, 3d 04h. */
export function span(ms) {
  const tenths = Math.floor(Math.max(0, ms) / 100);
  if (tenths < 100) return `${(tenths / 10).toFixed(1)}s`;
  const whole = Math.floor(tenths / 10);
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${two(whole % 60)}s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)}h ${two(Math.floor(whole / 60) % 60)}m`;
  return `${Math.floor(whole / 86400)}d ${two(Math.floor(whole / 3600) % 24)}h`;
}

/** A measured time, to the millisecond where it is short. */
export function measured(ms) {
  return ms < 1000 ? `${Math.round(ms)}ms` : span(ms);
}

/** A time of day, with the date if it is not today's. */
export function time(ms, fine = false) {
  const date = new Date(ms);
  const text = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
    + (fine ? `.${String(date.getMilliseconds()).padStart(3, "0")}` : "");
  const today = date.toDateString() === new Date(clock.now()).toDateString();
  return today ? text : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${text}`;
}

/** A time as an element with the whole date behind it. */
export function moment(ms, fine = false) {
  return el("time", { datetime: new Date(ms).toISOString(), title: new Date(ms).toISOString(), text: time(ms, fine) });
}

/** A count with thousands set apart. */
export function count(number) {
  return Number(number).toLocaleString("en");
}

/** `1 lock`, `2 locks`. */
export function counted(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

export const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

// ---- tags

const WARNINGS = {
  overrun: ["overrun", "grave"],
  foreign_release: ["foreign release", "grave"],
  no_ttl: ["no TTL", "mild"],
  long_held: ["long held", "mild"],
  near_expiry: ["near expiry", "mild"],
};

export function warning(of) {
  const [words, weight] = WARNINGS[of.kind] ?? [of.kind, "mild"];
  return el("span", { class: `tag ${weight}`, title: plain(of.text), text: words });
}

export function mode(word) {
  const meaning = {
    enforce: "what is not the holder's to do is refused",
    observe: "nothing is changed; what would be refused is counted",
    off: "these keys are left alone",
  };
  return el("span", { class: `tag mode ${word}`, title: meaning[word], text: word });
}

export function database(number) {
  return number ? el("span", { class: "tag", title: `database ${number}`, text: `db ${number}` }) : null;
}

/** How much of the TTL is left, as a bar; `set` moves it. */
export function bar() {
  const filled = el("span", { class: "filled" });
  const node = el("span", { class: "bar", "aria-hidden": "true" }, filled);
  node.set = (part, level) => {
    filled.style.width = `${(Math.min(1, Math.max(0, part)) * 100).toFixed(1)}%`;
    node.className = `bar ${level}`;
  };
  return node;
}

/** The TTL left of a lease at `now`: words, part of the whole, and how pressing it is. */
export function ttlLeft(lock, now) {
  if (lock.expires_at_ms === null || lock.expires_at_ms === undefined) return ["none", 0, "without"];
  const left = lock.expires_at_ms - now;
  if (left <= 0) return ["run out", 0, "over"];
  const part = lock.ttl_ms ? left / lock.ttl_ms : 1;
  return [span(left), part, part < 0.2 && !lock.renewals && !lock.extensions ? "low" : "fine"];
}

/** A button that copies a text, or selects it where the browser allows no copying. */
export function copier(text, shown, words = "Copy") {
  const button = el("button", { type: "button", class: "small", text: words });
  button.addEventListener("click", async () => {
    let done = "Copied";
    try {
      await navigator.clipboard.writeText(text());
    } catch {
      // Only pages that came over HTTPS or from this machine may write to the clipboard.
      getSelection().selectAllChildren(shown());
      done = "Selected: press Ctrl+C";
    }
    say(button, done);
    setTimeout(() => say(button, words), 2500);
  });
  return button;
}
