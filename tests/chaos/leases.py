"""Since when and until when each lease of a key was surely held, and until when it can have been there at all.

A lease is surely held from the end of its granted acquire until the first thing that may have ended it has begun: its own
release, its TTL counted from the beginning of its acquire, a loss of the server's data, a jump of its clock. It was
possibly there from the beginning of its acquire until something shows that it was gone.

An overwrite that was done ends what was there and begins a lease with its own value and TTL, whose owner is who sent it.
Where the lease that it is for was surely there, the two are one lease to the accounting (`first`, `next`): one acquire, and
what is meant for the first is meant for the last. Where that may be so or not, a release of one may be that of the other.
"""
import bisect

from causes import AFTER, MS
from history import FOREVER, GRANTING, UNDONE
from owners import Owners
import layout

MARGIN = 4 * MS             # the server counts whole milliseconds, and clocks may be adjusted a little
MAX_HOLD = int(layout.MAX_HOLD * 1000) * MS
# A renewal may be so late: whatever is slower is told by the watcher (SLOW in history.py), or is a fault.
LATEST_RENEWAL = 200 * MS


class Lease:
    """What is known of one acquire that was granted, or whose answer was lost."""
    __slots__ = ("op", "owner", "connection", "granted", "start", "since", "latest", "due_least", "due_most", "due_sure",
                 "sure_until", "untouched_until", "over_by", "release", "tokens", "first", "next", "maybe")

    def __init__(self, op, history):
        self.op, self.owner, self.connection, self.granted = op, op.owner, op.connection, op.result == 1
        self.start, self.latest, self.since = op.start, op.latest, op.latest if op.result == 1 else FOREVER
        ttl = op.ttl()
        self.due_least = self.due_sure = history.sooner(op.start, op.start + ttl - MARGIN)
        self.due_most = history.later(op.start, op.latest + ttl + MARGIN)
        self.sure_until = self.untouched_until = self.over_by = None
        self.release, self.tokens = None, []
        self.first, self.next, self.maybe = self, None, set()

    def follow(self, before):
        """It is that lease, overwritten."""
        before.next, self.first, self.tokens = self, before.first, before.tokens
        self.connection, self.maybe = before.connection, before.maybe

    def part(self):
        """What it has become may be another lease, if this one is not sure any more when it is overwritten."""
        later = self.next
        while later is not None:
            later.untouched_until, later.tokens = min(later.untouched_until, self.untouched_until), []
            later = later.next

    def last(self):
        return self if self.next is None else self.next.last()

    def covers(self, start, end):
        """Whether it was surely held all that time."""
        return self.since <= start and end <= self.sure_until

    def may_be(self, start, end):
        """Whether it may have been there at some moment of that time."""
        return self.start <= end and start <= self.over_by

    def __repr__(self):
        return "%s.%d of %s (%s), from %.3f, sure until %.3f, over by %.3f ms" % (
            self.op.process, self.op.number, self.owner, self.op.kind, self.start / MS, (self.sure_until or 0) / MS,
            (self.over_by or 0) / MS)


