"""Since when and until when each lease of a key was surely held, and until when it can have been there at all.

A lease is surely held from the end of its granted acquire until the first thing that may have ended it has begun: its own
release, its TTL counted from the beginning of its acquire, a loss of the server's data, a jump of its clock. It was
possibly there from the beginning of its acquire until something shows that it was gone.

`Owners` knows which releases of one owner may have met another lease of it than their own (DESIGN.md, section 3, promise 2:
at most one release for each acquire, within the window), and which owners surely owe nothing.
"""
import bisect

from causes import AFTER, MS, meets, merged
from history import AFTERWARDS, FOREVER, UNDONE
import layout

MARGIN = 4 * MS             # the server counts whole milliseconds, and clocks may be adjusted a little
WINDOW = int(layout.WINDOW * 1000) * MS
# Within it for sure: also if the server's clock was put on by some seconds, and with what is under way.
SAFE_WINDOW = WINDOW - 9000 * MS

MAX_HOLD = int(layout.MAX_HOLD * 1000) * MS
# A renewal may be so late: whatever is slower is told by the watcher (SLOW in history.py), or is a fault.
LATEST_RENEWAL = 200 * MS


class Lease:
    """What is known of one acquire that was granted, or whose answer was lost."""
    __slots__ = ("op", "owner", "connection", "granted", "start", "since", "latest", "due_least", "due_most", "due_sure",
                 "sure_until", "untouched_until", "over_by", "release", "tokens")

    def __init__(self, op, history):
        self.op, self.owner, self.connection, self.granted = op, op.owner, op.connection, op.result == 1
        self.start, self.latest, self.since = op.start, op.latest, op.latest if op.result == 1 else FOREVER
        ttl = op.argument * MS
        self.due_least = self.due_sure = sooner(history, op.start, op.start + ttl - MARGIN)
        self.due_most = later(history, op.start, op.latest + ttl + MARGIN)
        self.sure_until = self.untouched_until = self.over_by = None
        self.release, self.tokens = None, []

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


def sooner(history, start, end):
    """A due time, if the server's clock may have been put on meanwhile."""
    for begun, ended, _, most in history.jumps:
        if begun <= end and ended >= start and most > 0:
            end -= most * MS
    return end


def later(history, start, end):
    """A due time, if the server's clock may have been put back meanwhile."""
    for begun, ended, least, _ in history.jumps:
        if begun <= end and ended >= start and least < 0:
            end -= least * MS
    return end


