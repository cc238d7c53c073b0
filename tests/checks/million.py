#!/usr/bin/env python3
"""A million different lock names: what lockward keeps of them is bounded, and it says what it dropped.

    tests/checks/million.py --proxy PATH --server PATH [--only TEXT]

A million under an observe rule, all acquired; three hundred thousand under an enforce rule, where each takes a script and
a record on the server: that is thrice what the tables hold, and the last of them are released by somebody who does not
hold them. Beside that, lock-shaped traffic on names that no rule matches, and at last names of many kilobytes. Meanwhile
/metrics is scraped, the table listed, and a stream of events and one of snapshots are read. The bounds are those of
docs/limits.md; what was dropped must be what both the table and /metrics say.
"""
import argparse
import os
import shutil
import socket
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]
from harness.processes import Proxy, Server     # noqa: E402
from harness.resp import WireError, metric_sum      # noqa: E402

# MiB that lockward may grow, as docs/limits.md has them: by short names, and by names of all lengths.
GROWN_MIB, GROWN_LONG_MIB = 160, 400
LEASES = 100_000        # rows of the table
WAITERS = 10_000
LASTING = 150_000       # so many of the names stay locked to the end: more than the table holds
NAMES = {"enforce": 300_000, "observe": 1_000_000}
ACQUIRED = {"enforce": 250_000, "observe": 1_000_000}       # so many of them are acquired at all
LONG_NAMES = [(4000, 20_000), (65_536, 500)]        # bytes, and how many of them: more than the table keeps, and too long
BATCH = 500             # commands written in one go
CONNECTIONS = 4

RULES = """
[[locks]]
name = "many"
pattern = "lock:*"
owner = "connection"
mode = "%s"
late_release_window = "1s"
"""


class Wrong(Exception):
    """A bound that does not hold."""


def acquire(name, ttl_ms):
    return b"*6\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$1\r\n1\r\n$2\r\nNX\r\n$2\r\nPX\r\n$%d\r\n%d\r\n" % (
        len(name), name, len(b"%d" % ttl_ms), ttl_ms)


def release(name):
    return b"*2\r\n$3\r\nDEL\r\n$%d\r\n%s\r\n" % (len(name), name)


