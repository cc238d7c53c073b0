// The dialog that releases a lock by force: what will happen, why, and the token. The token stays in this page's memory
// until the page is closed or loaded again, the token is refused, or the reader has it forgotten.

import { clock, counted, el, name, owner, plain, say, span } from "./draw.js";
import { ask } from "./live.js";

let token = "";

/** What surely released nothing. A release goes on in lockward when its caller is gone: anything else leaves it open. */
const REFUSALS = {
  400: (said) => `lockward does not understand this: ${said}`,
  401: () => "This is not the admin token. Nothing was released.",
  403: () => "No admin token is configured, so nothing can be changed here: set token in [admin], or LOCKWARD_ADMIN__TOKEN, and start lockward again.",
  404: () => "There is nothing to release any more: the lock is free.",
};

/** The dialog: `node`, `open()`, `refresh()` when more is known, `close()`. */
export function releaser(detail, address, done) {
  // Headers are bytes: this way any token in the configuration can be sent, but for one with control characters.
  const bytes = (text) => String.fromCharCode(...new TextEncoder().encode(text));

  const holder = el("div", { class: "target" });
  const known = el("p", { class: "quiet" });
  const reason = el("input", { type: "text", id: "reason", autocomplete: "off", maxlength: 300, placeholder: "worker 12 is gone" });
  const secret = el("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false", maxlength: 4096, required: true });
  const kept = el("p", { class: "quiet kept", hidden: true }, "The token of your last release is still in this page's memory. ",
    el("button", { type: "button", class: "small quiet", text: "Forget it", on: { click: forget } }));
  const said = el("p", { class: "said", role: "alert" });
  const go = el("button", { type: "submit", class: "danger", text: "Release by force" });
  const cancel = el("button", { type: "button", text: "Cancel", on: { click: () => node.close() } });
  const node = el("dialog", { class: "release", "aria-labelledby": "release-head", "aria-describedby": "release-what" },
    el("form", { method: "dialog", autocomplete: "off", on: { submit: release } },
      el("h2", { id: "release-head", text: "Release this lock by force?" }),
      holder,
      el("p", { id: "release-what", text: "Its holder is not told and may work on, while the next client takes the lock. The release is logged with who and why." }),
      known,
      el("label", null, el("span", { text: "Reason" }), reason),
      el("label", null, el("span", { text: "Admin token" }), secret),
      kept, said,
      el("div", { class: "buttons" }, cancel, go)));
  node.addEventListener("close", () => { secret.value = ""; });

  function forget() {
    token = "";
    secret.value = "";
    kept.hidden = true;
    secret.focus();
  }

  function refresh() {
    const now = detail();
    if (!now || !node.open) return;
    const lease = now.known.lease;
    holder.replaceChildren(el("p", { class: "key" }, name(now.key, 300)),
      el("p", null, lease || now.owner ? ["held by ", owner(lease?.owner ?? now.owner)] : "holder unknown",
        lease ? ` for ${span(clock.now() - lease.since_ms)}` : ""));
    say(known, now.known.waiting ? `${counted(now.known.waiting, "owner waits", "owners wait")} for it.` : "Nobody is known to wait for it.");
  }

  async function release(event) {
    event.preventDefault();
    const presented = secret.value;
    if (!presented || go.disabled) return;
    said.className = "said";
    if (/[\x00-\x1f\x7f]/.test(presented)) {
      say(said, "The token holds characters that cannot be sent.");
      return;
    }
    go.disabled = true;
    say(said, "Releasing …");
    try {
      const answer = await ask(address({ reason: reason.value }), {
        method: "DELETE",
        headers: { Authorization: `Bearer ${bytes(presented)}` },
        signal: AbortSignal.timeout(15000),
      });
      token = presented;
      finished(answer);
    } catch (error) {
      said.className = "said grave";
      if (error.status === 401) token = "";
      if (error.status === 401) secret.select();
      say(said, REFUSALS[error.status]?.(plain(error.message)) 
        ?? `It is not known whether it was released: ${plain(error.message)}. Close this and look at the lock.`);
    }
    go.disabled = false;
    done();
  }

  function finished(answer) {
    say(said, answer.held_ms === null || answer.held_ms === undefined ? "Released." : `Released, after it was held for ${span(answer.held_ms)}.`);
    go.hidden = true;
    say(cancel, "Close");
    cancel.focus();
  }

  return {
    node,
    open() {
      say(said, "");
      said.className = "said";
      go.hidden = false;
      say(cancel, "Cancel");
      reason.value = "";
      secret.value = token;
      kept.hidden = !token;
      node.showModal();
      refresh();
      reason.focus();
    },
    refresh,
    close: () => node.open && node.close(),
  };
}
