#!/usr/bin/env python3
"""Real client libraries take locks that no rule matches: lockward suggests the right rules, and none for the rest.

    tests/checks/suggest.py --proxy PATH --server PATH

redis-py and ioredis play what Django, Laravel and hand-written programs do (tests/clients/*_traffic.*), with a cache and
markers around it. What /api/v1/suggestions then says must be these patterns with these counts; what `lockward suggest
-o toml` prints is appended to the configuration, which must pass `lockward check`, and under which the same traffic leaves
nothing to suggest.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "clients")]
from harness.installing import Broken               # noqa: E402
from harness.processes import DEFAULT_RULES, Proxy, Server     # noqa: E402
from run import commands, steps_of                  # noqa: E402

PROGRAMS = ["redis_py_traffic.py", "ioredis_traffic.js"]
LARAVEL = "laravel_database_laravel_cache_:"
# What the programs do in their 12 rounds.
COUNTED = ["keys", "acquires", "without_ttl", "releases", "releases_elsewhere", "extends", "scripts"]
EXPECTED = {
    ":1:lock:*": [12, 12, 0, 0, 0, 0, 18],      # 12 released and 4 extended by a script, either asked for twice at first
    "app:mutex:*": [12, 24, 0, 18, 0, 12, 6],
    LARAVEL + "invoice-*": [12, 36, 12, 0, 0, 12, 24],
    LARAVEL + "framework/schedule-*": [12, 12, 0, 12, 0, 0, 0],
    LARAVEL + r"laravel_unique_job:App\\Jobs\\Import:*": [12, 12, 0, 0, 0, 0, 12],
    "order:*:lock": [12, 12, 0, 12, 12, 0, 0],
    "cron-lock": [1, 12, 12, 12, 0, 0, 0],
}
COMMAND_LIMIT = 30      # seconds


class Wrong(Exception):
    """Something else than what is right."""


def expect(what, got, wanted):
    if got != wanted:
        raise Wrong("%s: expected %r, got %r" % (what, wanted, got))


def lockward(program, *words):
    done = subprocess.run([program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          text=True, timeout=COMMAND_LIMIT)
    if done.returncode != 0:
        raise Wrong("`lockward %s` ended with code %d: %s" % (" ".join(words), done.returncode, done.stderr[-1000:]))
    return done.stdout


def play(how, proxy):
    """All the traffic; each step has the result that it would have without lockward."""
    count = 0
    for program in PROGRAMS:
        for step in steps_of(program, *how[program], proxy.port):
            if "error" in step or "expected" in step and step["expected"] != step["result"]:
                raise Wrong("%s: %r" % (program, step))
            count += 1
    return count


def suggestions(proxy):
    with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/suggestions" % proxy.admin_port, timeout=5) as answer:
        return json.load(answer)


def the_right_rules(how, options, folder):
    with Server(options.server, folder) as server:
        with Proxy(options.proxy, server, DEFAULT_RULES, folder) as proxy:
            count = play(how, proxy)
            said = suggestions(proxy)
            got = {one["pattern"]: [one[name] for name in COUNTED] for one in said["uncovered"]}
            expect("patterns", sorted(got), sorted(EXPECTED))
            for pattern, counts in EXPECTED.items():
                expect(pattern, dict(zip(COUNTED, got[pattern])), dict(zip(COUNTED, counts)))
            expect("the order", [one["acquires"] for one in said["uncovered"]],
                   sorted((counts[1] for counts in EXPECTED.values()), reverse=True))
            expect("keys that were not followed", said["dropped_keys"], 0)
            with open(proxy.config) as config:
                before = config.read()
            pasted = lockward(options.proxy, "suggest", "--config", proxy.config, "-o", "toml")
        # The harness writes its own sections again; what it is given are the rules.
        with Server(options.server, folder) as fresh, \
                Proxy(options.proxy, fresh, DEFAULT_RULES + pasted, folder) as proxy:
            together = os.path.join(folder, "together.toml")
            with open(together, "w") as config:
                config.write(before + pasted)
            described = lockward(options.proxy, "check", "--config", together)
            for pattern in EXPECTED:
                if json.dumps(pattern) not in described:
                    raise Wrong("`lockward check` does not speak of %s:\n%s" % (pattern, described))
            play(how, proxy)
            expect("what is left to suggest", suggestions(proxy)["uncovered"], [])
    return "%d patterns out of %d commands, pasted and checked" % (len(EXPECTED), count)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    options = parser.parse_args()
    if not options.server:
        sys.exit("suggest: no redis-server or valkey-server on PATH: use --server $(scripts/get-server)")
    try:
        with tempfile.TemporaryDirectory(prefix="lockward-suggest-") as folder:
            said = the_right_rules(commands(PROGRAMS), options, folder)
    except (Wrong, Broken, OSError, RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
        print("FAIL  the right rules: %s" % error)
        print("0 passed, 1 failed")
        return 1
    print("ok    the right rules: %s" % said)
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