class Key:
    """All that happened to one key."""

    def __init__(self, name, ops, looks, history):
        self.name, self.history, self.looks = name, history, looks
        self.rule = name.split(":")[1] if ":" in name else ""
        self.ops = sorted(ops, key=lambda op: op.start)
        self.leases, self.numbers = [], {}
        for op in self.ops:
            if op.spelling in GRANTING and (op.result == 1 or op.result is None):
                op.lease = lease = Lease(op, history)
                self.leases.append(lease)
                self.numbers[op.process, op.number] = lease
        self.releases = [op for op in self.ops if op.spelling == "del" and op.result is not UNDONE]
        self.changes = [op for op in self.ops if op.spelling in ("pexpire", "overwrite") and op.result not in (0, UNDONE)]
        self.find_dues()
        self.find_ends()
        self.owners = Owners(self)
        self.find_gone()

    def meant(self, op):
        """The lease that this release, extend, overwrite or look is for."""
        number = op.argument[1] if op.spelling in ("pexpire", "overwrite") else op.argument
        lease = self.numbers.get((op.process, number)) if number else None
        while lease is not None and lease.next is not None and lease.next.start < op.start:
            lease = lease.next
        return lease

    # ---- until when

    def find_dues(self):
        """What extends, overwrites and renewal make of the TTLs."""
        by_owner, given_up = {}, {}
        for op in reversed(self.releases):
            given_up[op.process, op.argument] = op.start
        for lease in self.leases:
            by_owner.setdefault(lease.owner, []).append(lease)
            if self.rule == "renew":
                self.renew(lease)
        for op in self.changes:
            if op.spelling == "overwrite":
                self.overwrite(op, by_owner[op.owner], given_up.get((op.process, op.argument[1]), FOREVER))
                continue
            least = self.history.sooner(op.start, op.start + op.argument[0] * MS - MARGIN)
            most = self.history.later(op.start, op.latest + op.argument[0] * MS + MARGIN)
            meant = self.meant(op)
            mine = by_owner.get(op.owner, [])
            at = bisect.bisect_right(mine, op.latest, key=lambda lease: lease.start)
            for lease in mine[max(0, at - 40):at]:
                if lease.due_most < op.start:
                    continue
                if lease is meant and op.result == 1 and op.latest <= lease.due_sure:
                    # It was there, and nothing else of this owner can have been.
                    lease.due_sure = least
                else:
                    lease.due_sure = min(lease.due_sure, least)
                lease.due_least, lease.due_most = min(lease.due_least, least), max(lease.due_most, most)

    def overwrite(self, op, mine, given_up):
        """None of its owner's leases is sure from then on but the one that it makes."""
        meant, lease = self.meant(op), op.lease
        if op.result == 1 and meant is not None and meant.owner == op.owner and meant.since <= op.start and (
                op.latest <= min(meant.due_sure, given_up) and not self.lost(meant, op.latest)):
            lease.follow(meant)
        at = bisect.bisect_right(mine, op.latest, key=lambda other: other.start)
        for other in mine[max(0, at - 40):at]:
            if other is lease or other.due_most < op.start:
                continue
            other.due_sure = min(other.due_sure, max(op.start, other.start))
            if lease.first is lease:
                lease.maybe |= {other, *other.maybe}

    def lost(self, lease, until):
        """Whether the server may have lost it by then."""
        return any(lease.start <= end and start <= until for start, end in self.history.losses)

    def renew(self, lease):
        """What renewal promises: the lock is there as long as its client is, up to MAX_HOLD, and gone a TTL after that. The
        next renewal comes when a third of the TTL is over."""
        history, op, ttl = self.history, lease.op, lease.op.ttl()
        last = lease.latest + MAX_HOLD
        lease.due_most = history.later(op.start, history.held_until(last, last, AFTER) + ttl + MARGIN)
        if lease.granted and ttl - ttl // 3 >= LATEST_RENEWAL:
            lease.due_sure = max(lease.due_sure, min(op.start + MAX_HOLD - MARGIN, history.stood_until(op),
                                                     history.steady_until(op)))

    def find_ends(self):
        """Own releases, losses, and disconnects where these release."""
        for op in self.releases:
            lease = self.meant(op)
            if lease is not None and lease.release is None:
                lease.release = op
        for lease in self.leases:
            until = lease.due_sure
            for start, end in self.history.losses:
                if lease.start <= end and start <= until:
                    until = start
            if self.rule == "left":
                until = min(until, self.history.stood_until(lease.op))
            lease.untouched_until = until
            releases = [one.release for one in (lease, *(other.last() for other in lease.maybe)) if one.release]
            lease.sure_until = min([until] + [op.start for op in releases])

    def find_gone(self):
        """By when each was surely gone: its TTL, or what only happens when nothing is there."""
        gone = [(op.start, op.latest) for op in self.ops
                if (op.spelling in GRANTING or op.spelling == "del") and op.result == 1
                or op.spelling == "get" and op.result == 0]
        gone += [(start, end) for start, end, left in self.looks if left == -2]
        gone += self.history.losses
        gone.sort()
        starts, ends, soonest = [start for start, _ in gone], [end for _, end in gone], FOREVER
        for at in range(len(ends) - 1, -1, -1):
            soonest = ends[at] = min(ends[at], soonest)
        for lease in self.leases:
            at = bisect.bisect_left(starts, lease.latest)
            lease.over_by = min(lease.due_most, ends[at] if at < len(ends) else FOREVER)
