"""What the owners of a key may owe, by the accounting of releases (DESIGN.md, section 4): so which releases may have met
another lease than their own (promise 2: at most one release for each acquire, within the window), and which owners surely owe
nothing, so that a good release must not be answered 0.
"""
import bisect

from causes import meets, merged
from history import AFTERWARDS, FOREVER, MS
import layout

WINDOW = int(layout.WINDOW * 1000) * MS
# Within it for sure: also if the server's clock was put on by some seconds, and with what is under way.
SAFE_WINDOW = WINDOW - 9000 * MS


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
            # A lease that was overwritten is one with what it has become.
            whole = [lease for lease in mine if lease.next is None]
            self.unsure[owner] = self.find_unsure(whole, releases.get(owner, []))
            self.cut(owner, mine, releases.get(owner, []))
            self.owing[owner] = self.find_owing(owner, whole, releases.get(owner, []))

    def pending(self, lease):
        """Until when the release of this lease may still come."""
        if lease.release is not None:
            return lease.release.latest
        if not lease.granted or lease.op.spelling == "overwrite" and lease.first is lease:
            return lease.start      # Nobody releases what he does not know to have got.
        return self.history.deaths.get(lease.op.process, (0, FOREVER))[1]

    def find_unsure(self, leases, releases):
        """Spans in which a release may meet another lease of this owner than its own: since a loss of data, a release too
        many or a wait beyond the window, until no release is still to come. And since the server's clock was put back: a lease
        that had just expired then looks as if it had been deleted before its time, and nothing is owed for it."""
        spans = sorted([(lease.first.start, self.pending(lease)) for lease in leases if lease.granted]
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
            orphan = meant is not None and (self.history.closed.get(meant.connection, FOREVER) <= op.latest + AFTERWARDS
                                            or meets(returned, op.start, op.latest))
            if not stray and not orphan:
                continue
            at = bisect.bisect_right(starts, op.latest)
            for lease in leases[max(0, at - 40):at]:
                if lease is not meant and (stray or lease.connection == op.connection):
                    lease.sure_until = min(lease.sure_until, max(op.start, lease.start))
                    lease.untouched_until = min(lease.untouched_until, max(op.start, lease.start))
                    lease.part()

    def find_returned(self, leases, starts):
        """Spans in which the owner may owe for a lease of a connection that was closed, though that one's release has come: it
        came while the owner held another lease, so the payment was doubtful, and when that one expired unreleased the debt
        came back in the place of its own, with its old time (DESIGN.md, section 3, accounting)."""
        out = []
        for lease in leases:
            op, closed = lease.release, self.history.closed.get(lease.connection, FOREVER)
            if op is None or op.result == 1 or closed == FOREVER:
                continue
            at = bisect.bisect_right(starts, op.latest)
            for other in leases[max(0, at - 40):at]:
                settled = other.release is not None and other.release.result == 1 and other.release.start <= other.due_most
                if other is not lease and other.due_most >= op.start and not settled:
                    out.append((max(other.due_least, closed - AFTERWARDS), lease.due_most + WINDOW))
        return merged([span for span in out if span[0] <= span[1]])

    def find_owing(self, owner, leases, releases):
        """Spans in which this owner may owe for a lease, and those in which that may concern a release that comes on the
        connection of the lease: such a one passes over debts of closed connections."""
        paid, events = [], [(op.start, 1, op) for op in releases]
        for lease in leases:
            op = lease.release
            if op is not None and op.answered() and lease.granted and op.owner == lease.owner:
                paid.append((lease.first.start, op.end, lease))
            else:
                events.append((lease.first.start, 0, lease))
        all_debts, open_debts = Chain(self.dropped), Chain(self.dropped)
        for start, kind, what in sorted(events, key=lambda event: event[:2]):
            if kind == 0:
                all_debts.add(start, what, True)
                open_debts.add(start, what, True)
            elif what.result == 1 and self.is_proof(what):
                open_debts.prove(what)
                if self.key.meant(what).connection != what.connection:
                    all_debts.prove(what)
            elif what.result != 1 and self.key.meant(what) is not None and all_debts.lasts(start):
                # It may have paid for a missing one, and leaves its own lease unpaid instead; which concerns all but itself.
                meant = self.key.meant(what)
                paid.append((start, what.latest, meant))
                all_debts.add(what.latest + 1, meant, False)
                open_debts.add(what.latest + 1, meant, False)
        return Spans(paid + all_debts.all()), Spans(paid + open_debts.all())

    def dropped(self, lease):
        """When a debt for it is older than the window, by the server's clock."""
        return self.history.later(lease.start, lease.due_most + WINDOW)

    def is_proof(self, op):
        """A release that was granted and meant a lease which surely was the one there: so nothing was owed, or on that lease's
        own connection, nothing of a connection that stood."""
        lease = self.key.meant(op)
        return lease is not None and not self.is_unsure(op.owner, op.start, op.end) and (
            lease.since <= op.start and op.latest <= lease.untouched_until)

    def owes(self, lease, op):
        """Whether the owner may owe for another lease than this one when its release comes."""
        if self.is_unsure(lease.owner, op.start, op.end):
            return True
        return self.owing[lease.owner][lease.connection == op.connection].meet(op.start, op.end, lease)


class Chain:
    """Spans in which a release is missing: since a lease that may never be released, until its debt is dropped or something
    proves that it is paid."""

    def __init__(self, dropped):
        self.dropped, self.spans, self.since, self.until, self.unpaid = dropped, [], None, None, []

    def lasts(self, time):
        if self.until is not None and time > self.until:
            self.end(self.until)
        return self.until is not None

    def add(self, time, lease, never):
        """This lease may be unpaid from that time on; `never`: no release of it is known to have come."""
        if not self.lasts(time):
            self.since = self.until = time
        self.until = max(self.until, self.dropped(lease))
        if never:
            self.unpaid.append(lease)

    def prove(self, op):
        """Nothing was owed when this release came, but for leases that may have come later."""
        if self.lasts(op.start):
            later = [lease for lease in self.unpaid if lease.latest > op.start]
            self.end(op.end)
            for lease in later:
                self.add(lease.start, lease, True)

    def end(self, until):
        self.spans.append((self.since, until, None))
        self.since, self.until, self.unpaid = None, None, []

    def all(self):
        if self.until is not None:
            self.end(self.until)
        return self.spans


class Spans:
    """Many (start, end, lease), to be asked for."""

    def __init__(self, spans):
        self.spans = sorted(spans, key=lambda span: span[:2])
        self.starts, self.latest = [span[0] for span in self.spans], []
        for _, until, _ in self.spans:
            self.latest.append(max(until, self.latest[-1]) if self.latest else until)

    def meet(self, start, end, lease):
        """Whether one of another lease than this has a moment in common with that time."""
        at = bisect.bisect_right(self.starts, end)
        older = max(0, at - 20)
        if older and self.latest[older - 1] >= start:
            return True
        return any(until >= start and (other is None or other.first is not lease.first)
                   for _, until, other in self.spans[older:at])
