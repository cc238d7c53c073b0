#!/usr/bin/env python3
"""Many connections with mixed traffic for a long time: memory stays flat, no descriptor is left open, and connections to the
server are given back after transactions, subscriptions and blocking commands.

    tests/checks/soak.py --proxy PATH --server PATH [--minutes N] [--clients N] [--rate N] [--mode MODE]
"""
import argparse
import asyncio
import os
import random
import resource
import shutil
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]
from harness.processes import DEFAULT_RULES, Proxy, Server     # noqa: E402
from harness.resp import WireError, encode      # noqa: E402

LIMIT = 60.0            # seconds that one answer may take: the machine is full of clients
LOOKS = 60              # how often memory and descriptors are looked at
GROWTH = 1.10           # the last third of the looks to the first, in the middle
SPARE_KIB = 4096
TRANSACTIONS = 10_000   # at least so many, where the soak takes 30 minutes


class Wrong(Exception):
    """An answer that is not the right one."""


class Client:
    """One connection after the other, and what it asks for now and then."""

    def __init__(self, soak, number):
        self.soak, self.number, self.chance = soak, number, random.Random(number)
        self.reader = self.writer = None

    async def ask(self, *words, lines=1):
        """The lines of the answers; a bulk is two."""
        self.writer.write(encode(*words))
        return await self.read(lines)

    async def read(self, lines):
        async def all_of_them():
            return [(await self.reader.readuntil(b"\r\n"))[:-2] for _ in range(lines)]
        return await asyncio.wait_for(all_of_them(), LIMIT)

    def expect(self, what, got, wanted):
        self.soak.requests += 1
        if got != wanted:
            raise Wrong("%s: expected %r, got %r" % (what, wanted, got))

    async def plain(self):
        key, value = "soak:%d" % self.number, "v" * self.chance.choice((3, 300, 3000))
        self.expect("SET", await self.ask("SET", key, value), [b"+OK"])
        self.expect("GET", await self.ask("GET", key, lines=2), [b"$%d" % len(value), value.encode()])

    async def pipeline(self):
        self.writer.write(encode("PING") * 16)
        self.expect("pipeline", await self.read(16), [b"+PONG"] * 16)

    async def lock(self):
        key = "lock:soak:%d" % self.number
        self.expect("acquire", await self.ask("SET", key, "1", "NX", "PX", "60000"), [b"+OK"])
        self.expect("release", await self.ask("DEL", key), [b":1"])

    async def contended(self):
        answer = await self.ask("SET", "lock:soak:all", "1", "NX", "PX", "20")
        if answer not in ([b"+OK"], [b"$-1"]):
            raise Wrong("contended: %r" % answer)
        self.soak.requests += 1

    async def transaction(self):
        self.writer.write(encode("WATCH", "soak:w") + encode("MULTI") + encode("INCR", "soak:%d:n" % self.number)
                          + encode("EXEC"))
        answer = await self.read(5)
        self.expect("transaction", answer[:4], [b"+OK", b"+OK", b"+QUEUED", b"*1"])
        self.soak.transactions += 1

    async def blocking(self):
        self.expect("BLPOP", await self.ask("BLPOP", "soak:none", "0.05"), [b"*-1"])

    async def subscription(self):
        channel = "soak:%d" % self.number
        await self.ask("SUBSCRIBE", channel, lines=6)
        await self.ask("UNSUBSCRIBE", channel, lines=6)
        self.expect("PING", await self.ask("PING"), [b"+PONG"])

    async def again(self):
        self.writer.close()
        await self.connect()

    async def connect(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.soak.port)
        self.expect("PING", await self.ask("PING"), [b"+PONG"])

    async def run(self):
        kinds = [self.plain] * 6 + [self.lock] * 4 + [self.pipeline, self.contended, self.transaction, self.blocking,
                                                     self.subscription, self.again]
        try:
            await self.connect()
            while not self.soak.over.is_set():
                await asyncio.sleep(self.chance.uniform(0, 2 * self.soak.pause))
                await self.chance.choice(kinds)()
        except (Wrong, OSError, asyncio.TimeoutError, asyncio.IncompleteReadError) as error:
            self.soak.faults.append("client %d: %s" % (self.number, error or type(error).__name__))
        finally:
            if self.writer:
                self.writer.close()


