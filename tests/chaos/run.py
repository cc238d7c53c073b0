#!/usr/bin/env python3
"""Chaos on one server in one mode, and what the checker says of its history.

    tests/chaos/run.py --proxy PATH --server PATH [--seconds N] [--mode MODE] [--seed N] [--faults KIND,...]

The history of a run that fails is kept.
"""
import collections
import json
import os
import random
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
from checker import judge, report   # noqa: E402
from faults import EVERY, WITHOUT, Faults    # noqa: E402
from history import History         # noqa: E402
from keeper import end_orderly      # noqa: E402
from scene import Scene, known      # noqa: E402
from shim import REACH              # noqa: E402

KEPT = os.path.join(HERE, "..", "..", ".cache", "chaos")     # histories of runs that failed


def coverage(faults):
    """For each place and way: at which bytes lock cycles were cut, and how often at each. (JSON has texts as keys.)"""
    cuts = {}
    for kind, _, _, detail in faults:
        for where, byte in detail if kind == "cut-bytes" else ():
            cuts.setdefault(where, collections.Counter())[str(byte)] += 1
    return cuts


def told_of(cuts):
    """That, as lines."""
    for (place, way), reach in REACH.items():
        bytes_cut = {int(byte): count for byte, count in cuts.get("%s %s" % (place, way), {}).items()}
        yield "cut   %-50s %10d   at %d of %d bytes%s" % (
            "%s lockward, %s" % ("before" if place == "front" else "behind", way), sum(bytes_cut.values()), len(bytes_cut),
            reach + 1, ", %d to %d" % (min(bytes_cut), max(bytes_cut)) if bytes_cut else "")


def play(options, folder):
    """The run itself. Returns what ended otherwise than it was told to."""
    only = [kind for kind in options.faults.split(",") if kind]
    with Scene(options, folder) as scene:
        faults = Faults(scene, random.Random(options.seed), [kind for kind in only if kind != "none"])
        faults.first_bag(options.seed)
        scene.begin()
        if "none" in only:
            time.sleep(options.seconds)
        else:
            faults.run(options.seconds, options.every)
        scene.stop_clients()
        return scene.fallen


def keep(options, folder):
    """Says where the history is from now on."""
    if not options.keep:
        kept = os.path.join(KEPT, "%s-%s-%d" % (os.path.basename(options.server), options.mode, options.seed))
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("appendonlydir"))
        folder = kept
    print("FAIL  judge it again: tests/chaos/checker.py %s" % os.path.relpath(os.path.join(folder, "history")), flush=True)


def main():
    parser = known(__doc__)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--pace", type=float, default=1.0, help="longer pauses between the tries of a client")
    parser.add_argument("--keep", help="a folder for the history, kept")
    parser.add_argument("--every", type=float, default=EVERY, help="seconds from one fault to the next")
    parser.add_argument("--faults", default="", help="only these kinds, with commas; `none` for none")
    parser.add_argument("--faketime", help="the program of scripts/get-tool faketime, for jumps of the server's clock")
    parser.add_argument("--summary", help="a file for all counts, as JSON")
    options = parser.parse_args()
    end_orderly()
    with tempfile.TemporaryDirectory(prefix="lockward-chaos-") as folder:
        folder = options.keep or folder
        try:
            fallen = play(options, folder)
            history = History().read(os.path.join(folder, "history"))
            verdict = judge(history)
        except Exception:
            keep(options, folder)
            raise
        failed = len(verdict.found) + len(verdict.blind()) + len(fallen)
        cuts, without = coverage(history.faults), [fault[3] for fault in history.faults if fault[0] == WITHOUT]
        print("\n".join([*report(history, verdict), *told_of(cuts), *("FAIL  " + text for text in fallen)]))
        for kind, detail in without:
            print("note  %s had no effect: %s" % (kind, detail))
        if failed:
            keep(options, folder)
    kinds = collections.Counter(fault[0] for fault in history.faults if fault[0] != WITHOUT)
    if options.summary:
        with open(options.summary, "w") as file:
            json.dump({"counts": verdict.counts, "checks": verdict.checks, "failed": failed, "clean": verdict.clean(),
                       "cuts": cuts, "faults": kinds, "without": collections.Counter(kind for kind, _ in without)}, file)
    print("chaos: %s, %s, seed %d: %d operations, %d checks, %d faults" % (
        os.path.basename(options.server), options.mode, options.seed, len(history.ops), sum(verdict.checks.values()),
        sum(kinds.values())))
    print("%d passed, %d failed" % (verdict.clean(), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
