"""64 clients fight for one lock, and two of them hold it too long. Each writes down what it saw, by its own clock; nobody
here looks at lockward. contention.py compares.

Within a phase the clients run freely, each in a thread of its own with its own connection and name. Only at three
moments all tries are held back, so that nothing there is luck: twice when a slow client has overrun its TTL and another
one got the lock, and once while one holds it and all others have been refused.
"""
import contextlib
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

CLIENTS = 64
SLOW = (7, 42)          # those that overrun
STANDING = 23           # the one that holds while everybody looks
KEY = "lock:hot"
SHORT_MS = 400          # the TTL that is overrun
LONG_MS = 60_000        # everybody else's, never reached
PATIENCE = 60.0         # seconds until one that waits for another gives up


class Try:
    """One SET NX: when it was sent, when its answer was there (seconds), and whether it was granted."""

    def __init__(self, sent, answered, granted):
        self.sent, self.answered, self.granted = sent, answered, granted


class Hold:
    """One lease: its try, its TTL in seconds, and its DEL: when sent, when answered, what."""

    def __init__(self, acquire, ttl):
        self.acquire, self.ttl = acquire, ttl
        self.sent = self.answered = self.reply = None
        self.overran = False        # somebody else got the lock before the DEL was sent


class Gate:
    """Holds back tries."""

    def __init__(self):
        self.condition = threading.Condition()
        self.is_closed, self.under_way = False, 0

    @contextlib.contextmanager
    def passed(self):
        self.wait(lambda: not self.is_closed, 1)
        try:
            yield
        finally:
            self.wait(lambda: True, -1)

    @contextlib.contextmanager
    def closed(self):
        """No try is under way when this begins, and none begins before it ends."""
        with self.condition:
            self.is_closed = True
        self.wait(lambda: self.under_way == 0, 0)
        try:
            yield
        finally:
            with self.condition:
                self.is_closed = False
                self.condition.notify_all()

    def wait(self, condition, change):
        with self.condition:
            if not self.condition.wait_for(condition, PATIENCE):
                raise RuntimeError("a client waited %d s for the others" % PATIENCE)
            self.under_way += change
            self.condition.notify_all()


class Client:
    """One owner with its connection."""

    def __init__(self, number, fight):
        self.number, self.fight, self.name = number, fight, "client-%02d" % number
        self.random = random.Random(number)
        self.tries, self.holds = [], []
        self.refused, self.released = threading.Event(), threading.Event()
        self.connection = fight.proxy.connect(limit=30)
        self.expect("OK", "CLIENT", "SETNAME", self.name)

    def expect(self, wanted, *command):
        reply = self.connection.ask(*command)
        if reply != wanted:
            raise RuntimeError("%s: %r" % (command[0], reply))

    def attempt(self, ttl_ms):
        """One try. Whether it was granted."""
        sent = time.monotonic()
        reply = self.connection.ask("SET", KEY, self.fight.value, "NX", "PX", ttl_ms)
        if reply not in ("OK", None):
            raise RuntimeError("SET: %r" % reply)
        self.tries.append(Try(sent, time.monotonic(), reply == "OK"))
        if reply is None:
            self.refused.set()
            return False
        self.holds.append(Hold(self.tries[-1], ttl_ms / 1000))
        self.fight.entered(self)
        return True

    def release(self):
        hold = self.holds[-1]
        self.fight.left(self)
        hold.sent = time.monotonic()
        hold.reply = self.connection.ask("DEL", KEY)
        hold.answered = time.monotonic()

    def round(self):
        """Tries until it gets the lock, holds it for a moment, gives it up."""
        while True:
            with self.fight.gate.passed():
                if self.attempt(LONG_MS):
                    break
            time.sleep(self.random.uniform(0.001, 0.02))
        if self.fight.detains(self):
            if not self.released.wait(PATIENCE):
                raise RuntimeError("nobody released what %s holds" % self.name)
            return
        time.sleep(self.random.uniform(0, 0.002))
        self.release()

    # ---- what it measured

    def waits(self):
        """(least, most) seconds of each wait: from the first refused try to the grant. lockward saw both between their
        sending and their answer."""
        first, found = None, []
        for attempt in self.tries:
            if not attempt.granted:
                first = first or attempt
            elif first:
                found.append((attempt.sent - first.answered, attempt.answered - first.sent))
                first = None
        return found

    def waiting(self):
        """Since the last grant: the first refused try, and how many."""
        tries = []
        for attempt in self.tries:
            tries = [] if attempt.granted else tries + [attempt]
        return (tries[0] if tries else None), len(tries)


class Fight:
    """All of them, phase by phase."""

    def __init__(self, proxy, value):
        self.proxy, self.value, self.gate = proxy, value, Gate()
        self.mutex, self.inside, self.overlaps = threading.Lock(), set(), 0
        self.detaining, self.detained, self.overtaken = False, None, threading.Event()
        self.clients = [Client(number, self) for number in range(CLIENTS)]

    def run(self, look):
        """`look(holder, others)` is called at the moment when one holds and all others wait."""
        with ThreadPoolExecutor(CLIENTS) as self.pool:
            self.everybody_but(None)()
            for slow in SLOW:
                self.overrun(self.clients[slow])
                self.everybody_but(None)()
            self.stand_still(self.clients[STANDING], look)

    def close(self):
        for client in self.clients:
            client.connection.close()

    # ---- phases

    def everybody_but(self, one):
        """Starts a round of all others; calling what this returns waits for its end."""
        rounds = [self.pool.submit(client.round) for client in self.clients if client is not one]
        return lambda: [done.result(PATIENCE) for done in rounds]

    def overrun(self, slow):
        """The slow one works on until another has the lock, and gives it up only then; the other one right after."""
        self.detaining = True
        self.take(slow, SHORT_MS)
        end = self.everybody_but(slow)
        if not self.overtaken.wait(PATIENCE):
            raise RuntimeError("nobody got the lock after its TTL")
        with self.gate.closed():
            slow.release()
            self.detained.release()
        self.detained.released.set()
        end()
        self.detained.released.clear()
        self.overtaken.clear()

    def stand_still(self, holder, look):
        for client in self.clients:
            client.refused.clear()
        self.take(holder, LONG_MS)
        end = self.everybody_but(holder)
        others = [client for client in self.clients if client is not holder]
        if not all(client.refused.wait(PATIENCE) for client in others):
            raise RuntimeError("a client was not refused")
        with self.gate.closed():
            look(holder, others)
        holder.release()
        end()

    @staticmethod
    def take(client, ttl_ms):
        if not client.attempt(ttl_ms):
            raise RuntimeError("the lock was not free")

    # ---- what clients tell

    def entered(self, client):
        with self.mutex:
            self.overlaps += bool(self.inside)
            for other in self.inside:
                other.holds[-1].overran = True
            self.inside.add(client)

    def left(self, client):
        with self.mutex:
            self.inside.discard(client)

    def detains(self, client):
        """Whether this client, which has just got the lock, is the one after the slow one."""
        with self.mutex:
            if not self.detaining:
                return False
            self.detaining, self.detained = False, client
        self.overtaken.set()
        return True

    # ---- what all of them measured

    def tries(self):
        return [attempt for client in self.clients for attempt in client.tries]

    def holds(self):
        return [hold for client in self.clients for hold in client.holds]

    def waits(self):
        return [wait for client in self.clients for wait in client.waits()]
