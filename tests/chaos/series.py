#!/usr/bin/env python3
"""Chaos on some servers in some modes, one run after the other, and the sum of what they count.

    tests/chaos/series.py --proxy PATH --server PATH [--server PATH] [--minutes N] [--mode all|dedicated|shared] [--seed N]
                          [--faketime PATH] [--goals] [--keep FOLDER]

The minutes are those of all runs together. With --goals it fails also if less was counted than an hour is to have (GOALS,
in proportion to the time). A run that fails says how to do it again.
"""
import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = ("dedicated", "shared")
# What an hour of all runs together is to count, at least.
GOALS = {"operations": 2_000_000, "grants": 200_000, "overruns": 20_000, "late releases": 10_000}
GOAL_FAULTS = 50


def is_valkey(program):
    """Only Valkey gets on with libfaketime; Debian's Redis has an allocator that asks for the time too early."""
    done = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.lower().startswith("valkey")


def one(options, server, mode, seconds, seed, folder):
    """One run: its exit code, and what it counted."""
    summary = os.path.join(folder, "summary.json")
    command = [sys.executable, os.path.join(HERE, "run.py"), "--proxy", options.proxy, "--server", server, "--mode", mode,
               "--seconds", "%g" % seconds, "--seed", str(seed), "--summary", summary]
    if options.faketime and is_valkey(server):
        command += ["--faketime", options.faketime]
    if options.keep:
        command += ["--keep", os.path.join(options.keep, "%s-%s" % (os.path.basename(server), mode))]
    print("==== %s" % " ".join(command), flush=True)
    code = subprocess.call(command)
    try:
        with open(summary) as file:
            return code, json.load(file)
    except (OSError, ValueError):
        return code or 1, None


def short_of(counts, faults, share):
    """What was counted less often than it is to be."""
    wanted = [(name, counts[name], goal * share) for name, goal in GOALS.items()]
    for name in ("grants", "late releases"):
        wanted.append(("half of the %s through pools and other proxies" % name,
                       counts["%s through pools and other proxies" % name], counts[name] / 2))
    wanted += [("fault " + kind, count, GOAL_FAULTS * share) for kind, count in sorted(faults.items())]
    return ["%s: %d of %d" % (name, count, goal) for name, count, goal in wanted if count < goal]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", action="append", required=True)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--mode", default="all", choices=("all", *MODES))
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--faketime")
    parser.add_argument("--goals", action="store_true")
    parser.add_argument("--keep", help="a folder for the histories, kept")
    options = parser.parse_args()
    runs = [(server, mode) for server in options.server for mode in MODES if options.mode in ("all", mode)]
    counts, checks, faults, failed = collections.Counter(), collections.Counter(), collections.Counter(), 0
    passed = 0
    for number, (server, mode) in enumerate(runs):
        with tempfile.TemporaryDirectory(prefix="lockward-series-") as folder:
            code, told = one(options, server, mode, 60 * options.minutes / len(runs), options.seed + number, folder)
        if told is None:
            failed += 1
            continue
        for sum_of, name in ((counts, "counts"), (checks, "checks"), (faults, "faults")):
            sum_of.update(told[name])
        passed += told["clean"]
        failed += len(told["found"]) + len(told["blind"]) or code != 0
    print("==== all of it")
    for name, sums in (("     ", counts), ("check", checks), ("fault", faults)):
        for what, count in sorted(sums.items()):
            print("%s %-50s %12s" % (name, what, format(count, ",")))
    short = short_of(counts, faults, options.minutes / 60)
    for line in short:
        print("%s  less than an hour is to have: %s" % ("FAIL" if options.goals else "note", line))
    failed += len(short) if options.goals else 0
    print("chaos: %d runs, %g minutes, %d checks, first seed %d" % (
        len(runs), options.minutes, sum(checks.values()), options.seed))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