class Soak:
    def __init__(self, port, clients, rate):
        self.port, self.clients, self.over = port, clients, asyncio.Event()
        self.requests, self.transactions, self.faults = 0, 0, []
        self.pause = clients / rate

    async def run(self, seconds, look):
        tasks = []
        for number in range(self.clients):
            tasks.append(asyncio.ensure_future(Client(self, number).run()))
            if number % 50 == 49:
                await asyncio.sleep(0.05)
        await asyncio.sleep(self.pause)
        for _ in range(LOOKS):
            await asyncio.sleep(seconds / LOOKS)
            look()
        self.over.set()
        await asyncio.gather(*tasks)


def descriptors(process):
    return len(os.listdir("/proc/%d/fd" % process.child.pid))


def metric(proxy, name):
    lines = proxy.get("/metrics", limit=30).splitlines()
    return next(float(line.split(" ")[-1]) for line in lines if line.startswith(name + " "))


def soaked(options, proxy):
    """Yields what was asked, whether it holds, and the figures."""
    with proxy.connect() as client:
        client.ask("PING")      # all threads are there
    deadline = time.monotonic() + LIMIT
    while metric(proxy, "lockward_downstream_connections") and time.monotonic() < deadline:
        time.sleep(0.2)
    before, looks = descriptors(proxy), []
    soak = Soak(proxy.port, options.clients, options.rate)

    def look():
        looks.append((proxy.rss_kib(), descriptors(proxy), metric(proxy, "lockward_upstream_connections")))
        if options.verbose:
            print("%5d s  %8d KiB, %5d descriptors, %5d upstream; %d requests, %d transactions, %d faults" % (
                time.monotonic() - begun, *looks[-1], soak.requests, soak.transactions, len(soak.faults)), flush=True)

    begun = time.monotonic()
    asyncio.run(soak.run(options.minutes * 60, look))
    third = len(looks) // 3
    first, last = ([statistics.median(column) for column in zip(*part)] for part in (looks[:third], looks[-third:]))
    yield "no wrong answer", not soak.faults, "%d requests; %s" % (soak.requests, soak.faults[:3])
    wanted = TRANSACTIONS * min(options.minutes / 30, 1) * min(options.clients / 5000, 1)
    yield "transactions", soak.transactions >= wanted, "%d" % soak.transactions
    yield "memory is flat", last[0] <= first[0] * GROWTH + SPARE_KIB, "%d KiB, then %d KiB" % (first[0], last[0])
    yield "descriptors are flat", last[1] <= first[1] * GROWTH + 16, "%d, then %d" % (first[1], last[1])
    yield "upstream connections are flat", last[2] <= first[2] * GROWTH + 16, "%d, then %d" % (first[2], last[2])
    deadline = time.monotonic() + LIMIT
    while descriptors(proxy) > before + 8 and time.monotonic() < deadline:
        time.sleep(0.2)
    yield "descriptors are given back", descriptors(proxy) <= before + 8, "%d before, %d after" % (
        before, descriptors(proxy))
    yield "nothing is held", proxy.json("/api/v1/locks?rule=lock:*")["total"] <= 1, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=5000)
    parser.add_argument("--rate", type=float, default=1000, help="operations a second of all together, about")
    parser.add_argument("--mode", default="dedicated")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="lockward-soak-") as folder:
        try:
            with Server(options.server, folder) as server, \
                    Proxy(options.proxy, server, DEFAULT_RULES, folder, mode=options.mode) as proxy:
                for what, holds, figures in soaked(options, proxy):
                    passed, failed = passed + bool(holds), failed + (not holds)
                    print("%s  soak: %s: %s" % ("ok  " if holds else "FAIL", what, figures), flush=True)
        except (WireError, OSError, RuntimeError) as error:
            failed += 1
            print("FAIL  soak: %s" % (error or type(error).__name__))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
