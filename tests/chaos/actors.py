"""The programs of a run, each as legacy programs are: they take a lock, work, and give it up with a bare DEL.

Each is one coroutine that goes on until it is told to stop. What it sends, and what came back, goes into its process' book
before and after. It behaves as its kind does also when it is wrong: some overrun their TTL and release late, some give up
what they did not get.

    own       one connection for all                 pool     any connection of its process' pool, which others use too
    other     acquires through one proxy, releases through the other                   loser    DEL or PEXPIRE in `finally`
    beat      a heartbeat extends                    multi    MULTI and EXEC, some with WATCH
    setnx     SETNX, then PEXPIRE                    several  some locks, one DEL
    cutter    one cycle on each connection, for the shim to cut
    kept      holds some of its leases longer than they are renewed
    over      SET without NX: takes locks so, and writes its own anew, also when it may have lost it
"""
import asyncio

from harness.resp import encode
from wire import Lost, connect

RETRY = (0.004, 0.030)      # seconds between two tries
OVERRUN = 0.22              # of all holds
FURTHER = (0.002, 0.500)    # seconds beyond the TTL
RENEWED = 2.0               # seconds; layout.MAX_HOLD
BEYOND = (0.4, 1.0)         # seconds beyond that and a TTL
VALUE = object()            # stands for the text that is an operation's own


def told(echo):
    """The answer to an ECHO as it is written down, where None is that none was sent."""
    return "nil" if echo is None else echo


class Place:
    """Where an actor works: its process' book, the ports of the two proxies, and whether all is over. With a greater `pace`
    all goes slower, TTLs too, for machines that are busy."""

    def __init__(self, book, ports, pace=1.0):
        self.book, self.ports, self.pace, self.over, self.wires, self.opened = book, ports, pace, False, set(), 0

    async def open(self, proxy, source, client_name):
        """A connection through this proxy, as soon as there is one."""
        while not self.over:
            self.opened += 1
            name = "%s:%d" % (self.book.name, self.opened)
            try:
                wire = await connect(self.book, name, proxy, self.ports[proxy], source, client_name)
                self.wires = {w for w in self.wires if w.open} | {wire}
                return wire
            except (OSError, Lost, asyncio.TimeoutError):
                await asyncio.sleep(0.1)
        raise Lost("over")

    async def mind(self):
        """Ends connections on which nothing comes."""
        while not self.over:
            await asyncio.sleep(0.25)
            for wire in list(self.wires):
                wire.mind(asyncio.get_running_loop().time())


class Actor:
    kind = "own"
    echoes = True

    def __init__(self, place, random, keys, ttls, rule, source, name, proxy):
        self.place, self.book, self.random, self.keys, self.rule = place, place.book, random, keys, rule
        self.ttls = [int(ttl * place.pace) for ttl in ttls]
        self.source, self.name, self.proxy, self.wire = source, name, proxy, None

    # ---- whose connection, and who is the owner on it

    async def acquiring(self):
        """The connection for an acquire."""
        if self.wire is None or not self.wire.open:
            self.wire = await self.place.open(self.proxy, self.source, self.name)
        return self.wire

    async def releasing(self, wire):
        """The connection for the release of what was acquired on that one."""
        return wire if wire.open else await self.acquiring()

    def owner(self, wire):
        return {"connection": "c:" + wire.name, "address": "a:" + self.source, "client-name": "n:" + self.name}[self.rule]

    # ---- one operation

    async def ask(self, wire, spelling, keys, argument, words):
        """Sends one command, written down, and returns its reply; behind some goes an ECHO in the same packet, and one of
        its own behind others. A reply that is lost raises Lost, and is written down as lost."""
        number = self.book.begin(wire.name, self.kind, spelling, self.owner(wire), keys, argument)
        words = [self.book.value(number) if word is VALUE else word for word in words]
        nonce, style = self.book.value(number), self.random.random()
        if not self.echoes:
            style = 0.3
        try:
            if style < 0.3:
                reply, echo = await wire.call(encode(*words) + encode("ECHO", nonce), 2)
                self.book.end(number, reply, told(echo))
                return number, reply
            (reply,) = await wire.call(encode(*words), 1)
        except Lost:
            self.book.end(number, "lost")
            raise
        if style < 0.6:
            self.book.end(number, reply)
            return number, reply
        try:
            (echo,) = await wire.call(encode("ECHO", nonce), 1)
            echo = told(echo)
        except Lost:
            echo = "lost"
        # That the answer came a little later than it did is on the safe side.
        self.book.end(number, reply, echo)
        return number, reply

    # ---- the cycle

    async def run(self):
        while not self.place.over:
            try:
                await self.cycle()
            except Lost:
                pass
            await asyncio.sleep(self.random.uniform(*RETRY) * self.place.pace)

    async def cycle(self):
        key, ttl = self.random.choice(self.keys), self.random.choice(self.ttls)
        wire = await self.acquiring()
        lease = await self.acquire(wire, key, ttl)
        if lease is None:
            return await self.refused(key)
        await self.work(wire, key, lease, ttl)
        # The release comes, whatever happened meanwhile: once.
        await self.release(await self.releasing(wire), key, lease)

    async def acquire(self, wire, key, ttl):
        """The number of the operation if it was granted."""
        style = self.random.random()
        if style < 0.15:
            number, reply = await self.ask(wire, "setget", key, ttl, ("SET", key, VALUE, "NX", "GET", "PX", ttl))
            return number if reply is None else None
        words = ("SET", key, VALUE, "NX", "PX", ttl) if style < 0.8 else ("set", key, VALUE, "px", ttl, "nx")
        number, reply = await self.ask(wire, "set", key, ttl, words)
        return number if reply == "+OK" else None

    async def refused(self, key):
        """What it does when it did not get the lock."""

    async def work(self, wire, key, lease, ttl):
        """Holds it: mostly for a part of the TTL, and in some cases longer."""
        if self.random.random() < 0.25:
            await self.look(wire, key, lease)
        if self.random.random() < OVERRUN:
            await asyncio.sleep(ttl / 1000 + self.random.uniform(*FURTHER))
        else:
            await asyncio.sleep(self.random.random() ** 2 * 0.4 * ttl / 1000)

    async def look(self, wire, key, lease):
        """Reads the lock that it holds; Lost is nothing here, since the release follows anyway."""
        try:
            if key.startswith("lock:name:") and self.random.random() < 0.6:
                await self.ask(wire, "fence", key, lease, ("LOCKWARD", "FENCE", key))
            else:
                await self.ask(wire, "get", key, lease, ("GET", key))
        except Lost:
            pass

    async def release(self, wire, key, lease):
        word = "UNLINK" if self.random.random() < 0.1 else "DEL"
        await self.ask(wire, "del", key, lease, (word, key))