class Key:
    """All that happened to one key."""

    def __init__(self, name, ops, looks, history):
        self.name, self.history, self.looks = name, history, looks
        self.rule = name.split(":")[1] if ":" in name else ""
        self.ops = sorted(ops, key=lambda op: op.start)
        self.leases, self.numbers = [], {}
        for op in self.ops:
            if op.spelling in ("set", "setget", "setnx") and (op.result == 1 or op.result is None):
                op.lease = lease = Lease(op, history)
                self.leases.append(lease)
                self.numbers[op.process, op.number] = lease
        self.releases = [op for op in self.ops if op.spelling == "del" and op.result is not UNDONE]
        self.extends = [op for op in self.ops if op.spelling == "pexpire" and op.result not in (0, UNDONE)]
        self.find_dues()
        self.find_ends()
        self.owners = Owners(self)
        self.find_gone()

    def meant(self, op):
        """The lease that this release, extend or look is for."""
        number = op.argument[1] if op.spelling == "pexpire" else op.argument
        return self.numbers.get((op.process, number)) if number else None

    # ---- until when

    def find_dues(self):
        """What extends and renewal make of the TTLs."""
        by_owner = {}
        for lease in self.leases:
            by_owner.setdefault(lease.owner, []).append(lease)
            if self.rule == "renew":
                self.renew(lease)
        for op in self.extends:
            least = sooner(self.history, op.start, op.start + op.argument[0] * MS - MARGIN)
            most = later(self.history, op.start, op.latest + op.argument[0] * MS + MARGIN)
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

    def renew(self, lease):
        """What renewal promises: the lock is there as long as its client is, up to MAX_HOLD, and gone a TTL after that. The
        next renewal comes when a third of the TTL is over."""
        history, op, ttl = self.history, lease.op, lease.op.argument * MS
        last = lease.latest + MAX_HOLD
        lease.due_most = later(history, op.start, history.held_until(last, last, AFTER) + ttl + MARGIN)
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
            lease.sure_until = min(until, lease.release.start) if lease.release else until

    def find_gone(self):
        """By when each was surely gone: its TTL, or what only happens when nothing is there."""
        gone = [(op.start, op.latest) for op in self.ops
                if op.spelling in ("set", "setget", "setnx", "del") and op.result == 1
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


class Owners:
    """What each owner of a key may owe."""

    def __init__(self, key):
        self.key, self.history = key, key.history
        self.unsure, self.owing = {}, {}
        leases, releases = {}, {}
        for lease in key.leases:
            leases.setdefault(lease.owner, []).append(lease)
        for op in key.releases:
            releases.setdefault(op.owner, []).append(op)
        for owner, mine in leases.items():
            self.unsure[owner] = self.find_unsure(mine, releases.get(owner, []))
            self.cut(owner, mine, releases.get(owner, []))
            self.owing[owner] = self.find_owing(owner, mine, releases.get(owner, []))

    def pending(self, lease):
        """Until when the release of this lease may still come."""
        if lease.release is not None:
            return lease.release.latest
        if not lease.granted:
            return lease.start      # Nobody releases what he was not told to have got.
        return self.history.deaths.get(lease.op.process, (0, FOREVER))[1]

    def find_unsure(self, leases, releases):
        """Spans in which a release may meet another lease of this owner than its own: since a loss of data, a release too
        many or a wait beyond the window, until no release is still to come. And since the server's clock was put back: a lease
        that had just expired then looks as if it had been deleted before its time, and nothing is owed for it."""
        spans = sorted([(lease.start, self.pending(lease)) for lease in leases if lease.granted]
                       + [(op.start, op.latest) for op in releases])
        busy, out = [], []
        for start, end in spans:
            if busy and start <= busy[-1][1]:
                busy[-1][1] = max(busy[-1][1], end)
            else:
                busy.append([start, end])
        put_back = [(start, end) for start, end, least, _ in self.history.jumps if least < 0]
        causes, seen = list(self.history.losses) + put_back, set()
        for op in releases:
            lease = self.key.meant(op)
            if lease is None or not lease.granted or id(lease) in seen or lease.owner != op.owner:
                causes.append((op.start, op.latest))
            seen.add(id(lease))
        causes.sort()
        starts = [start for start, _ in causes]
        for start, end in busy:
            at = bisect.bisect_right(starts, end)
            before = bisect.bisect_left(starts, start)
            first = min([max(cause, start) for cause, until in causes[max(0, before - 8):at] if until >= start],
                        default=FOREVER)
            first = min(first, start + SAFE_WINDOW)
            if first <= end:
                out.append((first, end))
        return out

    def is_unsure(self, owner, start, end):
        spans = self.unsure.get(owner, [])
        at = bisect.bisect_left(spans, (start,)) - 1
        return any(first <= end and last >= start for first, last in spans[max(at, 0):at + 3])

    def cut(self, owner, leases, releases):
        """Leases that such a release may have met are sure only until it began; and so are those of the connection on which
        a late release came while the owner owed one from a connection that was closed (the second exception of promise 2)."""
        starts = [lease.start for lease in leases]
        returned = self.find_returned(leases, starts)
        for op in releases:
            meant = self.key.meant(op)
            stray = self.is_unsure(owner, op.start, op.latest)
            # The proxy may have seen the end of the connection a little before the client did.
            orphan = meant is not None and (self.history.closed(meant.connection) <= op.latest + AFTERWARDS
                                            or meets(returned, op.start, op.latest))
            if not stray and not orphan:
                continue
            at = bisect.bisect_right(starts, op.latest)
            for lease in leases[max(0, at - 40):at]:
                if lease is not meant and (stray or lease.connection == op.connection):
                    lease.sure_until = min(lease.sure_until, max(op.start, lease.start))
                    lease.untouched_until = min(lease.untouched_until, max(op.start, lease.start))

    def find_returned(self, leases, starts):
        """Spans in which the owner may owe for a lease of a connection that was closed, though that one's release has come: it
        came while the owner held another lease, so the payment was doubtful, and when that one expired unreleased the debt
        came back in the place of its own, with its old time (DESIGN.md, section 3, accounting)."""
        out = []
        for lease in leases:
            op, closed = lease.release, self.history.closed(lease.connection)
            if op is None or op.result == 1 or closed == FOREVER:
                continue
            at = bisect.bisect_right(starts, op.latest)
            for other in leases[max(0, at - 40):at]:
                settled = other.release is not None and other.release.result == 1 and other.release.start <= other.due_most
                if other is not lease and other.due_most >= op.start and not settled:
                    out.append((max(other.due_least, closed - AFTERWARDS), lease.due_most + WINDOW))
        return merged([span for span in out if span[0] <= span[1]])

    def find_owing(self, owner, leases, releases):
        """Spans in which this owner may owe for a lease: their starts, (end, lease), and the latest end up to each."""
        spans, unpaid = [], []
        for lease in leases:
            op = lease.release
            if op is not None and op.answered() and lease.granted and op.owner == lease.owner:
                spans.append((lease.start, op.end, lease))
            else:
                unpaid.append((lease.start, 0, lease))
        spans += self.chains(unpaid + [(op.start, 1, op) for op in releases])
        spans.sort(key=lambda span: span[:2])
        latest = []
        for _, until, _ in spans:
            latest.append(max(until, latest[-1]) if latest else until)
        return [start for start, _, _ in spans], [span[1:] for span in spans], latest

    def chains(self, events):
        """Spans in which one release is missing: since a lease that may never be released, until its debt is dropped or a
        release proves that nothing is owed. Each release that may have paid for it leaves its own lease unpaid instead."""
        since = until = None
        unpaid = []
        for start, kind, what in sorted(events, key=lambda event: event[:2]):
            if until is not None and start > until:
                yield since, until, None
                since, until, unpaid = None, None, []
            if kind == 0:
                unpaid.append(what)
                since, until = (start, self.dropped(what)) if until is None else (since, max(until, self.dropped(what)))
            elif until is not None and what.result == 1 and self.is_proof(what):
                yield since, what.end, None
                unpaid = [lease for lease in unpaid if lease.latest > start]
                since = min((lease.start for lease in unpaid), default=None)
                until = max((self.dropped(lease) for lease in unpaid), default=None)
            elif until is not None and what.result != 1 and self.key.meant(what) is not None:
                until = max(until, self.dropped(self.key.meant(what)))
        if until is not None:
            yield since, until, None

    def dropped(self, lease):
        """When a debt for it is older than the window, by the server's clock."""
        return later(self.history, lease.start, lease.due_most + WINDOW)

    def is_proof(self, op):
        """A release that was granted on another connection than that of the lease, which surely was the one there: so
        nothing was owed. (Had the connection held a younger lease, a debt of a closed connection would have stood.)"""
        lease = self.key.meant(op)
        if lease is None or lease.connection == op.connection or self.is_unsure(op.owner, op.start, op.end):
            return False
        return lease.since <= op.start and op.latest <= lease.untouched_until

    def owes(self, lease, start, end):
        """Whether the owner may owe for another lease at some moment then."""
        if self.is_unsure(lease.owner, start, end):
            return True
        starts, spans, latest = self.owing[lease.owner]
        at = bisect.bisect_right(starts, end)
        older = max(0, at - 20)
        if older and latest[older - 1] >= start:
            return True
        return any(other is not lease and until >= start for until, other in spans[older:at])
