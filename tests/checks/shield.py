#!/usr/bin/env python3
"""The contention shield: of 10,000 connected clients 64 spin on one lock as fast as they can, and the server hardly notices.

    tests/checks/shield.py --proxy PATH --server PATH [--clients N] [--spinners N] [--seconds S] [--shield TIME]
                           [--mode dedicated|shared]

Whoever gets the lock holds it for some tens of milliseconds and releases it; the others ask again as soon as they are
refused. Two bounds are asserted as issue 4 states them: the acquires that reach the server each second (its own count of
SET), and the time from the moment when the release was sent to the moment when another client has its grant, at the
median. Besides, what the clients count must agree with what lockward and the server count, to the last try, and no two
clients ever hold the lock at once. With `--shield off` the same is played without the shield, and only shown.
"""
import argparse
import os
import resource
import select
import shutil
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]
from harness.processes import Proxy, Server     # noqa: E402
from harness.resp import encode, metric_sum     # noqa: E402

RULES = """
[[locks]]
name = "hot"
pattern = "lock:*"
owner = "connection"
default_ttl = "60s"
%s
"""
MOST_ACQUIRES = 1000    # acquires that the server may see in a second
LONGEST_GAP = 0.010     # seconds from a release to the next grant, at the median
HOLD = 0.050            # seconds that each holds the lock
KEY = "lock:hot"
ACQUIRE, RELEASE = encode("SET", KEY, "1", "NX", "PX", "60000"), encode("DEL", KEY)
FILES_BESIDES = 300     # what a process opens besides the connections of clients


class Wrong(Exception):
    """A bound or a count that does not hold."""


def expect(what, got, wanted):
    if got != wanted:
        raise Wrong("%s: %r, expected %r" % (what, got, wanted))


def clients_allowed(options):
    """Raises the limit of open files as far as it can be (the processes inherit it), and says so if that is not enough: a
    client with a connection of its own to the server costs lockward two."""
    each = 1 if options.mode == "shared" else 2
    wanted = each * options.clients + FILES_BESIDES
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (max(wanted, most), most):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
            break
        except (OSError, ValueError):
            continue
    allowed = (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - FILES_BESIDES) // each
    if allowed < options.clients:
        print("NOTE: %d clients instead of %d: the system allows %d open files, and each needs %d" % (
            allowed, options.clients, most, each))
    return min(allowed, options.clients)


class Spinner:
    """One client that wants the lock."""

    def __init__(self, proxy):
        self.connection = proxy.connect()
        self.connection.sock.setblocking(False)
        self.tries = self.refused = self.granted = 0
        self.release_at = None

    def send(self, data):
        self.connection.sock.send(data)

    def try_it(self):
        self.tries += 1
        self.send(ACQUIRE)


class Game:
    """All spinners, in one loop, so that everything here happens at one time by one clock."""

    def __init__(self, proxy, spinners):
        self.spinners = [Spinner(proxy) for _ in range(spinners)]
        self.by_file = {spinner.connection.sock.fileno(): spinner for spinner in self.spinners}
        self.poll = select.epoll()
        for number in self.by_file:
            self.poll.register(number, select.EPOLLIN)
        self.holder, self.released_at, self.gaps = None, None, []
        self.resting = None     # who has just released: the next grant is to be another's
        self.over = False

    def hears(self, spinner, reply):
        now = time.monotonic()
        if reply == b"$-1\r\n":
            spinner.refused += 1
            self.again(spinner)
        elif reply == b"+OK\r\n":
            if self.holder is not None:
                raise Wrong("two clients hold the lock at once")
            spinner.granted += 1
            self.holder, spinner.release_at = spinner, now + HOLD
            if self.released_at is not None:
                self.gaps.append(now - self.released_at)
            rested, self.resting = self.resting, None
            if rested:
                self.again(rested)
        elif reply == b":1\r\n":
            # Its answer may come behind the grant of the next.
            if self.holder is None:
                self.resting = spinner
            else:
                self.again(spinner)
        else:
            raise Wrong("a client heard %r" % reply)

    def again(self, spinner):
        if not self.over:
            spinner.try_it()

    def release_if_due(self):
        holder = self.holder
        if holder and time.monotonic() >= holder.release_at:
            self.holder, self.released_at = None, time.monotonic()
            holder.send(RELEASE)

    def step(self, limit):
        for number, _ in self.poll.poll(limit):
            spinner = self.by_file[number]
            self.hears(spinner, spinner.connection.sock.recv(64))
        self.release_if_due()

    def play(self, seconds, each_second):
        for spinner in self.spinners:
            spinner.try_it()
        begun, told = time.monotonic(), 0
        while time.monotonic() - begun < seconds:
            self.step(0.001)
            if time.monotonic() - begun >= told + 1:
                told += 1
                each_second()
        took = time.monotonic() - begun
        # What is under way is still answered, so that all counts agree.
        self.over = True
        while sum(spinner.tries - spinner.refused - spinner.granted for spinner in self.spinners) or self.holder:
            self.step(0.001)
        return took


