// The line to lockward: one event stream at a time, opened again when it breaks, and single questions. One stream for
// each page, none while the page is hidden or paused: a browser allows six connections to one address in all.
// Draws nothing.

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 8000;
/** A stream that says something at least every 5 s is taken for dead after this. */
const LONGEST_SILENCE_MS = 15000;
const HIDDEN_CLOSES_MS = 10000;

/** Asks once. `dated` is told the date of the answer. Throws an Error with lockward's own words, and `status` where there
 *  was an answer. */
export async function ask(path, options = {}, dated = null) {
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer", ...options });
  } catch (error) {
    // What `AbortSignal.timeout` ends has the one name, what is ended by hand the other.
    const late = error.name === "TimeoutError" || error.name === "AbortError";
    throw new Error(late ? "there was no answer in time" : "lockward cannot be reached");
  }
  const date = Date.parse(answer.headers.get("date"));
  if (date) dated?.(date);
  const body = await answer.json().catch(() => null);
  if (answer.ok && body !== null) return body;
  const error = new Error(body?.error ?? `the answer was ${answer.status} ${answer.statusText}`);
  error.status = answer.status;
  error.wait = Number(answer.headers.get("retry-after")) || null;
  throw error;
}

/** A path with what stands behind its question mark; empty values are left out. */
export function path(base, query) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== "" && value !== null && value !== undefined && value !== false) words.set(name, value);
  }
  const text = words.toString();
  return text ? `${base}?${text}` : base;
}

/** The one stream. `changed` is told of each new state: `connecting`, `live`, `lost` (and when it is tried again). */
export class Line {
  constructor(changed) {
    this.changed = changed;
    this.paused = false;
    this.wanted = null;
    this.source = null;
    this.failures = 0;
    document.addEventListener("visibilitychange", () => this.visibility());
    addEventListener("pagehide", () => this.close());
    addEventListener("pageshow", () => this.source ?? this.open());
    addEventListener("online", () => this.source ?? this.open());
  }

  /** Listens at `address` from now on. `heard` has a function for each kind of event; `probe` is an address that
   *  answers once with the same errors; `chatty` says that silence means death. */
  listen(wanted) {
    this.wanted = wanted;
    this.failures = 0;
    this.open();
  }

  pause(paused) {
    this.paused = paused;
    if (paused) this.close();
    else this.open();
  }

  close() {
    clearTimeout(this.retry);
    clearTimeout(this.silence);
    this.source?.close();
    this.source = null;
  }

  open() {
    this.close();
    if (this.paused || !this.wanted || document.hidden) return;
    this.changed(this.failures ? "lost" : "connecting");
    const source = new EventSource(this.wanted.address);
    this.source = source;
    this.listening();
    source.addEventListener("open", () => {
      this.alive();
      this.wanted.opened?.();
    });
    source.addEventListener("error", () => this.broken(source));
    for (const [kind, heard] of Object.entries(this.wanted.heard)) {
      source.addEventListener(kind, (event) => {
        if (source !== this.source) return;
        this.alive();
        heard(JSON.parse(event.data));
      });
    }
  }

  alive() {
    this.failures = 0;
    this.changed("live");
    this.listening();
  }

  listening() {
    clearTimeout(this.silence);
    if (this.wanted.chatty) this.silence = setTimeout(() => this.broken(this.source), LONGEST_SILENCE_MS);
  }

  /** The stream broke, or somebody else found out that nobody answers. Without a stream it is known already, and the
   *  next try has its time. */
  broken(source = this.source) {
    if (source === null || source !== this.source || this.paused) return;
    this.close();
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.failures);
    this.failures += 1;
    this.changed("lost", wait);
    this.retry = setTimeout(() => this.open(), wait);
    this.why();
  }

  /** Somebody else has an answer again, so the next try need not wait. */
  answered() {
    if (!this.source) this.open();
  }

  /** A browser does not tell why a stream failed: the same question, asked once, does. */
  async why() {
    const wanted = this.wanted;
    if (!wanted.probe) return;
    try {
      await ask(wanted.probe);
    } catch (error) {
      if (error.status && wanted === this.wanted) wanted.refused?.(error);
    }
  }

  visibility() {
    clearTimeout(this.hiding);
    if (document.hidden) this.hiding = setTimeout(() => this.close(), HIDDEN_CLOSES_MS);
    else if (!this.source) this.open();
  }
}
