"""Reads the histories of a run: operations with what they mean, leases, looks at the server, faults, clocks.

It knows what each answer says and since when and until when each thing can have happened. It judges nothing but the types
of answers; that is checker.py's.
"""
import bisect
import glob
import json
import os
import sys

from causes import AFTER, CUTTER, MOMENT, MS, UNREAD, Causes, merged
import connections

UNTRUE = "an untruthful answer"
# What an answer means that is no result: nothing was done; or nobody knows.
UNDONE = "undone"
UNKNOWN = (connections.UPSTREAM,)
# What may begin a lease: an overwrite does on a free lock. All of it needs memory.
GRANTING = {"set", "setget", "setnx", "overwrite"}
# How long after its client gave it up an operation may still be executed, if nothing is stopped or slow meanwhile.
AFTERWARDS = 500 * MS
# Faults that stop nothing: what they hit is over at once.
PASSING = {"cut", "cut-bytes", "script-flush", "connections-kill", "client-kill", "reload", "oom", "clock-jump"}
SLOW = 150 * MS             # a ping that takes longer is a time in which things may lie somewhere
FOREVER = 1 << 62


class Op:
    """One operation on one key. Executed, if at all, between `start` and `latest`; `answered` says whether its reply came;
    `result` is 1 or 0 (or what was read), None where nobody knows, UNDONE where it was surely not executed."""
    __slots__ = ("process", "number", "start", "end", "latest", "connection", "kind", "spelling", "owner", "key",
                 "argument", "reply", "nonce", "result", "seen", "lease", "parts")

    def answered(self):
        return self.result is not None and self.result is not UNDONE

    def ttl(self):
        """What it gives to the lock, in ns."""
        return (self.argument[0] if isinstance(self.argument, list) else self.argument) * MS

    def __repr__(self):
        return "%s.%d %s %s by %s on %s at %.3f ms, for %.3f: %r" % (
            self.process, self.number, self.spelling, self.key, self.owner, self.connection, self.start / MS,
            (self.latest - self.start) / MS, self.reply)


