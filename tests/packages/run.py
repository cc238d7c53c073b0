#!/usr/bin/env python3
"""What packages are made of, each shown to its validator; and the Debian package installed under a real systemd.

    tests/packages/run.py --proxy PATH --server PATH [--only TEXT] [--all]

Validators that are not here are fetched (scripts/get-tool, and requirements.txt beside this file into .cache); one that
cannot be had is a failure, not a skip. Installing, starting and removing the package happens in namespaces of its own
(boot.py), which needs root and a place that allows them (few containers do): elsewhere it says that it was not run, and with
--all (`make packages`) that is a failure.
"""
import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.realpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
from harness.installing import Broken, python_libraries     # noqa: E402

TOOLS = ("fish", "lintian", "man", "systemd-analyze", "zsh")
CACHE = os.path.join(TOP, ".cache", "packages")


class Wrong(Exception):
    """Something that does not fit."""


class Impossible(Exception):
    """A check that cannot be made in this place, whatever there is to check."""


class Given:
    """What the checks look at, and by what."""

    def __init__(self, options, folder):
        self.program, self.server, self.folder = os.path.abspath(options.proxy), options.server, folder
        self.all = options.all
        self.libraries = python_libraries(CACHE, os.path.join(HERE, "requirements.txt"))
        sys.path.insert(0, self.libraries)
        self.made, self.one_at_a_time = {}, threading.Lock()

    def once(self, name, make):
        """What `make` makes, made by the first who asks."""
        with self.one_at_a_time:
            if name not in self.made:
                self.made[name] = make()
            return self.made[name]

    def path(self, *parts):
        return os.path.join(TOP, *parts)

    def read(self, *parts):
        with open(self.path(*parts)) as file:
            return file.read()

    def fetch(self, name):
        """The path of a tool; empty, if it cannot be had."""
        return self.once(name, lambda: subprocess.run(
            [self.path("scripts", "get-tool"), name], stdout=subprocess.PIPE, text=True).stdout.strip())

    def tool(self, name):
        path = self.fetch(name)
        if not path:
            raise Wrong("there is no %s (see above)" % name)
        return path

    def run(self, *command, code=0, **options):
        """The output of a command, which must end with this code."""
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=120, **{"stdin": subprocess.DEVNULL, **options})
        if done.returncode != code:
            raise Wrong("%s ended with %d: %s" % (" ".join(command[:4]), done.returncode, done.stdout.strip()[-1500:]))
        return done.stdout

    def lockward(self, *arguments, **options):
        return self.run(self.program, *arguments, **options)

    def scratch(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return path

    def package(self):
        """The Debian package, made of the program under test."""
        return self.once("package", lambda: self.run(
            self.path("scripts", "deb"), "--program", self.program, "--out", self.folder, "--level", "0").strip())


def checks():
    """All of them, the slow ones first: they run two at a time."""
    import deployed
    import service
    import texts
    return [*service.SLOW, *texts.CHECKS, *service.CHECKS, *deployed.CHECKS]


def outcome(check, given):
    """The line to print, and whether it is a good one; `None`: neither."""
    name, begun = check.__name__.replace("_", " "), time.monotonic()
    try:
        said = check(given)
        return "ok    %s: %s (%.1f s)" % (name, said, time.monotonic() - begun), True
    except Impossible as error:
        return "NOT RUN  %s: %s" % (name, error), False if given.all else None
    except (Wrong, Broken, OSError, RuntimeError, subprocess.TimeoutExpired, LookupError, ValueError) as error:
        return "FAIL  %s: %s" % (name, error or type(error).__name__), False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--only", default="", help="only checks whose name holds this text")
    parser.add_argument("--all", action="store_true", help="what cannot be made in this place is a failure")
    options = parser.parse_args()
    passed = failed = 0
    # Other users look into it, too: services have one of their own.
    with tempfile.TemporaryDirectory(prefix="lockward-packages-") as folder:
        os.chmod(folder, 0o755)
        try:
            given = Given(options, folder)
        except Broken as error:
            print("FAIL  packages: %s\n0 passed, 1 failed" % error)
            return 1
        # Before anything else: what is installed now must not change the files below a machine that runs (boot.py).
        for name in TOOLS:
            given.fetch(name)
        wanted = [check for check in checks() if options.only in check.__name__.replace("_", " ")]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for line, good in pool.map(lambda check: outcome(check, given), wanted):
                print(line, flush=True)
                passed, failed = passed + (good is True), failed + (good is False)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    # The checks raise the `Wrong` of the module of this name.
    sys.modules["run"] = sys.modules["__main__"]
    sys.exit(main())
