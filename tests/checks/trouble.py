"""Shared connections in trouble: readers that are slow, connections that are killed, a server that is killed. Part of the
check sharing.py; each function takes server, proxy and options and returns what it saw.
"""
import threading
import time

from harness.resp import WireError, encode
from limits import SLOWEST_MS, USUAL_MS, Wrong as Limit, times_while
from modelled import Wrong

SLOW = 3                # clients that ask for much and do not read
UNREAD_MIB = 64         # what lockward may grow by for all of them
COUNTERS = 16           # clients that count while connections are killed
DEPTH = 5               # requests of each that are under way at once
KILLING = 3.0           # seconds
BACK = 10.0             # seconds until all are served again


def slow_readers(server, proxy, options):
    """Clients that ask for large answers, for one huge answer, and without end, and read nothing: nobody else waits."""
    with server.connect() as direct:
        direct.ask("SET", "data:mib", "v" * (1 << 20))
        direct.ask("SET", "data:huge", "v" * (32 << 20))
    time.sleep(0.5)
    before, most = proxy.rss_kib(), [0]
    slow = [proxy.connect(receive_buffer=8192) for _ in range(SLOW)]
    for connection in slow:
        connection.ask("PING")

    def read_nothing():
        slow[0].send(encode("GET", "data:mib") * 200)
        slow[1].send(encode("GET", "data:huge"))
        slow[2].sock.setblocking(False)
        until = time.monotonic() + 4
        while time.monotonic() < until:
            try:
                slow[2].sock.send(encode("ECHO", "x" * 1024) * 64)
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:
                break           # lockward may end such a client
            most[0] = max(most[0], proxy.rss_kib() - before)

    try:
        times = times_while(proxy, read_nothing)
    except Limit as error:
        raise Wrong(str(error))
    finally:
        for connection in slow:
            connection.close()
    if most[0] > UNREAD_MIB * 1024:
        raise Wrong("lockward grew by %d MiB, at most %d" % (most[0] // 1024, UNREAD_MIB))
    usual, slowest = times[len(times) * 95 // 100], times[-1]
    if usual > USUAL_MS or slowest > SLOWEST_MS:
        raise Wrong("another client waited %.0f ms (95 of 100) and %.0f ms (the slowest), at most %d and %d" % (
            usual, slowest, USUAL_MS, SLOWEST_MS))
    return "grew by %.1f MiB, another client waited %.1f ms (95 of 100), %.0f ms at most" % (
        most[0] / 1024, usual, slowest)


class Counter(threading.Thread):
    """Counts up keys of its own, and knows for each request whether it was done, or may have been."""

    def __init__(self, proxy, number, done):
        super().__init__()
        self.proxy, self.key, self.done = proxy, "counter:%d" % number, done
        self.sure = self.unsure = 0     # counted and said so; answered with an error
        self.least = 0                  # what the counter is at least
        self.fault = None

    def run(self):
        try:
            with self.proxy.connect(limit=BACK) as connection:
                while not self.done.is_set():
                    connection.send(encode("INCR", self.key) * DEPTH)
                    errors = sum([self.answer(connection.reply()) for _ in range(DEPTH)])
                    if errors:
                        time.sleep(0.005)
                self.last(connection)
        except (WireError, OSError, Wrong) as error:
            self.fault = "%s: %s" % (self.key, error or type(error).__name__)

    def answer(self, reply):
        """Counts one answer; whether it was an error."""
        if isinstance(reply, str):
            # A server that starts again says so itself, and has done nothing.
            if reply.startswith("LOADING"):
                return True
            if not reply.startswith("UPSTREAM"):
                raise Wrong("an answer that is neither a number nor lockward's: %r" % reply)
            self.unsure += 1
            return True
        self.sure += 1
        # Each number above the last one is a request that was done: at most those that were answered with an error.
        if not self.least < reply <= self.sure + self.unsure:
            raise Wrong("got %d after %d, with %d requests answered, %d of them with an error" % (
                reply, self.least, self.sure + self.unsure, self.unsure))
        self.least = reply
        return False

    def last(self, connection):
        """All is well again: nothing of what was answered with an error is done any more, and nothing comes twice."""
        deadline = time.monotonic() + BACK
        while isinstance(connection.ask("GET", self.key), str):
            if time.monotonic() > deadline:
                raise Wrong("no service %d s after the end" % BACK)
            time.sleep(0.05)
        value = int(connection.ask("GET", self.key) or 0)
        if not self.sure <= value <= self.sure + self.unsure:
            raise Wrong("the counter is %d: %d were answered with a number, %d with an error" % (
                value, self.sure, self.unsure))
        word = "nonce of %s" % self.key
        if connection.ask("ECHO", word) != word.encode() or connection.pending():
            raise Wrong("an answer too many")


def count_while(proxy, action):
    """Lets all count while `action` runs; returns how many requests were answered, and how many with an error."""
    done = threading.Event()
    counters = [Counter(proxy, number, done) for number in range(COUNTERS)]
    for counter in counters:
        counter.start()
    try:
        action()
    finally:
        done.set()
        for counter in counters:
            counter.join()
    faults = [counter.fault for counter in counters if counter.fault]
    if faults:
        raise Wrong("%d of %d: %s" % (len(faults), COUNTERS, faults[0]))
    errors = sum(counter.unsure for counter in counters)
    if not errors:
        raise Wrong("no request was answered with an error: nothing was tested")
    return sum(counter.sure for counter in counters) + errors, errors


def killed_connections(server, proxy, options):
    """CLIENT KILL of every connection under load: an error for each unanswered request, nothing twice, and back again."""
    kills = [0]

    def kill():
        with server.connect() as direct:
            until = time.monotonic() + KILLING
            while time.monotonic() < until:
                time.sleep(0.1)
                kills[0] += direct.ask("CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal")

    answered, errors = count_while(proxy, kill)
    return "%d connections killed, %d requests, %d answered with an error" % (kills[0], answered, errors)


def killed_server(server, proxy, options):
    """The server is killed and started twice under load."""
    def kill():
        for _ in range(2):
            time.sleep(1)
            server.kill()
            time.sleep(0.5)
            server.start()
            time.sleep(1)

    answered, errors = count_while(proxy, kill)
    return "%d requests, %d answered with an error" % (answered, errors)
