// Advice: rules that are missing, ready to paste, and what those that are there should say.

import { copier, count, counted, el, memo, name, plain, span } from "./draw.js";
import { ask } from "./live.js";

const EVERY_MS = 5000;

const KINDS = {
  ttl_too_short: ["TTL too short", "grave"],
  no_ttl: ["no TTL", "mild"],
  choose_owner: ["choose the owner", "mild"],
  not_a_lock: ["not a lock", "mild"],
  matched_nothing: ["matched nothing", "mild"],
  enforce: ["can be enforced", "good"],
};

function toml(text) {
  const code = el("pre", { class: "toml", tabindex: 0 }, el("code", { text }));
  return el("div", { class: "paste" }, code, copier(() => text, () => code));
}

function uncovered(one) {
  const figures = [
    ["keys", one.keys], ["acquires", one.acquires], ["without TTL", one.without_ttl], ["releases", one.releases],
    ["elsewhere", one.releases_elsewhere], ["extends", one.extends], ["scripts", one.scripts],
  ];
  return el("article", { class: "panel card suggestion" },
    el("h3", null, el("code", null, name(one.pattern))),
    el("p", null, name(one.text, 1000)),
    el("dl", { class: "facts" }, figures.map(([words, number]) => el("div", null, el("dt", { text: words }), el("dd", { text: count(number) })))),
    one.examples.length > 0 && el("p", { class: "quiet examples" }, "Such as ", one.examples.map((key) => [el("code", { title: plain(key) }, name(key, 80)), " "])),
    toml(one.toml));
}

function advice(one) {
  const [words, weight] = KINDS[one.kind] ?? [one.kind, "mild"];
  return el("article", { class: "panel card advice" },
    el("h3", null, el("span", { class: "name" }, name(one.rule)), el("span", { class: `tag ${weight}`, text: words })),
    el("p", null, name(one.text, 1000)),
    one.toml && toml(one.toml));
}

/** The view of all suggestions. */
export function suggestions(main, frame) {
  let timer = null;
  let left = false;
  const since = el("p", { class: "lead" });
  const body = el("div");
  const trouble = el("p", { class: "note grave", role: "status", hidden: true });
  main.append(el("h1", { text: "Suggestions" }), since, trouble, body);
  const draw = memo(body, (all) => [
    el("h2", { text: "Keys that look like locks and match no rule" }),
    all.uncovered.length ? el("div", { class: "cards" }, all.uncovered.map(uncovered))
      : el("p", { class: "empty", text: "None so far: whatever looked like a lock is covered by a rule." }),
    all.dropped_keys > 0 && el("p", { class: "note", text: `${counted(all.dropped_keys, "key")} could not be followed, because there were too many.` }),
    el("h2", { text: "Rules that could be better" }),
    all.rules.length ? el("div", { class: "cards" }, all.rules.map(advice))
      : el("p", { class: "empty", text: "Nothing to say about the rules so far." })], ["now_ms"]);

  async function refresh() {
    clearTimeout(timer);
    if (left) return;
    try {
      const all = await ask("api/v1/suggestions");
      if (left) return;
      if (!frame.isPaused() || !since.textContent) {
        since.textContent = `From the traffic of the last ${span(all.now_ms - all.since_ms)} through this lockward. Look at each before you paste it: what looks like a lock may be none.`;
        draw(all);
      }
      trouble.hidden = true;
    } catch (error) {
      trouble.textContent = `It could not be read: ${plain(error.message)}.`;
      trouble.hidden = false;
    }
    timer = setTimeout(refresh, EVERY_MS);
  }

  frame.watch();
  frame.title("Suggestions");
  refresh();
  return {
    paused: (paused) => !paused && refresh(),
    leave() {
      left = true;
      clearTimeout(timer);
    },
  };
}
