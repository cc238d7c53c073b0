"""Clients that know what they must see: each keeps a model of its own connection (database, protocol, user, name,
transaction, watch, subscription, reply mode) and of the keys that only it writes, and compares every frame.

Requests are sent without waiting for the answers of the one before, so that many are under way at once; where two clients
meet (a watch that must break, a message, a push to a blocked one), both have been read to the end before. It knows
nothing of how lockward shares connections: what it asks for is what a server with a connection for each client does.
"""
import collections
import itertools

from harness import marks
from harness.resp import WireError, encode

# Users, with what of their rights the model has to know.
USERS = {
    "alice": ["~*", "&*", "+@all"],
    "reader": ["~*", "&*", "+@all", "-set", "-incr"],
    "narrow": ["~narrow:*", "&*", "+@all"],
}
numbers = itertools.count(1)        # makes every value one of a kind


class Wrong(Exception):
    """An answer that this client must not get, or one that it did not get."""


def bulk(data):
    return b"$%d\r\n%s\r\n" % (len(data), data)


def number(value):
    return b":%d\r\n" % value


def array(*frames):
    return b"*%d\r\n" % len(frames) + b"".join(frames)


class Begins:
    """A frame that begins so, and holds these bytes."""

    def __init__(self, beginning, *holds):
        self.beginning, self.holds = beginning, holds

    def __eq__(self, frame):
        return frame.startswith(self.beginning) and all(part in frame for part in self.holds)

    def __repr__(self):
        return "%r... with %r" % (self.beginning, self.holds)


OK, QUEUED, PONG = b"+OK\r\n", b"+QUEUED\r\n", b"+PONG\r\n"
NOPERM, WRONGPASS, EXECABORT, ERROR = Begins(b"-NOPERM"), Begins(b"-WRONGPASS"), Begins(b"-EXECABORT"), Begins(b"-")


class Store:
    """What the keys of one run hold, by database; every key is written by one client, or by two that take turns."""

    def __init__(self):
        self.values, self.watchers = {}, collections.defaultdict(set)

    def get(self, place):
        return self.values.get(place)

    def put(self, place, value):
        self.values[place] = value
        for client in self.watchers[place]:
            client.dirty = True