class History:
    """All of a run."""

    def __init__(self):
        self.ops, self.looks, self.keys, self.faults, self.losses, self.jumps = [], [], [], [], [], []
        self.deaths, self.slow, self.clocks = {}, [], []
        self.wrong = []         # (what, text): found on the way in
        # Of connections: when they ended, and that with the why of their client.
        self.closed, self.ends = {}, {}
        # When and by which process; through which lockward; from which address.
        self.opened, self.proxies, self.sources = {}, {}, {}
        self.nonces, self.unasked, self.last, self.causes, self.mode = 0, [], 0, None, None

    # ---- reading

    def read(self, folder):
        for path in sorted(glob.glob(os.path.join(folder, "*.history"))):
            with open(path, "rb") as file:
                self.take(os.path.basename(path)[:-len(".history")], file)
        self.complete()
        return self

    def take(self, process, lines):
        """The lines of one process; a last one that is not whole was never said."""
        begun, ops = {}, self.ops
        for line in lines:
            if not line.endswith(b"\n"):
                break
            said = json.loads(line)
            what = said[0]
            if what == "b":
                op = Op()
                _, op.number, op.start, op.connection, op.kind, op.spelling, op.owner, op.key, op.argument = said
                op.process, op.end, op.reply, op.nonce = process, None, "lost", None
                # Millions of them have few different words.
                op.connection, op.kind, op.spelling, op.owner = map(
                    sys.intern, (op.connection, op.kind, op.spelling, op.owner))
                if isinstance(op.key, str):
                    op.key = sys.intern(op.key)
                begun[op.number] = op
            elif what == "e":
                op = begun.pop(said[1])
                op.end, op.reply = said[2], said[3]
                if len(said) > 4:
                    op.nonce = said[4]
                ops.append(op)
            else:
                self.other(said, process)
        ops.extend(begun.values())

    def other(self, said, process):
        what = said[0]
        if what == "s":
            self.looks.append(said[1:])
        elif what == "p":
            self.slow.append((said[1], said[2]))
        elif what == "t":
            self.clocks.append(said[1:])
        elif what == "x":
            self.ends.setdefault(said[1], (said[2], said[3], *said[4:5]))
            self.closed.setdefault(said[1], said[2])
        elif what == "o":
            self.opened[said[1]], self.proxies[said[1]], self.sources[said[1]] = (said[2], process), said[3], said[4]
        elif what == "u":
            self.unasked.append((said[1], said[3]))
        elif what == "k":
            self.keys = said[1]
        elif what == "m":
            self.mode = said[1]
        elif what == "f":
            self.faults.append(said[1:])
        elif what == "loss":
            self.losses.append((said[1], said[2]))
        elif what == "dead":
            self.deaths[said[1]] = (said[2], said[3])

    # ---- what it means

    def complete(self):
        """Splits operations on several keys, and finds out what each came to and until when it can have been executed."""
        self.faults.sort(key=lambda fault: fault[1])
        self.losses.sort()
        self.find_jumps()
        slow = merged([(start, end) for start, end in self.slow if end - start > SLOW])
        holds = merged([(start, end) for kind, start, end, *_ in self.faults if kind not in PASSING] + slow)
        self.slow_starts, self.slow_ends = [start for start, _ in slow], [end for _, end in slow]
        self.hold_starts, self.hold_ends = [start for start, _ in holds], [end for _, end in holds]
        self.find_cutters()
        self.causes = Causes(self.faults, self.looks, lambda time: self.held_until(time, time, AFTER), self.mode == "dedicated")
        self.last = max((end for _, end, *_ in self.looks), default=0)
        ops, self.ops = self.ops, []
        for op in ops:
            self.understand(op)
            if isinstance(op.key, list):
                self.ops.extend(split(op))
            else:
                self.ops.append(op)
        connections.judge(self)

    def find_cutters(self):
        """Connections of programs whose lock cycles are cut: to causes.py they go through a lockward of their own."""
        cutters = {self.sources.get(op.connection) for op in self.ops if op.kind == "cutter"}
        for connection, source in self.sources.items():
            if source in cutters:
                self.proxies[connection] += CUTTER

    def stood_until(self, op):
        """When lockward may have seen at the earliest that this operation's connection is over."""
        closed, why = self.ends.get(op.connection, (FOREVER, ""))[:2]
        if why == "lost":
            closed = self.causes.seen_since(self.proxies.get(op.connection), closed)
        return min(closed, self.deaths.get(op.process, (FOREVER,))[0])

    def steady_until(self, op):
        """Until when its lockward surely came to do its own work, from its beginning on."""
        at = bisect.bisect_left(self.slow_ends, op.start)
        return min(self.causes.steady_until(self.proxies.get(op.connection), op.start),
                   self.slow_starts[at] if at < len(self.slow_starts) else FOREVER)

    def find_jumps(self):
        """Where the server's clock did not go as that of the machine: (from, to, least ms, most ms). A slow look shows only
        jumps beyond what it took, and nothing is measured from it unless it showed one."""
        last = None
        for start, end, micros, *_ in sorted(self.clocks):
            low, high = micros * 1000 - end, micros * 1000 - start
            jumped = last and (low > last[2] + 2 * MS or high < last[1] - 2 * MS)
            if jumped:
                self.jumps.append((last[0], end, (low - last[2]) // MS - 3, -((last[1] - high) // MS) + 3))
            if jumped or not last or end - start <= 20 * MS:
                last = (start, low, high)

    def sooner(self, start, end):
        """A due time, if the server's clock may have been put on meanwhile."""
        for begun, ended, _, most in self.jumps:
            if begun <= end and ended >= start and most > 0:
                end -= most * MS
        return end

    def later(self, start, end):
        """A due time, if the server's clock may have been put back meanwhile."""
        for begun, ended, least, _ in self.jumps:
            if begun <= end and ended >= start and least < 0:
                end -= least * MS
        return end

    def held_until(self, start, given_up, more=AFTERWARDS):
        """When nothing of what was under way then is under way any more."""
        latest = given_up + more
        at = bisect.bisect_right(self.hold_ends, start)
        while at < len(self.hold_starts) and self.hold_starts[at] <= latest:
            latest = max(latest, self.hold_ends[at] + more)
            at += 1
        return latest

    def quiet(self, start, end):
        """How much of that time nothing was stopped or slow."""
        held = sum(max(0, min(until, end) - max(since, start)) for since, until in zip(self.hold_starts, self.hold_ends))
        return end - start - held

    def understand(self, op):
        op.lease = op.seen = None
        op.parts = len(op.key) if isinstance(op.key, list) else 1
        op.latest = op.end or FOREVER
        op.result = UNDONE if self.unheard(op) else self.result(op, op.reply)
        if op.answered():
            op.latest = op.end
            return
        given_up = op.end
        if given_up is None:
            # Its process died, or was at its end.
            given_up = self.deaths.get(op.process, (FOREVER, FOREVER))[1]
        op.latest = self.held_until(op.start, given_up)

    def unheard(self, op):
        """Whether it was surely not executed: asked on a connection that was over by then, and never sent; or in the moment
        in which lockward sent its client away, which executes what it reads and answers what it executes."""
        closed, why = self.ends.get(op.connection, (FOREVER, ""))[:2]
        if op.reply != "lost" or op.end is None or why != "lost":
            return False
        proxy = self.proxies.get(op.connection)
        if op.start > closed:
            return True
        if self.causes.broke(proxy, op.start, closed) or not self.causes.sent_away(proxy, closed):
            return False
        if self.quiet(op.start, closed) > (UNREAD if op.kind == "pool" else MOMENT):
            self.wrong.append((connections.LOST, "asked %.3f ms before it was sent away: %r" % (
                (closed - op.start) / MS, op)))
        return True

    def result(self, op, reply):
        """1, 0 or what was read; None: unknown; UNDONE. The lock's value, where one was told, goes to `seen`."""
        if isinstance(reply, list) and reply[:1] == ["exec"]:
            done, queued, watched = reply[1:]
            if done is None:
                return UNDONE if watched else self.strange(op)
            if isinstance(done, str) and done.startswith("-EXECABORT "):
                errors = [part for part in queued if isinstance(part, str) and part.startswith("-")]
                if any(part.startswith(UNKNOWN) for part in errors):
                    return None
                # A transaction is refused as a whole when memory is full, whatever is in it.
                fitting = errors and all(self.causes.refused(part, op.start, op.end) for part in errors)
                return UNDONE if fitting else self.strange(op)
            reply = done if isinstance(done, str) else "lost" if "lost" in queued else reply
        spelling = op.spelling
        if spelling in ("set", "setget"):
            if spelling == "set" and reply in ("+OK", None):
                return int(reply == "+OK")
            if spelling == "setget" and (reply is None or is_value(reply)):
                op.seen = reply
                return int(reply is None)
        elif spelling == "overwrite" and (reply == "+OK" or isinstance(reply, str) and reply.startswith("-LOCKHELD ")):
            return int(reply == "+OK")
        elif spelling in ("setnx", "pexpire") and (reply == 0 or reply == 1):
            return reply
        elif spelling == "del" and isinstance(reply, int):
            if 0 <= reply <= (len(op.key) if isinstance(op.key, list) else 1):
                return reply
        elif spelling == "get" and (reply is None or is_value(reply)):
            op.seen = reply
            return int(reply is not None)
        elif spelling == "fence" and (reply is None or is_number(reply)):
            op.seen = reply
            return int(reply is not None)
        if reply == "lost" or isinstance(reply, str) and reply.startswith(UNKNOWN):
            return None
        return UNDONE if isinstance(reply, str) and self.refused(op, reply) else self.strange(op)

    def refused(self, op, reply):
        """Whether the server may have refused it so. What gives up, extends or reads works when its memory is full."""
        return self.causes.refused(reply, op.start, op.end) and not (
            reply.startswith("-OOM ") and op.spelling not in GRANTING)

    def strange(self, op):
        self.wrong.append((UNTRUE, "no answer of this kind: %r" % op))


def is_value(reply):
    return isinstance(reply, str) and reply.startswith("$")


def is_number(reply):
    return isinstance(reply, int) or is_value(reply) and reply[1:].isdigit()


def split(op):
    """One operation for each key. Of a sum that is neither none nor all nobody knows which."""
    whole = op.result
    for key, argument in zip(op.key, op.argument):
        part = Op()
        for name in Op.__slots__:
            setattr(part, name, getattr(op, name))
        part.key, part.argument = key, argument
        if part.answered():
            part.result = {0: 0, len(op.key): 1}.get(whole, SOME)
        yield part


SOME = "some"       # answered, but for which of the keys is not known
