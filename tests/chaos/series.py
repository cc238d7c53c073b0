#!/usr/bin/env python3
"""Chaos on some servers in some modes, one run after the other or some at a time, and the sum of what they count.

    tests/chaos/series.py --proxy PATH --server PATH [--server PATH] [--minutes N] [--mode all|dedicated|shared] [--seed N]
                          [--faketime PATH] [--goals] [--jobs N] [--keep FOLDER]

The minutes are those of all runs together. With --goals it fails also if less was counted than an hour is to have (GOALS,
in proportion to the time), or if many faults of a kind had no effect. A run that fails says how to do it again, and where its
history is.
"""
import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import faults as planned                    # noqa: E402
from keeper import Group, end_orderly       # noqa: E402
from run import told_of                     # noqa: E402

MODES = ("dedicated", "shared")
# What an hour of all runs together is to count, at least.
GOALS = {"operations": 2_000_000, "grants": 200_000, "overruns": 20_000, "late releases": 10_000}
GOAL_FAULTS = 50        # of each kind
MOST_WITHOUT = 0.1      # of a kind may have had no effect


def is_valkey(program):
    """Only Valkey gets on with libfaketime; Debian's Redis has an allocator that asks for the time too early."""
    done = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.lower().startswith("valkey")


class Runs:
    """The runs of a series; none goes on without it."""

    def __init__(self, options):
        self.options, self.group, self.children, self.over = options, Group(), [], False

    def one(self, server, mode, seconds, seed):
        """One run: its exit code, and what it counted."""
        options = self.options
        with tempfile.TemporaryDirectory(prefix="lockward-series-") as folder:
            summary = os.path.join(folder, "summary.json")
            command = [sys.executable, os.path.join(HERE, "run.py"), "--proxy", options.proxy, "--server", server,
                       "--mode", mode, "--seconds", "%g" % seconds, "--seed", str(seed), "--summary", summary]
            if options.faketime and is_valkey(server):
                command += ["--faketime", options.faketime]
            if options.keep:
                command += ["--keep", os.path.join(options.keep, "%s-%s" % (os.path.basename(server), mode))]
            child = subprocess.Popen(self.group.member(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True)
            self.children.append(child)
            if self.over:
                child.terminate()
            said, _ = child.communicate()
            print("==== %s\n%s" % (" ".join(command), said), end="", flush=True)
            try:
                with open(summary) as file:
                    return child.returncode, json.load(file)
            except (OSError, ValueError):
                return child.returncode or 1, None

    def all(self, runs):
        """What each came to, in order."""
        with ThreadPoolExecutor(self.options.jobs) as pool:
            try:
                return list(pool.map(lambda run: self.one(*run), runs))
            finally:
                # All are over by now, if nobody has ended this program.
                self.over = True
                for child in self.children:
                    child.terminate()


def short_of(counts, faults, without, share):
    """What was counted less often than it is to be; `faults` has every kind that can come, also with 0."""
    wanted = [(name, counts[name], goal * share) for name, goal in GOALS.items()]
    for name in ("grants", "late releases"):
        wanted.append(("half of the %s through pools and other proxies" % name,
                       counts["%s through pools and other proxies" % name], counts[name] / 2))
    wanted += [("fault " + kind, count, GOAL_FAULTS * share) for kind, count in sorted(faults.items())]
    wanted += [("fault %s that took effect" % kind, faults[kind], (1 - MOST_WITHOUT) * (faults[kind] + count))
               for kind, count in sorted(without.items())]
    return ["%s: %d of %g" % (name, count, goal) for name, count, goal in wanted if count < goal]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", action="append", required=True)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--mode", default="all", choices=("all", *MODES))
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--faketime")
    parser.add_argument("--goals", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--keep", help="a folder for the histories, kept")
    options = parser.parse_args()
    end_orderly()
    pairs = [(server, mode) for server in options.server for mode in MODES if options.mode in ("all", mode)]
    runs = [(server, mode, 60 * options.minutes / len(pairs), options.seed + number)
            for number, (server, mode) in enumerate(pairs)]
    counts, checks, without, cuts = collections.Counter(), collections.Counter(), collections.Counter(), {}
    faults = collections.Counter({kind: 0 for server, _ in pairs
                                  for kind in planned.kinds(bool(options.faketime) and is_valkey(server))})
    passed = failed = 0
    for code, told in Runs(options).all(runs):
        failed += told["failed"] if told and told["failed"] else code != 0
        if told is None:
            continue
        passed += told["clean"]
        for sums, name in ((counts, "counts"), (checks, "checks"), (faults, "faults"), (without, "without")):
            sums.update(told[name])
        for where, cut in told["cuts"].items():
            cuts.setdefault(where, collections.Counter()).update(cut)
    print("==== all of it")
    for name, sums in (("     ", counts), ("check", checks), ("fault", faults), ("none ", without)):
        for what, count in sorted(sums.items()):
            print("%s %-50s %12s" % (name, what, format(count, ",")))
    print("\n".join(told_of(cuts)))
    short = short_of(counts, faults, without, options.minutes / 60)
    for line in short:
        print("%s  less than an hour is to have: %s" % ("FAIL" if options.goals else "note", line))
    failed += len(short) if options.goals else 0
    print("chaos: %d runs, %g minutes, %d checks, first seed %d" % (
        len(runs), options.minutes, sum(checks.values()), options.seed))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
