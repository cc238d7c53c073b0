"""A headless Chromium that writes down everything a page does: what it asks for, what it complains of.

The page is driven through Playwright, with the browser that scripts/get-tool finds; Playwright downloads none.
"""
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from harness.installing import python_libraries     # noqa: E402

CACHE = os.path.join(HERE, "..", "..", ".cache", "page")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync"]
LIMIT = 10.0        # seconds that anything may take that a page is waited for
PHONE, DESKTOP = (390, 844), (1280, 800)

# Before the page's own scripts: writes down what the content policy forbade, and when a row came or went.
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective + " " + event.blockedURI));
window.watch = (key) => {
  const seen = [], there = () => [...document.querySelectorAll("table.locks a.key")].some((link) => link.textContent === key);
  let last = false;
  const look = () => { if (there() !== last) { last = !last; seen.push([last, Date.now()]); } };
  new MutationObserver(look).observe(document.documentElement, { subtree: true, childList: true, characterData: true });
  window.seen = seen;
};
"""


class Wrong(Exception):
    """The page is not as it should be."""


def expect(truth, *said):
    if not truth:
        raise Wrong(" ".join(str(part) for part in said))


def usually(times):
    """What four of five of these times do not exceed: one hiccup of a busy machine is not the page's fault."""
    return sorted(times)[len(times) * 4 // 5 - 1]


class Page:
    """One tab with a profile of its own. `allowed` are texts of console messages that a test brings about on purpose."""

    def __init__(self, context, base, allowed):
        self.context, self.base, self.allowed = context, base, allowed
        self.tab = context.new_page()
        self.requests, self.complaints = [], []
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.on("console", lambda message: message.type in ("error", "warning") and self.complain(message.text))
        self.tab.on("pageerror", lambda error: self.complain("exception: %s" % error))
        self.tab.on("dialog", lambda dialog: (self.complain("a dialog: " + dialog.message), dialog.dismiss()))
        self.tab.add_init_script(WATCH)

    def complain(self, text):
        if not any(part in text for part in self.allowed):
            self.complaints.append(text)

    def open(self, hash="#/locks"):
        self.tab.goto(self.base + "/" + hash)
        return self

    def js(self, function, *arguments):
        return self.tab.evaluate(function, *arguments)

    def text(self, selector):
        return self.tab.locator(selector).first.inner_text()

    def texts(self, selector):
        return self.js("(selector) => [...document.querySelectorAll(selector)].map((node) => node.textContent)", selector)

    def count(self, selector):
        return self.tab.locator(selector).count()

    def until(self, what, check, limit=LIMIT):
        """Waits until `check()` is true; `what` says what did not come."""
        end = time.monotonic() + limit
        while True:
            result = check()
            if result:
                return result
            expect(time.monotonic() < end, "in %.0f s did not come: %s" % (limit, what))
            self.tab.wait_for_timeout(20)

    def live(self):
        self.until("the state 'live'", lambda: self.text("#link-words") == "live")
        return self

    def keys(self):
        """The keys of the table as they are shown, from top to bottom."""
        return self.texts("table.locks:not([hidden]) tbody a.key")

    def row(self, key):
        """The cells of one row by their names."""
        return self.js("""(key) => {
          const row = [...document.querySelectorAll("table.locks tbody tr")].find((row) => row.querySelector("a.key").textContent === key);
          return row && Object.fromEntries([...row.querySelectorAll("td")].map((cell) => [cell.dataset.label, cell.innerText]));
        }""", key)

    def faults(self):
        """Everything that no page of lockward may do."""
        faults = list(self.complaints)
        faults += ["forbidden by the content policy: %s" % one for one in self.js("() => window.violations")]
        faults += ["asked elsewhere: %s" % url for url in self.requests if not url.startswith(self.base + "/")]
        return faults

    def end(self):
        faults = self.faults()
        self.context.close()
        expect(not faults, "; ".join(faults))


class Browser:
    """The browser; `page` gives a tab that must have no faults at its end."""

    def __init__(self, program, **environment):
        sys.path.insert(0, python_libraries(CACHE, os.path.join(HERE, "requirements.txt")))
        from playwright.sync_api import sync_playwright
        self.driver = sync_playwright().start()
        self.folder = tempfile.TemporaryDirectory(prefix="lockward-browser-")
        self.chromium = self.driver.chromium.launch(executable_path=program, args=ARGUMENTS, 
                                                    env=dict(os.environ, HOME=self.folder.name, **environment))

    def page(self, proxy, size=DESKTOP, scheme="light", allowed=(), **options):
        width, height = size
        context = self.chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **options)
        context.set_default_timeout(LIMIT * 1000)
        return Tab(Page(context, "http://127.0.0.1:%d" % proxy.admin_port, allowed))

    def close(self):
        self.chromium.close()
        self.driver.stop()
        self.folder.cleanup()


class Tab:
    """`with` for a page: its faults count at a good end; a bad end says its own."""

    def __init__(self, page):
        self.page = page

    def __enter__(self):
        return self.page

    def __exit__(self, kind, *_):
        if kind is None:
            self.page.end()
        else:
            self.page.context.close()
