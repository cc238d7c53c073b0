#!/usr/bin/env python3
"""Judges the history of a run, and nothing else: was a promise broken that no unknown outcome excuses?

    tests/chaos/checker.py FOLDER

Everything about one key is sorted once and swept once. Whatever nobody can know is taken as innocent: an operation whose
reply was lost may have been executed or not, until nothing of it can be under way any more. docs/chaos.md says what that
leaves unseen.
"""
import collections
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
from causes import MS                                       # noqa: E402
from connections import LOST, REPLIES                       # noqa: E402
from history import SOME, UNDONE, UNTRUE, History           # noqa: E402
from leases import MARGIN, Key                              # noqa: E402

TWO_HOLDERS = "two surely-held leases at once"
TOOK_EFFECT = "a foreign or late release that took effect"
OVERWRITTEN = "a lock that somebody else overwrote"
TTL_CHANGED = "a TTL that somebody else changed"
NOT_GROWN = "a fencing token that did not grow"
NOT_FREE = "a lock not free after its end"
VANISHED = "a surely-held lease that vanished"
# Each with a check without which it was not looked for.
KINDS = {TWO_HOLDERS: "leases held alone", TOOK_EFFECT: "releases that met a sure lease of another owner",
         OVERWRITTEN: "overwrites that met a sure lease of another owner", UNTRUE: "values read",
         TTL_CHANGED: "a look found the holder's TTL", NOT_GROWN: "fencing tokens", REPLIES: "nonces came back",
         LOST: "connections", NOT_FREE: "a look found the lock free", VANISHED: "a look found a lock that may be there"}


class Verdict:
    """What was found, and how much was looked at."""

    def __init__(self):
        self.found, self.checks, self.counts = [], collections.Counter(), collections.Counter()
        self.sums = {}      # of releases of several locks: the operation, and how many it must and can have released

    def fault(self, what, key, text):
        self.found.append((what, key, text))

    def clean(self):
        """How many kinds of faults were looked for and not found."""
        found = {what for what, _, _ in self.found}
        return sum(kind not in found and self.checks[check] > 0 for kind, check in KINDS.items())

    def blind(self):
        """The kinds of faults that nothing in this history could have shown."""
        return [kind for kind, check in KINDS.items() if not self.checks[check]]


def judge(history):
    verdict = Verdict()
    for what, text in history.wrong:
        verdict.fault(what, "", text)
    verdict.checks["nonces came back"] = history.nonces
    verdict.checks["connections"] = len(history.opened)
    ops, looks = collections.defaultdict(list), collections.defaultdict(list)
    for op in history.ops:
        ops[op.key].append(op)
    for start, end, lefts in history.looks:
        for name, left in zip(history.keys, lefts):
            looks[name].append((start, end, left))
    for name in sorted(ops):
        key = Key(name, ops[name], looks[name], history)
        overlaps(key, verdict)
        Sweep(key, verdict).run()
        if key.rule == "name":
            fences(key, verdict)
        count(key, verdict)
    sums(verdict)
    return verdict


def overlaps(key, verdict):
    """No two are surely held at one moment."""
    held = None
    for lease in sorted((lease for lease in key.leases if lease.since < lease.sure_until), key=lambda lease: lease.since):
        verdict.checks["leases held alone"] += 1
        if held is not None and lease.since < held.sure_until:
            verdict.fault(TWO_HOLDERS, key.name, "%r and %r" % (held, lease))
        if held is None or lease.sure_until > held.sure_until:
            held = lease


def sums(verdict):
    """A release of several locks says how many it released; which ones, nobody is told."""
    for op, least, most in verdict.sums.values():
        verdict.checks["sums of releases"] += 1
        if op.reply < least:
            verdict.fault(UNTRUE, op.key, "at least %d of %d had to be released: %r" % (least, op.parts, op))
        elif op.reply > most:
            verdict.fault(TOOK_EFFECT, op.key, "at most %d of %d can have been there: %r" % (most, op.parts, op))