class Loser(Actor):
    """`finally: DEL`, whether it got the lock or not; or an EXPIRE first and then a look whether it has it."""
    kind = "loser"

    async def refused(self, key):
        wire, style = await self.acquiring(), self.random.random()
        if style < 0.35:
            await self.ask(wire, "del", key, 0, ("DEL", key))
        elif style < 0.55:
            ttl = self.random.choice((50, 5000))
            await self.ask(wire, "pexpire", key, [ttl, 0], ("PEXPIRE", key, ttl))


class Beat(Actor):
    """Extends while it works. One that comes too late is refused, as with Redis."""
    kind = "beat"

    async def work(self, wire, key, lease, ttl):
        for _ in range(self.random.randrange(1, 4)):
            await asyncio.sleep(self.random.uniform(0.2, 1.1 if self.random.random() < 0.2 else 0.5) * ttl / 1000)
            try:
                if await self.extend(wire, key, lease, ttl) != 1:
                    break
            except Lost:
                return
        await super().work(wire, key, lease, ttl)

    async def extend(self, wire, key, lease, ttl):
        _, reply = await self.ask(wire, "pexpire", key, [ttl, lease], ("PEXPIRE", key, ttl))
        return reply


class Setnx(Actor):
    """SETNX, and a PEXPIRE behind it; between the two the rule's default_ttl holds."""
    kind = "setnx"
    default_ttl = 800

    async def acquire(self, wire, key, ttl):
        number, reply = await self.ask(wire, "setnx", key, self.default_ttl, ("SETNX", key, VALUE))
        if reply != 1:
            return None
        try:
            await self.ask(wire, "pexpire", key, [ttl, number], ("PEXPIRE", key, ttl))
        except Lost:
            pass
        return number


class Other(Actor):
    """Two connections of one name: it acquires through one proxy and releases through the other."""
    kind = "other"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.second = None

    async def releasing(self, wire):
        if self.second is None or not self.second.open:
            self.second = await self.place.open("B" if self.proxy == "A" else "A", self.source, self.name)
        return self.second


class Pool:
    """Connections to both proxies that many use; each operation takes any of them."""

    def __init__(self, place, random, source, name, size):
        self.place, self.random, self.source, self.name = place, random, source, name
        self.wires = [None] * size

    async def wire(self):
        slot = self.random.randrange(len(self.wires))
        wire = self.wires[slot]
        if wire is None or not wire.open:
            wire = self.wires[slot] = await self.place.open("AB"[slot % 2], self.source, self.name)
        elif self.random.random() < 0.002:
            # Pools throw connections away, too.
            self.wires[slot] = None
            if not wire.due:
                wire.end("thrown away")
            return await self.wire()
        return wire


class Pooled(Actor):
    kind = "pool"

    def __init__(self, pool, *arguments):
        super().__init__(*arguments)
        self.pool = pool

    async def acquiring(self):
        return await self.pool.wire()

    async def releasing(self, wire):
        return await self.pool.wire()


