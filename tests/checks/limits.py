#!/usr/bin/env python3
"""What lockward costs and survives: a crash with locks held, idle connections, and clients that do not read.

    tests/checks/limits.py --proxy PATH --server PATH [--mode shared] [--only TEXT]

The bounds are conditions with room to spare, no benchmarks: a crowded machine must pass too.
"""
import argparse
import os
import resource
import shutil
import socket
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]
from harness.processes import DEFAULT_RULES, Proxy, Server     # noqa: E402
from harness.resp import WireError, encode      # noqa: E402

HOLDERS = 100
IDLE = 1000
IDLE_KIB = 16           # KiB of the proxy's memory that one idle connection may cost
PIPELINED = 100_000
UNREAD_MIB = 48         # MiB that the proxy may grow by a client that never reads
USUAL_MS = 100          # what 95 of 100 answers to another client may take meanwhile
SLOWEST_MS = 1000       # and the slowest one


class Wrong(Exception):
    """A bound that does not hold."""


def expect(what, got, wanted):
    if got != wanted:
        raise Wrong("%s: expected %r, got %r" % (what, wanted, got))


def locks_survive_a_crash(server, proxy):
    """kill -9 with 100 locks held from 100 addresses: after the restart their owners can release them, nobody else."""
    def host(i):
        return "127.0.1.%d" % (i + 1)

    held = [proxy.connect(source=host(i)) for i in range(HOLDERS)]
    for i, connection in enumerate(held):
        expect("acquire", connection.ask("SET", "lock:crash:%d" % i, "1", "NX", "EX", "300"), "OK")
    proxy.kill()
    for connection in held:
        connection.close()
    proxy.start()
    for i in range(HOLDERS):
        with proxy.connect(source=host((i + 1) % HOLDERS)) as stranger:
            expect("a stranger's release of lock %d" % i, stranger.ask("DEL", "lock:crash:%d" % i), 0)
            expect("a stranger's extend of lock %d" % i, stranger.ask("EXPIRE", "lock:crash:%d" % i, "1"), 0)
    for i in range(HOLDERS):
        with proxy.connect(source=host(i)) as owner:
            expect("its owner's release of lock %d" % i, owner.ask("DEL", "lock:crash:%d" % i), 1)
    with server.connect() as direct:
        expect("what is left on the server", direct.ask("KEYS", "*lock:crash:*"), [])
    return "%d locks" % HOLDERS


def cycle(connection, i):
    expect("acquire", connection.ask("SET", "lock:idle:%d" % i, "1", "NX", "EX", "30"), "OK")
    expect("release", connection.ask("DEL", "lock:idle:%d" % i), 1)


def idle_connections_are_cheap(server, proxy):
    """1,000 connections that did one lock cycle each and then idle."""
    for i in range(50):                 # what the proxy needs once is not the price of a connection
        with proxy.connect() as connection:
            cycle(connection, i)
    time.sleep(0.5)
    before = proxy.rss_kib()
    connections = []
    try:
        for i in range(IDLE):
            connections.append(proxy.connect())
            cycle(connections[-1], i)
        time.sleep(1)
        each = (proxy.rss_kib() - before) / IDLE
    finally:
        for connection in connections:
            connection.close()
    if each > IDLE_KIB:
        raise Wrong("%.1f KiB for each idle connection, at most %d" % (each, IDLE_KIB))
    return "%.1f KiB each" % each