class Sweep:
    """One key's operations and looks in order, each beside the leases that were there or may have been."""

    def __init__(self, key, verdict):
        self.key, self.verdict, self.active, self.next = key, verdict, [], 0

    def run(self):
        """`active` are the leases that may be there, from those that begin before this moment's end."""
        events = [(op.start, 0, op) for op in self.key.ops if op.answered()]
        events += [(look[0], 1, look) for look in self.key.looks]
        events.sort(key=lambda event: event[:2])
        leases = self.key.leases
        for start, kind, what in events:
            end = what.end if kind == 0 else what[1]
            while self.next < len(leases) and leases[self.next].start <= end:
                self.active.append(leases[self.next])
                self.next += 1
            self.active = [lease for lease in self.active if lease.over_by >= start]
            here = [lease for lease in self.active if lease.may_be(start, end)]
            if kind == 1:
                self.looked(what, here)
            else:
                getattr(self, what.spelling)(what, here)

    def fault(self, what, text, *more):
        self.verdict.fault(what, self.key.name, "%s; %s" % (text, "; ".join(repr(part) for part in more) or "no lease"))

    def sure(self, here, start, end):
        """The lease that was surely held all that time, if any."""
        return next((lease for lease in here if lease.covers(start, end)), None)

    # ---- looks at the server

    def looked(self, look, here):
        start, end, left = look
        held = self.sure(here, start, end)
        if left == -2:
            if held:
                self.fault(VANISHED, "the server had no lock at %.3f ms" % (start / MS), held)
            self.verdict.checks["a look found the lock free"] += 1
            return
        if not here:
            self.fault(NOT_FREE, "the server had a lock with %d ms at %.3f ms" % (left, start / MS))
        elif left == -1:
            self.fault(TTL_CHANGED, "a lock without TTL at %.3f ms" % (start / MS), *here)
        elif held and not any(jump[0] <= end and jump[1] >= held.start for jump in self.key.history.jumps):
            least, most = start + left * MS, end + (left + 1) * MS
            if most < held.due_least - MARGIN or least > held.due_most + MARGIN:
                self.fault(TTL_CHANGED, "%d ms left at %.3f ms, due between %.3f and %.3f" % (
                    left, start / MS, held.due_least / MS, held.due_most / MS), held)
            self.verdict.checks["a look found the holder's TTL"] += 1
        self.verdict.checks["a look found a lock that may be there"] += 1

    # ---- acquires

    def set(self, op, here):
        self.verdict.checks["acquires"] += 1
        if op.result == 1:
            held = self.sure([lease for lease in here if lease is not op.lease], op.start, op.end)
            if held:
                self.fault(TWO_HOLDERS, "granted while it was held: %r" % op, held)
        elif not here:
            self.fault(NOT_FREE, "refused though nobody can have held it: %r" % op)
        elif op.seen:
            self.value(op, here)

    setget = setnx = set

    def value(self, op, here):
        """The value that was read is that of a lease that may be there, and of the one that surely is."""
        held = self.sure(here, op.start, op.end)
        fitting = [lease for lease in here if "$%s.%d" % (lease.op.process, lease.op.number) == op.seen]
        self.verdict.checks["values read"] += 1
        if not fitting or held and held not in fitting:
            self.fault(UNTRUE, "not the value of a holder: %r" % op, *here)

    # ---- releases

    def del_(self, op, here):
        self.verdict.checks["releases"] += 1
        meant, held = self.key.meant(op), self.sure(here, op.start, op.end)
        if held and held is not meant:
            self.verdict.checks["releases that met a sure lease of %s" % (
                "the same owner" if held.owner == op.owner else "another owner")] += 1
        due = meant is not None and meant.owner == op.owner and (
            meant.since <= op.start and op.end <= meant.untouched_until) and not self.key.owners.owes(meant, op)
        if op.result is SOME:
            _, least, most = self.verdict.sums.get((op.process, op.number), (op, 0, 0))
            mine = any(lease.owner == op.owner for lease in here)
            self.verdict.sums[op.process, op.number] = (op, least + due, most + mine)
        elif op.result == 1:
            if held and held is not meant:
                self.fault(TOOK_EFFECT, "%r" % op, held, *([meant] if meant else []))
            elif not any(lease.owner == op.owner for lease in here):
                self.fault(TOOK_EFFECT, "nothing of this owner can have been there: %r" % op, *here)
        elif op.result == 0 and meant is not None and meant.owner == op.owner:
            if meant.since <= op.start and op.end <= meant.untouched_until:
                self.verdict.checks["releases of a sure holder that got 0"] += 1
                if due:
                    self.fault(UNTRUE, "0 for a sure holder: %r" % op, meant)

    # ---- extends

    def pexpire(self, op, here):
        self.verdict.checks["extends"] += 1
        meant = self.key.meant(op)
        if op.result == 1 and not any(lease.owner == op.owner for lease in here):
            self.fault(TTL_CHANGED, "nothing of this owner can have been there: %r" % op, *here)
        held = self.sure(here, op.start, op.end)
        if op.result == 1 and held and held.owner != op.owner:
            self.fault(TTL_CHANGED, "%r" % op, held)
        if op.result == 0 and held and held is meant and held.connection == op.connection:
            self.fault(UNTRUE, "0 for the holder: %r" % op, held)

    # ---- overwrites

    def overwrite(self, op, here):
        """Done for the owner of the lease, and on a free lock; refused to everybody else."""
        self.verdict.checks["overwrites"] += 1
        held = self.sure([lease for lease in here if lease is not op.lease], op.start, op.end)
        if held and held.owner != op.owner:
            self.verdict.checks["overwrites that met a sure lease of another owner"] += 1
            if op.result == 1:
                self.fault(OVERWRITTEN, "%r" % op, held)
        if op.result == 1:
            return
        if not here:
            self.fault(NOT_FREE, "refused though nobody can have held it: %r" % op)
        elif held and held is self.key.meant(op) and held.owner == op.owner and (
                held.connection == op.connection or not self.key.owners.owes(held, op)):
            self.fault(UNTRUE, "refused to the holder: %r" % op, held)

    # ---- reads

    def get(self, op, here):
        held = self.sure(here, op.start, op.end)
        if op.result:
            if not here:
                self.fault(NOT_FREE, "a value though nobody can have held it: %r" % op)
            else:
                self.value(op, here)
        elif held:
            self.fault(VANISHED, "%r" % op, held)

    def fence(self, op, here):
        held, meant = self.sure(here, op.start, op.end), self.key.meant(op)
        if held is None or held is not meant:
            if op.result and not any(lease.owner == op.owner for lease in here):
                self.fault(UNTRUE, "a token of somebody else: %r" % op, *here)
            return
        if op.result:
            held.tokens.append(int(str(op.seen).lstrip("$")))
        elif held.connection == op.connection:
            self.fault(UNTRUE, "no token for the holder: %r" % op, held)


