"""Why connections ended, answers were lost, and the server refused: which fault can have done it, through which lockward, and
until when.

A stopped process, a slow server, memory that is full, scripts that are gone, a reload or a clock that jumps lose nothing, so
they excuse nothing here. It knows faults and times only; what was lost, history.py knows.
"""
import bisect

MS = 1_000_000
# How long after a fault what it broke may still be noticed, while nothing is stopped or slow. Measured: at most 190 ms.
AFTER = 250 * MS
# lockward's longest wait between two tries to reach the server for a shared connection (src/proxy/pools.rs).
BACKOFF = 1000 * MS
# The longest that a lockward takes to send its clients away once the new one serves (docs/operations.md).
DRAIN = 5000 * MS
# So long before the end of its connection a client may ask and not know yet, where lockward sends it away.
MOMENT = 100 * MS
# Of a connection on which many always have something under way nothing more is read in the end of a drain, for so long at most
# (docs/operations.md); what was read is answered meanwhile.
UNREAD = 2000 * MS
# Faults that break connections, and what comes on top of AFTER.
BREAKING = {"proxy-kill": 0, "server-kill": BACKOFF, "server-loss": BACKOFF, "connections-kill": 0, "cut": 0, "cut-bytes": 0,
            "hole": 0}
# Faults in which lockward may not come to renew a lease, on links behind it too, and how long after them: it tries again
# after a pause that grows with each failure. `cut-bytes` is one: lockward's own connection has to do with marked locks, too
# (seen: it was cut while a lease was due to be renewed).
STALLING = ("proxy-kill", "proxy-stop", "server-kill", "server-loss", "server-stop", "server-sleep", "connections-kill",
            "client-pause", "clock-jump", "cut-bytes")
STALLED = 1000 * MS
# Behind a lockward's name: as the cutters' connections see it. Where each connection has its own to the server, nobody else's
# is cut by `cut-bytes`.
CUTTER = " cut"
# Answers by which the server says that nothing was done, and the faults in which it may. All others have no cause here: no
# replica takes part, no script runs long, nothing is written to a full disk.
REFUSING = {"-OOM ": ("oom",), "-LOADING ": ("server-kill", "server-loss")}


class Causes:
    """`after(time)` is when what was broken then has been noticed; `looks` are the watcher's, each at a server that serves."""

    def __init__(self, faults, looks, after, dedicated=False):
        broken, drained, stalled = ({name: [] for name in ("A", "B", "A" + CUTTER, "B" + CUTTER)} for _ in range(3))
        self.refusals = {beginning: [] for beginning in REFUSING}
        served = sorted(end for _, end, _ in looks)
        for kind, start, end, detail in faults:
            if kind == "fault-without-effect":
                # Nobody saw that it did anything, which is no proof that it did nothing.
                kind, detail = detail
            if kind in ("server-kill", "server-loss"):
                # It answers by then, but reads its data yet.
                end = next(iter(served[bisect.bisect_left(served, end):]), end)
            for beginning, kinds in REFUSING.items():
                if kind in kinds:
                    self.refusals[beginning].append((start, end + AFTER))
            for proxy in [name + more for name in hit(detail) for more in ("", CUTTER)]:
                if kind in BREAKING and not (kind == "cut-bytes" and dedicated and not proxy.endswith(CUTTER)):
                    broken[proxy].append((start, after(end + BREAKING[kind])))
                elif kind == "upgrade":
                    drained[proxy].append((start, after(end + DRAIN)))
                    stalled[proxy].append((start, after(end + DRAIN)))
                if kind in STALLING or kind in ("cut", "hole") and str(detail).find("S") >= 0:
                    stalled[proxy].append((start, after(end + STALLED)))
        self.broken = {proxy: merged(spans) for proxy, spans in broken.items()}
        self.drained = {proxy: merged(spans) for proxy, spans in drained.items()}
        self.stalled = {proxy: merged(spans) for proxy, spans in stalled.items()}
        self.broken[None], self.drained[None], self.stalled[None] = (
            merged(sum(spans.values(), [])) for spans in (broken, drained, stalled))
        self.refusals = {beginning: merged(spans) for beginning, spans in self.refusals.items()}

    def broke(self, proxy, start, end):
        """Whether a connection to or behind this lockward may have been broken then."""
        return meets(self.broken[proxy], start, end)

    def sent_away(self, proxy, end):
        """Whether this lockward may have ended a connection then because it gives way to another."""
        return meets(self.drained[proxy], end, end)

    def seen_since(self, proxy, end):
        """From when on lockward may have seen the end of a connection that its client saw then."""
        return min([spans[at][0] for spans in (self.broken[proxy], self.drained[proxy]) if (at := place(spans, end, end)) >= 0],
                   default=end)

    def steady_until(self, proxy, start):
        """Until when lockward surely came to do its own work, from that time on."""
        spans = self.stalled[proxy]
        if meets(spans, start, start):
            return start
        at = bisect.bisect_right(spans, (start, 1 << 62))
        return spans[at][0] if at < len(spans) else 1 << 62

    def refused(self, reply, start, end):
        """Whether the server may have said so then."""
        return any(reply.startswith(beginning) and meets(spans, start, end)
                   for beginning, spans in self.refusals.items())


def hit(detail):
    """The lockwards that a fault concerns: both, where its record does not say which."""
    named = detail if isinstance(detail, list) else [detail]
    links = [name for name in named if name in ("A", "B", "SA", "SB")]
    return links[0][-1] if links else "AB"


def meets(spans, start, end):
    """Whether one of these merged spans has a moment in common with that time."""
    return place(spans, start, end) >= 0


def place(spans, start, end):
    """The last of these merged spans that has a moment in common with that time, by its number; -1: none."""
    at = bisect.bisect_right(spans, (end, 1 << 62)) - 1
    return at if at >= 0 and spans[at][1] >= start else -1


def merged(spans):
    """Spans that overlap as one, in order."""
    out = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out
