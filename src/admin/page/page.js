// The frame of the page: which view is shown, the state of the line, pausing, light and dark, keys. Everything that a
// view shows stands in the address behind the #, so that it can be shared and the back button works.

import { clock, plain, say, time } from "./draw.js";
import { Line } from "./live.js";
import { page as lock } from "./lock.js";
import { table as locks } from "./locks.js";
import { records } from "./records.js";
import { rules } from "./rules.js";
import { suggestions } from "./suggestions.js";

const VIEWS = { locks, lock, rules, suggestions, records };
const TICK_MS = matchMedia("(prefers-reduced-motion: reduce)").matches ? 1000 : 250;

const at = (id) => document.getElementById(id);
const main = at("content");

let shown = null; // { name, view, params }
let pausedSince = null;
let retryAt = null;

const line = new Line((state, wait) => {
  retryAt = wait ? performance.now() + wait : null;
  at("link-state").dataset.state = pausedSince ? "paused" : state;
  document.body.classList.toggle("stale", state === "lost");
  if (state === "lost") clock.freeze();
  words(state);
});

function words(state = at("link-state").dataset.state) {
  const wait = retryAt ? Math.max(1, Math.ceil((retryAt - performance.now()) / 1000)) : null;
  const text = { connecting: "connecting", live: "live", lost: "disconnected, trying again" }[state];
  say(at("link-words"), pausedSince ? `paused since ${time(pausedSince)}` : text);
  // Not part of what is read out, which would be every second.
  say(at("link-wait"), !pausedSince && wait ? ` in ${wait}s` : "");
}

// ---- which view

/** What the address asks for: the view's name, its parts, and what stands behind the question mark. */
function wanted() {
  const [way, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...parts] = way.split("/");
  const lock = /^\d{1,9}$/.test(parts[0]) && parts.length === 2 && !/%(?![0-9a-f]{2})/i.test(parts[1]);
  const known = Object.hasOwn(VIEWS, name) && (name !== "lock" || lock) ? name : "locks";
  return { name: known, parts, params: Object.fromEntries(new URLSearchParams(query)) };
}

/** What a view may do with the frame. */
const frame = {
  line,
  isPaused: () => pausedSince !== null,
  /** Writes the view's state into the address and shows it. `replace` leaves no step for the back button. */
  go(address, replace = false) {
    if (address === location.hash) return;
    history[replace ? "replaceState" : "pushState"](null, "", address);
    route();
  },
  /** Tells what every snapshot tells of this lockward: its time, and whether it is ready. */
  met(snapshot) {
    clock.set(snapshot.table.now_ms);
    at("not-ready").hidden = !snapshot.not_ready;
    say(at("not-ready"), snapshot.not_ready ? `This lockward is not ready: ${plain(snapshot.not_ready)}` : "");
  },
  /** Listens to the rules and the counts alone, without rows. */
  watch(heard = () => {}) {
    line.listen({
      address: "api/v1/live?limit=1",
      chatty: true,
      heard: {
        snapshot(snapshot) {
          if (pausedSince) return;
          frame.met(snapshot);
          heard(snapshot);
        },
      },
    });
  },
  title(text) {
    document.title = text ? `${text} · lockward` : "lockward";
  },
};

function route() {
  const next = wanted();
  const key = [next.name, ...next.parts].join("/");
  if (shown?.key === key) {
    shown.view.update?.(next.params);
    return;
  }
  shown?.view.leave?.();
  for (const link of document.querySelectorAll("nav a")) {
    const current = link.dataset.view === next.name || (next.name === "lock" && link.dataset.view === "locks");
    if (current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  frame.title("");
  main.replaceChildren();
  main.dataset.view = next.name;
  const first = shown === null;
  shown = { key, view: VIEWS[next.name](main, frame, next.parts, next.params) };
  if (!first) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

addEventListener("hashchange", route);
addEventListener("popstate", route);
at("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

// ---- pausing, light and dark, keys

function pause() {
  pausedSince = pausedSince ? null : Date.now();
  if (pausedSince) clock.freeze();
  say(at("pause"), pausedSince ? "Resume" : "Pause");
  document.body.classList.toggle("paused", pausedSince !== null);
  if (pausedSince) document.body.classList.remove("stale");
  at("link-state").dataset.state = pausedSince ? "paused" : "connecting";
  retryAt = null;
  words();
  line.pause(pausedSince !== null);
  shown?.view.paused?.(pausedSince !== null);
}

const dark = matchMedia("(prefers-color-scheme: dark)");

function theme(chosen) {
  try {
    // What the system says anyway is not written down, so that the page follows it later.
    if (chosen === undefined) chosen = localStorage.getItem("theme");
    else if ((chosen === "dark") === dark.matches) localStorage.removeItem("theme");
    else localStorage.setItem("theme", chosen);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
  const isDark = (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  at("theme").textContent = isDark ? "Light" : "Dark";
  at("theme").title = `Show the page ${isDark ? "light" : "dark"}`;
  at("theme").dataset.next = isDark ? "light" : "dark";
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const typing = event.target.closest?.("input, select, textarea");
  const search = main.querySelector("input[type=search]");
  if (event.key === "Escape" && event.target === search) {
    if (search.value) {
      search.value = "";
      search.dispatchEvent(new Event("input", { bubbles: true }));
    } else search.blur();
  } else if (typing) {
    return;
  } else if (event.key === "/") {
    event.preventDefault();
    if (search) search.focus();
    else frame.go("#/locks");
    main.querySelector("input[type=search]")?.focus();
  } else if (event.key === "p") pause();
}

at("pause").addEventListener("click", pause);
at("theme").addEventListener("click", () => theme(at("theme").dataset.next));
dark.addEventListener("change", () => theme());
addEventListener("keydown", key);

setInterval(() => {
  if (retryAt) words();
  if (document.hidden || pausedSince || clock.frozen !== null) return;
  shown?.view.tick?.();
}, TICK_MS);

theme();
route();
