#!/usr/bin/env python3
"""The baseline: the same legacy clients, with the same seed, directly on the server and through lockward. No faults, but
that some holders work longer than their TTL, as they do.

    tests/chaos/baseline.py --proxy PATH --server PATH [--seconds N] [--mode MODE] [--seed N] [--pace N]

Prints the table of docs/chaos.md (without options, the one that stands there). Fails if anything remains through lockward
that lockward promises to prevent, or if nothing went wrong without it (then nothing was shown). A critical section is what
its client takes for one: from the answer to its SET to its DEL.
"""
import bisect
import collections
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
from harness.checking import Check      # noqa: E402
from history import FOREVER, History    # noqa: E402
from keeper import end_orderly          # noqa: E402
from leases import Key                  # noqa: E402
from scene import Scene, known          # noqa: E402

LINES = (
    ("grants", "locks taken"),
    ("late", "releases that came after the TTL"),
    ("foreign", "**releases that removed the lock of another who was at work**"),
    ("unbelieved", "releases within the TTL that were answered 0"),
    ("overlaps", "critical sections that overlapped another"),
    ("taken away", "… because a lock was removed within its TTL"),
    ("excepted", "… of which by the second exception of promise 2"),
    ("outlived", "… because its holder worked longer than its TTL"),
)


def played(options, direct):
    """What happened in one run."""
    options.faketime = None
    with tempfile.TemporaryDirectory(prefix="lockward-baseline-") as folder:
        with Scene(options, folder, direct=direct, cast="legacy") as scene:
            scene.begin()
            time.sleep(options.seconds)
            scene.stop_clients()
        history = History().read(scene.history)
    ops, counts = collections.defaultdict(list), collections.Counter()
    for op in history.ops:
        ops[op.key].append(op)
    for name in ops:
        tell(Key(name, ops[name], [], history), counts)
    counts["unknown"] = sum(op.result is None for op in history.ops)
    return counts


def tell(key, counts):
    """Adds what one lock's history tells."""
    leases = [lease for lease in key.leases if lease.granted and lease.release is not None and lease.release.answered()]
    leases.sort(key=lambda lease: lease.since)
    inside = []
    for lease in leases:
        inside = [other for other in inside if other.release.start > lease.since]
        for other in inside:
            counts["overlaps"] += 1
            # In doubt it is taken for the holder's own fault.
            removed = lease.start > other.latest and lease.latest < other.due_least
            counts["taken away" if removed else "outlived"] += 1
            counts["excepted"] += removed and is_excepted(key, other, lease)
        inside.append(lease)
        release = lease.release
        counts["grants"] += 1
        counts["late"] += release.start > lease.due_most
        counts["unbelieved"] += release.end < lease.due_least and release.result == 0
    starts = [lease.start for lease in leases]
    for lease in leases:
        release = lease.release
        if release.result == 1:
            at = bisect.bisect_right(starts, release.start)
            counts["foreign"] += any(other is not lease and other.covers(release.start, release.end)
                                     for other in leases[max(0, at - 20):at])


def is_excepted(key, lease, following):
    """Whether this lease may have been ended by a late release of its owner that came on the very connection that took it, the
    late task's own being closed. (The README names that exception.)"""
    for op in key.releases:
        meant = key.meant(op)
        if (op.result == 1 and op.connection == lease.connection and meant is not None and meant is not lease
                and lease.start <= op.latest and op.start <= following.latest
                and key.history.closed.get(meant.connection, FOREVER) <= op.latest):
            return True
    return False


def main():
    parser = known(__doc__)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--pace", type=float, default=1.0, help="all times longer, so that a busy machine matters less")
    parser.set_defaults(seed=3)
    options = parser.parse_args()
    end_orderly()
    directly, through = played(options, True), played(options, False)
    print("baseline: %s, %s, %g s each, pace %g, seed %d\n\n| | directly | through lockward |\n|---|---:|---:|" % (
        os.path.basename(options.server), options.mode, options.seconds, options.pace, options.seed))
    for name, text in LINES:
        print("| %s | %s | %s |" % (text, format(directly[name], ","), format(through[name], ",")))
    print()
    check = Check("baseline, seed %d" % options.seed)
    check("without lockward others' locks are removed", directly["foreign"] > 0 and directly["taken away"] > 0, True)
    check("through lockward none is, but by that exception", (through["foreign"], through["taken away"]),
          (0, through["excepted"]))
    check("some hold too long", through["outlived"] > 0 and through["late"] > 0, True)
    check("answers are known", 100 * (directly["unknown"] + through["unknown"]) <= directly["grants"] + through["grants"], True)
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