class Background:
    """Threads that do something again and again, or read a stream, until the block ends. The first error is raised."""

    def __init__(self):
        self.done, self.threads, self.failure, self.counts = threading.Event(), [], None, {}

    def repeat(self, name, action, pause):
        def run():
            while not self.done.is_set():
                try:
                    action()
                    self.counts[name] = self.counts.get(name, 0) + 1
                except Exception as error:      # whatever it is, the main thread must hear of it
                    self.failure = self.failure or (name, error)
                    return
                self.done.wait(pause)
        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def stream(self, name, port, path):
        """Reads a stream of server-sent events, counts its messages and keeps nothing."""
        connection = socket.create_connection(("127.0.0.1", port), timeout=15)
        connection.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode())
        end = b""

        def read():
            nonlocal end
            data = connection.recv(1 << 18)
            if not data:
                raise Wrong("the stream of %s ended" % name)
            self.counts[name + " messages"] = self.counts.get(name + " messages", 0) + (end + data).count(b"\n\n")
            end = data[-1:]
        self.repeat(name, read, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.done.set()
        for thread in self.threads:
            thread.join()


class Sender(threading.Thread):
    """One connection's share of the names: acquires on locks, and lock-shaped traffic on names that no rule matches."""

    def __init__(self, proxy, numbers, acquired):
        super().__init__(daemon=True)
        self.proxy, self.numbers, self.acquired, self.failure = proxy, numbers, acquired, None

    def run(self):
        try:
            with self.proxy.connect(limit=60) as first, self.proxy.connect(limit=60) as second:
                for start in range(self.numbers.start, self.numbers.stop, BATCH):
                    self.play(first, second, range(start, min(start + BATCH, self.numbers.stop)))
        except Exception as error:      # whatever it is, the main thread must hear of it
            self.failure = error

    def play(self, first, second, numbers):
        locks = [(b"lock:%d" % number, 600_000 if number < LASTING else 1000) for number in numbers]
        if numbers.start < self.acquired:
            first.send(b"".join(acquire(*lock) for lock in locks))
            self.answers(first, b"+OK\r\n", len(locks))
        else:
            first.send(b"".join(release(name) for name, _ in locks))
            self.answers(first, b":0\r\n", len(locks))
        # Every tenth of those that stay is wanted by somebody else too.
        wanted = locks[::10] if numbers.stop <= LASTING else []
        second.send(b"".join(acquire(*lock) for lock in wanted))
        self.answers(second, b"$-1\r\n", len(wanted))
        strange = [b"other:%d" % number for number in numbers[::5]]
        second.send(b"".join(acquire(name, 600_000) + release(name) for name in strange))
        self.answers(second, b"+OK\r\n:1\r\n", len(strange))

    @staticmethod
    def answers(connection, answer, count):
        got = connection.take(len(answer) * count)
        if got != answer * count:
            raise Wrong("an answer that is not %r: %r" % (answer, got[:200]))


def send(proxy, first, names, acquired):
    share = names // CONNECTIONS
    senders = [Sender(proxy, range(first + i * share, first + (i + 1) * share), acquired) for i in range(CONNECTIONS)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
        if sender.failure:
            raise Wrong("a client: %r" % sender.failure)
    return share * CONNECTIONS


def send_long_names(proxy):
    """They are acquired by one and wanted by another; the names that no rule matches are as long."""
    with proxy.connect(limit=60) as first, proxy.connect(limit=60) as second:
        for length, count in LONG_NAMES:
            for start in range(0, count, 50):
                ends = [b"%0*d" % (length, number) for number in range(start, start + 50)]
                first.send(b"".join(acquire(b"lock:" + end, 600_000) for end in ends))
                Sender.answers(first, b"+OK\r\n", 50)
                second.send(b"".join(acquire(b"lock:" + end, 600_000) for end in ends))
                Sender.answers(second, b"$-1\r\n", 50)
                first.send(b"".join(acquire(b"other:" + end, 600_000) + release(b"other:" + end) for end in ends))
                Sender.answers(first, b"+OK\r\n:1\r\n", 50)


def series(text):
    return sorted(line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#"))


def play(mode, names, proxy):
    # What lockward needs once is not the price of names.
    send(proxy, names, 4 * BATCH * CONNECTIONS, 2 * names)
    before_series, before_kib = series(proxy.metrics()), proxy.rss_kib()
    most = [0]

    def weigh():
        most[0] = max(most[0], proxy.rss_kib())

    begun = time.monotonic()
    with Background() as background:
        background.repeat("memory", weigh, 0.05)
        background.repeat("scrapes", proxy.metrics, 0.5)
        background.repeat("lists", lambda: proxy.json("/api/v1/locks?limit=1000"), 0.5)
        background.repeat("suggestions", lambda: proxy.json("/api/v1/suggestions"), 1)
        background.stream("events", proxy.admin_port, "/api/v1/events")
        background.stream("live", proxy.admin_port, "/api/v1/live")
        sent = send(proxy, 0, names, ACQUIRED[mode])
        took = time.monotonic() - begun
        listed, text = listed_at_rest(proxy), proxy.metrics()
        short_names_kib = most[0]
        send_long_names(proxy)
    if background.failure:
        raise Wrong("%s: %r" % background.failure)
    check_table(listed, text, min(sent, ACQUIRED[mode]))
    if series(text) != before_series:
        raise Wrong("there are %d series, before there were %d" % (len(series(text)), len(before_series)))
    for name in ("scrapes", "lists", "suggestions", "events messages", "live messages"):
        if not background.counts.get(name):
            raise Wrong("no %s meanwhile" % name)
    grown, grown_long = (short_names_kib - before_kib) / 1024, (most[0] - before_kib) / 1024
    if grown > GROWN_MIB or grown_long > GROWN_LONG_MIB:
        raise Wrong("lockward grew by %.1f MiB, at most %d; with long names by %.1f, at most %d" % (
            grown, GROWN_MIB, grown_long, GROWN_LONG_MIB))
    return "%d names in %.1f s, grew from %.1f MiB by %.1f, with long names by %.1f; %d rows, %d leases and %d waiters " \
        "dropped; %d series; %s" % (
        sent, took, before_kib / 1024, grown, grown_long, listed["total"], listed["dropped"]["leases"],
        listed["dropped"]["waiters"], len(before_series),
        ", ".join("%d %s" % (count, name) for name, count in sorted(background.counts.items()) if name != "memory"))


def listed_at_rest(proxy):
    """The table once what was sent has reached it: rows that go while it is read are not shown."""
    deadline, listed = time.monotonic() + 30, {"total": None}
    while time.monotonic() < deadline:
        before, listed = listed["total"], proxy.json("/api/v1/locks?limit=1000")
        if listed["total"] == before and len(listed["locks"]) == 1000:
            break
        time.sleep(0.1)
    return listed


def check_table(listed, text, sent):
    """What the table holds, what it dropped, and that /metrics says the same."""
    granted = metric_sum(text, 'lockward_lock_acquires_total{rule="many",outcome="granted"}')
    if granted < sent:
        raise Wrong("%d granted of %d" % (granted, sent))
    if not 0 < listed["total"] <= LEASES or len(listed["locks"]) != 1000:
        raise Wrong("the table has %d rows, shows %d" % (listed["total"], len(listed["locks"])))
    dropped = listed["dropped"]
    if dropped["leases"] < LASTING - LEASES:
        raise Wrong("only %d leases are said to be dropped" % dropped["leases"])
    if metric_sum(text, "lockward_lock_waiters") > WAITERS:
        raise Wrong("more than %d waiters" % WAITERS)
    if not dropped["histories"]:
        raise Wrong("no history was dropped")
    for kind in ("lease", "waiter"):
        said, counted = dropped[kind + "s"], metric_sum(text, 'lockward_lock_table_dropped_total{kind="%s"}' % kind)
        # The list was read first.
        if counted < said or not said:
            raise Wrong("dropped %ss: the table says %d, /metrics %d" % (kind, said, counted))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("valkey-server") or shutil.which("redis-server"))
    parser.add_argument("--only", default="", help="only modes whose name holds this text")
    options = parser.parse_args()
    if not options.server:
        sys.exit("million: no redis-server or valkey-server on PATH: use --server $(scripts/get-server)")
    passed = failed = 0
    for mode in ("enforce", "observe"):
        if options.only not in mode:
            continue
        with tempfile.TemporaryDirectory(prefix="lockward-million-") as folder:
            try:
                with Server(options.server, folder) as server, \
                        Proxy(options.proxy, server, RULES % mode, folder) as proxy:
                    said = play(mode, NAMES[mode], proxy)
                    if not proxy.is_running():
                        raise Wrong("the proxy ended; its last words: %s" % proxy.last_words())
                passed += 1
                print("ok    %s: %s" % (mode, said), flush=True)
            except (Wrong, WireError, OSError, RuntimeError) as error:
                failed += 1
                print("FAIL  %s: %s" % (mode, error or type(error).__name__), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
