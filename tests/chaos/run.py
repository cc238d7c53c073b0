#!/usr/bin/env python3
"""Chaos on one server in one mode, and what the checker says of its history.

    tests/chaos/run.py --proxy PATH --server PATH [--seconds N] [--mode MODE] [--seed N] [--faults KIND,...]
"""
import argparse
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
from faults import EVERY, Faults    # noqa: E402
from history import History         # noqa: E402
from scene import Scene             # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--mode", default="dedicated")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--pace", type=float, default=1.0, help="longer pauses between the tries of a client")
    parser.add_argument("--keep", help="a folder for the history, kept")
    parser.add_argument("--every", type=float, default=EVERY, help="seconds from one fault to the next")
    parser.add_argument("--faults", default="", help="only these kinds, with commas; `none` for none")
    parser.add_argument("--faketime", help="the program of scripts/get-tool faketime, for jumps of the server's clock")
    parser.add_argument("--summary", help="a file for all counts, as JSON")
    options = parser.parse_args()
    only = [kind for kind in options.faults.split(",") if kind]
    with tempfile.TemporaryDirectory(prefix="lockward-chaos-") as folder:
        folder = options.keep or folder
        with Scene(options, folder) as scene:
            faults = Faults(scene, random.Random(options.seed), [kind for kind in only if kind != "none"])
            faults.first_bag(options.seed)
            scene.begin()
            if "none" in only:
                time.sleep(options.seconds)
            else:
                faults.run(options.seconds, options.every)
            scene.stop_clients()
        history = History().read(scene.history)
        verdict = judge(history)
    print("\n".join(report(history, verdict)))
    if options.summary:
        with open(options.summary, "w") as file:
            json.dump({"counts": verdict.counts, "checks": verdict.checks, "found": verdict.found, "clean": verdict.clean(), "blind": verdict.blind(),
                       "faults": collections.Counter(fault[0] for fault in history.faults), "jumps": len(history.jumps),
                       "cuts": [fault[3] for fault in history.faults if fault[0] == "cut-bytes"][-1:]}, file)
    print("chaos: %s, %s, seed %d: %d operations, %d checks, %d faults" % (
        os.path.basename(options.server), options.mode, options.seed, len(history.ops), sum(verdict.checks.values()),
        len(history.faults)))
    print("%d passed, %d failed" % (verdict.clean(), len(verdict.found) + len(verdict.blind())))
    return 1 if verdict.found or verdict.blind() else 0


if __name__ == "__main__":
    sys.exit(main())
