#!/usr/bin/env python3
"""The live page in a real headless Chromium, with a real server and lockward behind it.

    tests/page/run.py --proxy PATH --server PATH [--only TEXT] [--chromium PATH]

Each function `test_...` of the modules beside this file is one test. After each of them the page must have made no
complaint, broken no content policy, and asked nobody but lockward. Figures that a test measures are printed. Needs
Chromium (scripts/get-tool chromium) and Playwright for Python (pinned in requirements.txt, put into .cache/page); without
them it fails: it skips nothing.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import looks                                    # noqa: E402
import parts                                    # noqa: E402
import single                                   # noqa: E402
import table                                    # noqa: E402
from browser import Browser, Wrong              # noqa: E402
from harness.installing import Broken           # noqa: E402
from harness.processes import Proxy, Server     # noqa: E402
from harness import marks                       # noqa: E402

TOP = os.path.join(HERE, "..", "..")
TESTS = [(module.__name__ + ": " + name[5:].replace("_", " "), test) for module in (table, single, looks, parts)
         for name, test in vars(module).items() if name.startswith("test_")]


class World:
    """A server, and lockwards in front of it."""

    def __init__(self, program, server, folder):
        self.program, self.server, self.folder = program, server, folder

    def proxy(self, rules=None, token=marks.ADMIN_TOKEN):
        """An empty server behind a new lockward."""
        self.server.revive()
        with self.server.connect() as connection:
            connection.ask("FLUSHALL")
        rules = rules or '[[locks]]\nname = "jobs"\npattern = "lock:*"\nowner = "client-name"\n'
        return Proxy(self.program, self.server, rules, self.folder, token=token)


def chromium():
    done = subprocess.run([os.path.join(TOP, "scripts", "get-tool"), "chromium"], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Broken("there is no Chromium to test with (see above)")
    return done.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", required=True)
    parser.add_argument("--chromium", help="the browser's program")
    parser.add_argument("--only", default="", help="only tests whose name holds this text")
    options = parser.parse_args()
    wanted = [(name, test) for name, test in TESTS if options.only in name]
    try:
        browser = Browser(options.chromium or chromium())
    except (Broken, OSError) as error:
        print("FAIL  page: %s" % error)
        print("0 passed, %d failed" % len(wanted))
        return 1
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="lockward-page-") as folder, Server(options.server, folder) as server:
        world = World(os.path.abspath(options.proxy), server, folder)
        for name, test in wanted:
            begun, wrong = time.monotonic(), None
            try:
                said = test(browser, world) or ""
            except Wrong as error:
                wrong = str(error)
            except Exception as error:      # whatever broke, the other tests are run
                wrong = "%s\n%s" % (error, traceback.format_exc(limit=-3))
            passed, failed = passed + (not wrong), failed + bool(wrong)
            print("%s  %s (%.1f s)%s" % ("FAIL" if wrong else "ok  ", name, time.monotonic() - begun,
                                         ": %s" % (wrong or said) if wrong or said else ""), flush=True)
    browser.close()
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