def server_acquires(direct):
    """How many SETs the server has carried out, those of scripts among them."""
    for line in direct.ask("INFO", "commandstats").decode().split("\r\n"):
        if line.startswith("cmdstat_set:"):
            return int(line.split("calls=")[1].split(",")[0])
    return 0


def cpu(process):
    """Seconds of CPU that a process has used."""
    with open("/proc/%d/stat" % process.child.pid) as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def counts_agree(game, proxy, seen):
    text = proxy.metrics()
    total = lambda name, label="": metric_sum(text, '%s{rule="hot"%s}' % (name, label))
    refused = sum(spinner.refused for spinner in game.spinners)
    granted = sum(spinner.granted for spinner in game.spinners)
    shielded = total("lockward_lock_shielded_total")
    expect("contended acquires", total("lockward_lock_acquires_total", ',outcome="contended"'), refused)
    expect("granted acquires", total("lockward_lock_acquires_total", ',outcome="granted"'), granted)
    expect("acquires that the server saw", seen, refused + granted - shielded)
    return refused, granted, shielded


def check(options, server, proxy):
    idle = [proxy.connect() for _ in range(options.clients - options.spinners)]
    game = Game(proxy, options.spinners)
    with server.connect() as direct:
        seen = [server_acquires(direct)]
        before = cpu(server), cpu(proxy)
        took = game.play(options.seconds, lambda: seen.append(server_acquires(direct)))
        used = [(after - begun) / took for begun, after in zip(before, (cpu(server), cpu(proxy)))]
        total = server_acquires(direct) - seen[0]
    refused, granted, shielded = counts_agree(game, proxy, total)
    rate, gap = total / took, statistics.median(game.gaps)
    worst = max(later - earlier for earlier, later in zip(seen, seen[1:]))
    print("%d clients, %d of them spinning, shield %s: %d tries a second, %d granted, %d of %d refusals by the shield" % (
        options.clients, options.spinners, options.shield, (refused + granted) / took, granted, shielded, refused))
    print("acquires that the server saw: %d a second (%d in the worst second); CPU of the server %.0f %%, of lockward %.0f %%" % (
        rate, worst, 100 * used[0], 100 * used[1]))
    print("from a release to the next grant: median %.1f ms, longest %.1f ms, %d rounds" % (
        1000 * gap, 1000 * max(game.gaps), len(game.gaps)))
    for connection in idle:
        connection.close()
    if options.shield == "off":
        return
    if rate > MOST_ACQUIRES:
        raise Wrong("the server saw %d acquires a second, at most %d are allowed" % (rate, MOST_ACQUIRES))
    if gap > LONGEST_GAP:
        raise Wrong("%.1f ms from a release to the next grant, at most %.0f are allowed" % (1000 * gap, 1000 * LONGEST_GAP))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--clients", type=int, default=10_000, help="connected clients, those that spin among them")
    parser.add_argument("--spinners", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--shield", default="5ms", help="the rule's contention_shield, or off")
    parser.add_argument("--mode", default="dedicated", help="upstream.mode")
    options = parser.parse_args()
    if not options.server:
        sys.exit("shield: no redis-server or valkey-server on PATH: use --server $(scripts/get-server)")
    options.clients = clients_allowed(options)
    os.environ["LOCKWARD_LISTEN__MAX_CONNECTIONS"] = str(options.clients + 100)
    rules = RULES % ("" if options.shield == "off" else 'contention_shield = "%s"' % options.shield)
    if options.mode != "dedicated":
        rules += '\n[upstream]\nurl = "redis://$REDIS"\nmode = "%s"\n' % options.mode
    failed = 0
    try:
        with tempfile.TemporaryDirectory(prefix="lockward-shield-") as folder, Server(options.server, folder) as server:
            with server.connect() as direct:
                expect("maxclients", direct.ask("CONFIG", "SET", "maxclients", str(options.clients + 200)), "OK")
            with Proxy(options.proxy, server, rules, folder) as proxy:
                check(options, server, proxy)
    except (Wrong, OSError, KeyError, ValueError) as error:
        print("FAIL  %s" % (error or type(error).__name__), flush=True)
        failed = 1
    print("%d passed, %d failed" % (1 - failed, failed))
    return failed


if __name__ == "__main__":
    sys.exit(main())