def all_sent_before_any_is_read(server, proxy):
    """A client that writes 100,000 GETs of 1 KiB (100 MiB of answers) and only then begins to read."""
    with proxy.connect(limit=60) as connection:
        expect("SET", connection.ask("SET", "data:kib", "v" * 1024), "OK")
        connection.send(encode("GET", "data:kib") * PIPELINED)
        answer = b"$1024\r\n" + b"v" * 1024 + b"\r\n"
        for _ in range(PIPELINED // 1000):
            expect("a thousand answers", connection.take(len(answer) * 1000) == answer * 1000, True)
        expect("what follows", connection.ask("PING"), "PONG")
    return "%d answers" % PIPELINED


def times_while(proxy, action):
    """The round trips, in milliseconds and sorted, of another client while `action` runs."""
    done, times = threading.Event(), []

    def other():
        with proxy.connect(source="127.0.0.99", limit=30) as connection:
            while not done.is_set():
                begun = time.monotonic()
                connection.ask("SET", "data:other", "x")
                times.append(1000 * (time.monotonic() - begun))
                time.sleep(0.005)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        action()
    finally:
        done.set()
        thread.join()
    if not times:
        raise Wrong("another client got no answer at all")
    return sorted(times)


def unread_answers_stay_outside(server, proxy):
    """Clients that ask for much and never read: large answers, and requests without end."""
    with server.connect() as direct:
        direct.ask("SET", "data:mib", "v" * (1 << 20))
    time.sleep(0.5)
    before, most = proxy.rss_kib(), [0]
    greedy = [proxy.connect(receive_buffer=8192) for _ in range(2)]

    def never_read():
        greedy[0].send(encode("GET", "data:mib") * 200)
        greedy[1].sock.setblocking(False)
        requests = encode("ECHO", "x" * 1024) * 64
        until = time.monotonic() + 4
        while time.monotonic() < until:
            try:
                greedy[1].sock.send(requests)
            except BlockingIOError:
                time.sleep(0.01)
            except (ConnectionError, socket.timeout):
                break                   # lockward may end such a client
            most[0] = max(most[0], proxy.rss_kib() - before)

    try:
        times = times_while(proxy, never_read)
    finally:
        for connection in greedy:
            connection.close()
        with server.connect() as direct:
            direct.ask("DEL", "data:mib")
    if most[0] > UNREAD_MIB * 1024:
        raise Wrong("the proxy grew by %d MiB, at most %d" % (most[0] // 1024, UNREAD_MIB))
    usual, slowest = times[len(times) * 95 // 100], times[-1]
    if usual > USUAL_MS or slowest > SLOWEST_MS:
        raise Wrong("another client waited %.0f ms (95 of 100) and %.0f ms (the slowest), at most %d and %d" % (
            usual, slowest, USUAL_MS, SLOWEST_MS))
    return "grew by %.1f MiB, another client waited %.1f ms (95 of 100), %.0f ms at most" % (
        most[0] / 1024, usual, slowest)


def announced_lengths_cost_nothing(server, proxy):
    """Requests that announce half a gigabyte, or a million arguments, and send nothing of it."""
    before = proxy.rss_kib()
    waiting = []
    try:
        for _ in range(50):
            for header in (b"*2\r\n$3\r\nGET\r\n$536870912\r\n", b"*1048576\r\n$3\r\n"):
                waiting.append(proxy.connect())
                waiting[-1].send(header)
        time.sleep(0.5)
        grown = (proxy.rss_kib() - before) / 1024
    finally:
        for connection in waiting:
            connection.close()
    if grown > 8:
        raise Wrong("the proxy grew by %.1f MiB for announcements, at most 8" % grown)
    return "grew by %.1f MiB" % grown


CHECKS = [locks_survive_a_crash, idle_connections_are_cheap, all_sent_before_any_is_read, unread_answers_stay_outside,
          announced_lengths_cost_nothing]


def allow_many_files():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 16384 if hard == resource.RLIM_INFINITY else min(hard, 16384)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--mode", choices=["dedicated", "shared"], help="of the connections to the server")
    parser.add_argument("--only", default="", help="only checks whose name holds this text")
    options = parser.parse_args()
    if not options.server:
        sys.exit("limits: no redis-server or valkey-server on PATH: use --server $(scripts/get-server)")
    allow_many_files()
    passed = failed = 0
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory(prefix="lockward-limits-") as folder:
            try:
                with Server(options.server, folder) as server, \
                        Proxy(options.proxy, server, DEFAULT_RULES, folder, mode=options.mode) as proxy:
                    said = check(server, proxy)
                    if not proxy.is_running():
                        raise Wrong("the proxy ended; its last words: %s" % proxy.last_words())
                passed += 1
                print("ok    %s: %s" % (name, said), flush=True)
            except (Wrong, WireError, OSError, RuntimeError) as error:
                failed += 1
                print("FAIL  %s: %s" % (name, error or type(error).__name__), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