setattr(Sweep, "del", Sweep.del_)


def fences(key, verdict):
    """Of two leases one behind the other the second has the greater token; each has one and the same."""
    known = [lease for lease in key.leases if lease.tokens and lease.first is lease]
    starts = sorted(known, key=lambda lease: lease.start)
    ends = sorted(known, key=lambda lease: lease.latest)
    at, greatest = 0, None
    for lease in starts:
        if len(set(lease.tokens)) > 1:
            verdict.fault(NOT_GROWN, key.name, "tokens %r of one lease: %r" % (lease.tokens, lease))
        while ends[at].latest < lease.start:
            if greatest is None or ends[at].tokens[0] > greatest.tokens[0]:
                greatest = ends[at]
            at += 1
        verdict.checks["fencing tokens"] += 1
        if greatest is not None and lease.tokens[0] <= greatest.tokens[0] and not forgotten(key, greatest, lease):
            verdict.fault(NOT_GROWN, key.name, "%d, then %d: %r and %r" % (
                greatest.tokens[0], lease.tokens[0], greatest, lease))


def forgotten(key, first, second):
    """Whether the server lost the last token, and its clock was put back."""
    return any(start <= second.latest and end >= first.start for start, end in key.history.losses) and any(
        jump[2] < 0 for jump in key.history.jumps)


def count(key, verdict):
    """For the summary: what happened on this key."""
    counts = verdict.counts
    for op in key.ops:
        counts["operations"] += 1
        counts["operations: " + op.kind] += 1
        counts["unknown outcomes"] += op.result is None
        counts["refused by the server"] += op.result is UNDONE
    for lease in key.leases:
        if not lease.granted:
            continue
        if lease.op.spelling == "overwrite":
            counts["overwrites done"] += 1
            if lease.maybe or lease.first is not lease:
                continue        # It may be no lease of its own.
            counts["overwrites that began a lease"] += 1
        counts["grants"] += 1
        counts["grants: " + lease.op.kind] += 1
        counts["renewed leases that were sure beyond their TTL"] += lease.sure_until > lease.op.end + lease.op.ttl()
        counts["grants through pools and other proxies"] += lease.op.kind in ("pool", "other")
        release, last = lease.last().release, lease.last()
        if release is None:
            counts["grants never released"] += 1
            counts["overruns"] += 1
        elif release.start > last.due_most:
            counts["overruns"] += 1
            counts["overruns through pools and other proxies"] += lease.op.kind in ("pool", "other")
            if release.result in (0, 1, SOME):
                counts["late releases"] += 1
                counts["late releases: " + lease.op.kind] += 1
                counts["late releases through pools and other proxies"] += lease.op.kind in ("pool", "other")


def report(history, verdict, most=10):
    """The summary, as lines."""
    yield from ("      %-50s %10d" % (what, number) for what, number in sorted(verdict.counts.items()))
    yield from ("check %-50s %10d" % (what, number) for what, number in sorted(verdict.checks.items()))
    kinds = collections.Counter(fault[0] for fault in history.faults)
    yield from ("fault %-50s %10d" % (what, number) for what, number in sorted(kinds.items()))
    for start, end, least, most_ms in history.jumps:
        yield "clock jumped by %d to %d ms, at %.0f ms" % (least, most_ms, start / MS)
    for what, number in sorted(collections.Counter(what for what, _, _ in verdict.found).items()):
        yield "FAIL  %s: %d times" % (what, number)
    for what, key, text in verdict.found[:most]:
        yield "FAIL  %s: %s: %s" % (what, key, text)
    yield from ("FAIL  %s: not looked for" % kind for kind in verdict.blind())


def main():
    begun = time.monotonic()
    history = History().read(sys.argv[1])
    verdict = judge(history)
    print("\n".join(report(history, verdict)))
    print("checked %d operations in %.1f s" % (len(history.ops), time.monotonic() - begun))
    print("%d passed, %d failed" % (verdict.clean(), len(verdict.found) + len(verdict.blind())))
    return 1 if verdict.found or verdict.blind() else 0


if __name__ == "__main__":
    sys.exit(main())