class Client:
    """One connection and its model."""

    def __init__(self, proxy, name, store, limit=20):
        self.name, self.store = name, store
        self.connection = proxy.connect(limit=limit)
        self.due, self.pushes, self.due_pushes = collections.deque(), [], []
        self.said = collections.deque(maxlen=15)
        self.watched = set()
        self.fresh()

    def fresh(self):
        """The state of a new connection, and after RESET."""
        self.database, self.resp, self.user, self.own_name = 0, 2, "default", b""
        self.queue, self.aborted, self.dirty = None, False, False
        self.silent, self.skipping, self.channel, self.monitoring = False, False, None, False
        for place in self.watched:
            self.store.watchers[place].discard(self)
        self.watched = set()

    # ---- the wire

    def expect(self, frame):
        """The answer to what is sent next, unless this client asked for none."""
        if self.silent:
            return
        if self.skipping:
            self.skipping = False
            return
        self.due.append(frame)

    def ask(self, frame, *words):
        """A command whose answer does not depend on a transaction."""
        self.expect(frame)
        return encode(*words)

    def send(self, data, random):
        self.said.append(data[:200])
        cut = random.randrange(len(data)) if random.random() < 0.2 else 0
        for part in (data[:cut], data[cut:]):
            if part:
                self.connection.send(part)

    def next_frame(self):
        """The next frame that answers something; those that answer nothing are put aside."""
        while True:
            try:
                frame = self.connection.frame()
            except (WireError, OSError) as error:
                raise Wrong("%s: expected %r, got %s" % (self.name, self.due[0] if self.due else self.due_pushes,
                                                         error or type(error).__name__))
            if not frame.startswith(b">"):
                return frame
            self.pushes.append(frame)

    def drain(self):
        """Reads every answer that is due."""
        while self.due:
            frame, wanted = self.next_frame(), self.due.popleft()
            if not wanted == frame:
                raise Wrong("%s: expected %r, got %r; it sent %r" % (self.name, wanted, frame[:200], list(self.said)))
        while len(self.pushes) < len(self.due_pushes):
            try:
                frame = self.connection.frame()
            except (WireError, OSError) as error:
                raise Wrong("%s: the push %r did not come: %s" % (self.name, self.due_pushes[len(self.pushes)], error))
            if not frame.startswith(b">"):
                raise Wrong("%s: expected a push, got %r; it sent %r" % (self.name, frame[:200], list(self.said)))
            self.pushes.append(frame)
        if sorted(self.pushes) != sorted(self.due_pushes):
            raise Wrong("%s: expected the pushes %r, got %r" % (self.name, self.due_pushes, self.pushes))
        self.pushes, self.due_pushes = [], []

    def nothing_more(self):
        if not self.monitoring and self.connection.pending():
            raise Wrong("%s: got %r, for which it did not ask; it sent %r" % (
                self.name, self.connection.pending()[:200], list(self.said)))

    def close(self, hard=False):
        self.fresh()
        (self.connection.reset if hard else self.connection.close)()

    # ---- what the model knows

    def key(self):
        return "key:%s" % self.name

    def place(self):
        return (self.database, self.key())

    def nil(self):
        return b"_\r\n" if self.resp == 3 else b"$-1\r\n"

    def shown(self, value):
        return self.nil() if value is None else bulk(value)

    def is_plain(self):
        """Whether any command may be sent."""
        return not self.monitoring and (self.channel is None or self.resp == 3)

    def may(self, *commands):
        """Whether its user may run these on its keys."""
        return self.user != "narrow" and not (self.user == "reader" and set(commands) & {"set", "incr"})

    def command(self, name, apply, *words):
        """A command on its keys: `apply` changes the store and returns the answer, now or at EXEC."""
        if not self.may(name):
            if self.queue is not None:
                self.aborted = True
            return self.ask(NOPERM, *words)
        if self.queue is not None:
            self.queue.append(apply)
            return self.ask(QUEUED, *words)
        return self.ask(apply(), *words)

    # ---- plain commands

    def get(self):
        return self.command("get", lambda: self.shown(self.store.get(self.place())), "GET", self.key())

    def put(self):
        value = b"%s-%d" % (self.name.encode(), next(numbers))

        def apply():
            self.store.put(self.place(), value)
            return OK
        return self.command("set", apply, "SET", self.key(), value)

    def count(self):
        place = (self.database, "count:%s" % self.name)

        def apply():
            value = int(self.store.get(place) or 0) + 1
            self.store.put(place, b"%d" % value)
            return number(value)
        return self.command("incr", apply, "INCR", place[1])

    def ping(self):
        if self.queue is not None:
            self.queue.append(lambda: PONG)
            return self.ask(QUEUED, "PING")
        return self.ask(PONG, "PING")

    def echo(self):
        word = b"%s~%d" % (self.name.encode(), next(numbers))
        return self.command("echo", lambda: bulk(word), "ECHO", word) if self.may() else self.ping()

    # ---- locks

    def acquire(self):
        if not self.may("set"):
            return self.ping()
        lock = "lock:%s" % self.name

        def apply():
            granted = self.store.get((self.database, lock)) is None
            if granted:
                self.store.put((self.database, lock), b"1")
            return OK if granted else self.nil()
        return self.command("set", apply, "SET", lock, "1", "NX", "PX", "100000")

    def release(self):
        place = (self.database, "lock:%s" % self.name)

        def apply():
            there = self.store.get(place) is not None
            if there:
                self.store.put(place, None)
            return number(int(there))
        return self.command("del", apply, "DEL", place[1]) if self.may("set") else self.ping()

    # ---- the state of a connection

    def select(self, random):
        if self.queue is not None:
            return self.ping()
        self.database = random.choice([0, 0, 1, 2])
        return self.ask(OK, "SELECT", self.database)

    def hello(self, random):
        if self.queue is not None or self.channel:
            return self.ping()
        self.resp = random.choice([2, 3])
        answer = Begins(b"%" if self.resp == 3 else b"*", b"proto\r\n:%d\r\n" % self.resp)
        return self.ask(answer, "HELLO", self.resp)

    def login(self, random):
        if self.queue is not None:
            return self.ping()
        user = random.choice(["alice", *sorted(USERS)])
        if random.random() < 0.3:
            return self.ask(WRONGPASS, "AUTH", user, marks.WRONG_PASSWORD)
        self.user = user
        return self.ask(OK, "AUTH", user, marks.USER_PASSWORD)

    def whoami(self):
        if self.queue is not None:
            return self.ping()
        return self.ask(bulk(self.user.encode()), "ACL", "WHOAMI")

    def set_name(self):
        if self.queue is not None:
            return self.ping()
        self.own_name = b"%s-%d" % (self.name.encode(), next(numbers))
        return self.ask(OK, "CLIENT", "SETNAME", self.own_name)

    def get_name(self):
        if self.queue is not None:
            return self.ping()
        return self.ask(bulk(self.own_name) if self.own_name else self.nil(), "CLIENT", "GETNAME")

    def reply_off(self):
        """Some commands without an answer, and one with."""
        if self.queue is not None:
            return self.ping()
        self.silent = True
        out = encode("CLIENT", "REPLY", "OFF") + self.put() + self.count()
        self.silent = False
        return out + self.ask(OK, "CLIENT", "REPLY", "ON") + self.get()

    def reply_skip(self):
        if self.queue is not None:
            return self.ping()
        self.skipping = True
        return encode("CLIENT", "REPLY", "SKIP") + self.put() + self.get()

    def reset(self):
        self.fresh()
        return self.ask(b"+RESET\r\n", "RESET")

    # ---- transactions

    def multi(self):
        if self.queue is not None:
            return self.execute()
        self.queue, self.aborted = [], False
        return self.ask(OK, "MULTI")

    def execute(self):
        """EXEC, or an error without MULTI."""
        if self.queue is None:
            return self.ask(ERROR, "EXEC")
        queue, self.queue = self.queue, None
        dirty, aborted = self.dirty, self.aborted
        self.unwatched()
        if aborted:
            return self.ask(EXECABORT, "EXEC")
        if dirty:
            return self.ask(b"_\r\n" if self.resp == 3 else b"*-1\r\n", "EXEC")
        return self.ask(array(*[apply() for apply in queue]), "EXEC")

    def transaction(self):
        """A whole one in one packet; ends one that is open."""
        return self.multi() + self.put() + self.count() + self.get() + self.acquire() + self.execute()

    def discard(self):
        if self.queue is None:
            return self.ask(ERROR, "DISCARD")
        self.queue = None
        self.unwatched()
        return self.ask(OK, "DISCARD")

    def watch(self):
        if self.queue is not None or not self.may():
            return self.ping()
        self.watched.add(self.place())
        self.store.watchers[self.place()].add(self)
        return self.ask(OK, "WATCH", self.key())

    def unwatch(self):
        if self.queue is not None:
            return self.ping()
        self.unwatched()
        return self.ask(OK, "UNWATCH")

    def unwatched(self):
        for place in self.watched:
            self.store.watchers[place].discard(self)
        self.watched, self.dirty, self.aborted = set(), False, False
