"""One run of the random interleaving: some modelled clients, what they do next drawn by lot, and what happens where two of
them meet. A seed gives the same run again, as far as the sender goes; who is served first is the proxy's business.
"""
import random
import re
import time

from harness.resp import encode
from modelled import OK, USERS, Client, Store, Wrong, array, bulk, number

CLIENTS = 16
STEPS = 300
PAUSES = (100, 200)     # steps before which everybody is quiet for a while, in runs that pause
PAUSE = 1.3             # seconds: after that, lockward takes a connection away from a client that needs none of its own
PATIENCE = 10           # seconds for what is not immediate
# What a client does by itself, and how often.
ALONE = {
    "get": 8, "put": 8, "count": 4, "ping": 1, "echo": 4, "acquire": 4, "release": 4, "select": 3, "hello": 3, "login": 3,
    "whoami": 2, "set_name": 2, "get_name": 3, "reply_off": 1, "reply_skip": 1, "reset": 1, "multi": 6, "execute": 3,
    "discard": 1, "watch": 4, "unwatch": 1, "transaction": 3,
}
TAKES_RANDOM = {"select", "hello", "login"}


def message(client, *words):
    """A pub/sub frame as this client gets it."""
    frame = array(*[word if word.startswith(b":") else bulk(word) for word in words])
    if client.resp == 3:
        client.due_pushes.append(b">" + frame[1:])
    else:
        client.due.append(frame)