class Multi(Actor):
    """Acquires and releases inside MULTI; WATCHes the lock in some cases."""
    kind = "multi"

    async def transaction(self, wire, watched, parts):
        """EXEC of (spelling, key, argument, words); the numbers and replies, or None for a transaction that a WATCH broke
        or the server refused."""
        owner, numbers, out = self.owner(wire), [], []
        for spelling, key, argument, words in parts:
            number = self.book.begin(wire.name, self.kind, spelling, owner, key, argument)
            numbers.append(number)
            out.append(encode(*[self.book.value(number) if word is VALUE else word for word in words]))
        nonce = self.book.value(numbers[0])
        data = (encode("WATCH", watched) + encode("GET", watched) if watched else b"") + encode("MULTI") + b"".join(out)
        try:
            replies = await wire.call(data + encode("EXEC") + encode("ECHO", nonce), 3 + len(parts) + 2 * bool(watched))
        except Lost:
            for number in numbers:
                self.book.end(number, "lost")
            raise
        done, echo = replies[-2], told(replies[-1])
        queued = replies[2 * bool(watched):-2]
        if not isinstance(done, list) or queued != ["+OK"] + ["+QUEUED"] * len(parts):
            # Said word for word: the checker knows when nothing was executed.
            for number in numbers:
                self.book.end(number, ["exec", done, queued, bool(watched)], echo if number == numbers[0] else None)
            return None
        for number, reply in zip(numbers, done):
            self.book.end(number, reply, echo if number == numbers[0] else None)
        return list(zip(numbers, done)) if len(done) == len(parts) else None

    async def acquire(self, wire, key, ttl):
        watched = key if self.random.random() < 0.3 else None
        done = await self.transaction(wire, watched, [("set", key, ttl, ("SET", key, VALUE, "NX", "PX", ttl))])
        return done[0][0] if done and done[0][1] == "+OK" else None

    async def release(self, wire, key, lease):
        if self.random.random() < 0.5:
            return await super().release(wire, key, lease)
        await self.transaction(wire, None, [("get", key, 0, ("GET", key)), ("del", key, lease, ("DEL", key))])


class Several(Actor):
    """Takes some locks in order and gives all up with one DEL."""
    kind = "several"

    async def cycle(self):
        keys = sorted(self.random.sample(self.keys, self.random.choice((2, 3))))
        ttl, wire, held = self.random.choice(self.ttls), await self.acquiring(), []
        for key in keys:
            try:
                lease = await self.acquire(wire, key, ttl)
            except Lost:
                break
            if lease is None:
                break
            held.append((key, lease))
        if not held:
            return
        if len(held) == len(keys):
            await self.work(wire, held[0][0], held[0][1], ttl)
        wire = await self.releasing(wire)
        keys = [key for key, _ in held]
        await self.ask(wire, "del", keys, [lease for _, lease in held], ("DEL", *keys))


class Over(Other):
    """Writes the lock without NX: mostly to take it, whoever has it; and anew with another TTL, while it holds it or when it
    has worked too long and may have lost it, on either of its connections."""
    kind = "over"

    async def acquire(self, wire, key, ttl):
        if self.random.random() < 0.3:
            return await super().acquire(wire, key, ttl)
        number, reply = await self.overwrite(wire, key, ttl, 0)
        return number if reply == "+OK" else None

    async def overwrite(self, wire, key, ttl, lease):
        return await self.ask(wire, "overwrite", key, [ttl, lease], ("SET", key, VALUE, "PX", ttl))

    async def work(self, wire, key, lease, ttl):
        if self.random.random() < 0.4:
            await super().work(wire, key, lease, ttl)
        try:
            for _ in range(self.random.randrange(1, 4)):
                wire = wire if self.random.random() < 0.5 else await self.releasing(wire)
                ttl = self.random.choice(self.ttls)
                _, reply = await self.overwrite(wire, key, ttl, lease)
                if reply != "+OK":
                    return
                await asyncio.sleep(self.random.uniform(0, 0.5) * ttl / 1000)
        except Lost:
            return
        await super().work(wire, key, lease, ttl)


class Kept(Actor):
    """Its leases are renewed; some it holds until long after that has ended."""
    kind = "kept"

    async def work(self, wire, key, lease, ttl):
        if self.random.random() < 0.1:
            return await asyncio.sleep(RENEWED + ttl / 1000 + self.random.uniform(*BEYOND))
        await super().work(wire, key, lease, ttl)


class Cutter(Actor):
    """A connection for each cycle, with nothing but that; the shim cuts it where it wants."""
    kind = "cutter"
    echoes = False

    async def cycle(self):
        self.wire = None
        key, ttl = self.random.choice(self.keys), self.random.choice(self.ttls)
        wire = await self.acquiring()
        lease = await self.acquire(wire, key, ttl)
        if lease is not None:
            await self.release(await self.releasing(wire), key, lease)
        if self.wire.open:
            self.wire.end("done")
        await asyncio.sleep(0.05)