class Run:
    """`direct` is a connection to the server itself, of this run alone. In a run that `pauses` all clients are quiet now
    and then, with whatever state they have."""

    def __init__(self, proxy, direct, seed, pauses):
        self.pauses = pauses
        self.proxy, self.direct, self.random = proxy, direct, random.Random(seed)
        self.name, self.store, self.born = "r%x" % seed, Store(), 0
        self.clients = [self.newcomer() for _ in range(CLIENTS)]

    def newcomer(self):
        self.born += 1
        return Client(self.proxy, "%s-%d" % (self.name, self.born), self.store)

    def play(self):
        meetings = [self.foreign_write, self.subscription, self.blocking, self.monitor, self.tracking, self.leaves]
        weights = [6, 4, 3, 1, 2, 4]
        try:
            for step in range(STEPS):
                if self.pauses and step in PAUSES:
                    time.sleep(PAUSE)
                client = self.random.choice(self.clients)
                if self.random.random() < 0.75:
                    self.alone(client)
                else:
                    self.random.choices(meetings, weights)[0](client)
                if self.random.random() < 0.2:
                    self.random.choice(self.clients).drain()
            for client in self.clients:
                client.drain()
            for client in self.clients:
                client.nothing_more()
        finally:
            for client in self.clients:
                client.connection.close()

    # ---- one client

    def alone(self, client):
        """Up to five commands in one packet, or in two pieces."""
        if not client.is_plain():
            if client.channel and self.random.random() < 0.4:
                self.unsubscribe(client)
            return
        data = b""
        for name in self.random.choices(list(ALONE), ALONE.values(), k=self.random.randint(1, 5)):
            action = getattr(client, name)
            data += action(self.random) if name in TAKES_RANDOM else action()
        client.send(data, self.random)

    def leaves(self, client):
        """Goes, with whatever it has open and due, and somebody else comes in its place."""
        client.close(hard=self.random.random() < 0.5)
        self.clients[self.clients.index(client)] = self.newcomer()

    # ---- two that meet

    def writes(self, database, *words):
        """The server's own view of a database: what nobody's state can touch."""
        for command in (("SELECT", database), words):
            answer = self.direct.ask(*command)
        return answer

    def other(self, client):
        """Somebody else who can do anything in the same database, or None."""
        fit = [o for o in self.clients if o is not client and o.is_plain() and o.queue is None and o.may("set")
               and o.database == client.database]
        return self.random.choice(fit) if fit else None

    def foreign_write(self, client):
        """Somebody else writes this client's key: a watch on it must break."""
        client.drain()
        other, value = self.other(client), b"foreign-%d" % self.random.randrange(10 ** 9)
        if other:
            other.send(other.ask(OK, "SET", client.key(), value), self.random)
            other.drain()
        else:
            self.writes(client.database, "SET", client.key(), value)
        self.store.put(client.place(), value)

    def subscription(self, client):
        """Subscribes if it is not subscribed; else it gets a message, and nobody else does."""
        if client.queue is not None or client.monitoring:
            return
        if client.channel is None:
            client.channel = b"channel:%s" % client.name.encode()
            message(client, b"subscribe", client.channel, b":1\r\n")
            client.send(encode("SUBSCRIBE", client.channel), self.random)
            return
        client.drain()
        word = b"message-%d" % self.random.randrange(10 ** 9)
        other = self.other(client)
        if other:
            other.send(other.ask(number(1), "PUBLISH", client.channel, word), self.random)
            other.drain()
        elif self.direct.ask("PUBLISH", client.channel, word) != 1:
            raise Wrong("%s: it is not subscribed on the server" % client.name)
        message(client, b"message", client.channel, word)

    def unsubscribe(self, client):
        message(client, b"unsubscribe", client.channel, b":0\r\n")
        client.send(encode("UNSUBSCRIBE", client.channel), self.random)
        client.channel = None

    def blocking(self, client):
        """Waits for an element that somebody else pushes; or leaves meanwhile, and then the element stays."""
        if not client.is_plain() or client.queue is not None or not client.may():
            return
        client.drain()
        key, word = b"list:%s" % client.name.encode(), b"element-%d" % self.random.randrange(10 ** 9)
        client.send(client.ask(array(bulk(key), bulk(word)), "BLPOP", key, "30"), self.random)
        self.until(lambda: self.blocked() == 1, "%s is not blocked on the server" % client.name)
        bystander = self.other(client)
        if bystander:           # it is served though somebody else is blocked
            bystander.send(bystander.put() + bystander.get(), self.random)
            bystander.drain()
        if self.random.random() < 0.3:
            self.leaves(client)
            self.until(lambda: self.blocked() == 0, "%s left and is still blocked" % client.name)
            if self.writes(client.database, "RPUSH", key, word) != 1 or self.direct.ask("LLEN", key) != 1:
                raise Wrong("an element was swallowed by %s, who had left" % client.name)
            return
        self.writes(client.database, "RPUSH", key, word)
        client.drain()

    def blocked(self):
        """How many clients the server has that wait for an element. Nobody else blocks there."""
        return int(re.search(rb"blocked_clients:(\d+)", self.direct.ask("INFO", "clients")).group(1))

    def until(self, condition, complaint):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise Wrong(complaint)
            time.sleep(0.001)

    def monitor(self, client):
        """Sees what others say; what it sees reaches nobody else. It ends by leaving."""
        if not client.is_plain() or client.queue is not None or not client.may() or client.channel:
            return
        client.drain()
        client.send(client.ask(OK, "MONITOR"), self.random)
        client.drain()
        client.monitoring = True
        word = "seen-%d" % self.random.randrange(10 ** 9)
        self.direct.ask("ECHO", word)
        for _ in range(100_000):
            if word.encode() in client.connection.frame():
                break
        else:
            raise Wrong("%s: MONITOR did not show %s" % (client.name, word))
        if self.random.random() < 0.7:
            self.leaves(client)

    def tracking(self, client):
        """Is told when somebody else writes what it read, in RESP3; nobody else is told."""
        if client.resp != 3 or not client.is_plain() or client.queue is not None or not client.may():
            return
        client.drain()
        key = b"tracked:%s" % client.name.encode()
        client.send(client.ask(OK, "CLIENT", "TRACKING", "ON") + client.ask(b"_\r\n", "GET", key), self.random)
        client.drain()
        self.writes(client.database, "SET", key, "1")
        self.direct.ask("DEL", key)
        client.due_pushes.append(b">2\r\n" + bulk(b"invalidate") + array(bulk(key)))
        client.drain()
        if self.random.random() < 0.2:
            return self.leaves(client)
        client.send(client.ask(OK, "CLIENT", "TRACKING", "OFF"), self.random)


def make_users(direct, password):
    for user, rights in USERS.items():
        if direct.ask("ACL", "SETUSER", user, "reset", "on", ">" + password, *rights) != "OK":
            raise Wrong("the server takes no user")
