#!/usr/bin/env python3
"""Limits on clients, and what many of them do at once: too many from one address, idle ones, no descriptor left, and two
thousand that come back after the server was restarted.

    tests/checks/storms.py --proxy PATH --server PATH [--clients N] [--mode MODE]
"""
import argparse
import asyncio
import os
import random
import resource
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]
from harness.checking import Check     # noqa: E402
from harness.processes import DEFAULT_RULES, Proxy, Server     # noqa: E402
from harness.resp import Error, WireError, encode, metric_sum      # noqa: E402

LIMIT = 30.0            # seconds until something must be so
IDLE = 1.0              # seconds after which an idle client is closed here
RATE = 500              # connections to the server a second after it was away
FILES = 64              # descriptors of the proxy that is to run out of them
FULL = "ERR max number of clients reached"


class Narrow(Proxy):
    """A lockward with few descriptors."""

    def command(self):
        return ["prlimit", "--nofile=%d:%d" % (FILES, FILES), "--"] + super().command()


class Set(Proxy):
    """A lockward with more settings in [listen]."""

    def __init__(self, program, server, folder, listen, **options):
        self.listen = listen
        super().__init__(program, server, DEFAULT_RULES, folder, **options)

    def start(self):
        with open(self.config) as file:
            text = file.read()
        if self.listen not in text:
            with open(self.config, "w") as file:
                file.write(text.replace("[listen]\n", "[listen]\n" + self.listen, 1))
        return super().start()


def descriptors(process):
    return len(os.listdir("/proc/%d/fd" % process.child.pid))


def one_address(check, options, server, folder):
    """Three clients of an address, and no more."""
    with Set(options.proxy, server, folder, "max_connections_per_address = 3\n", mode=options.mode) as proxy:
        # The harness has looked whether it listens.
        check.until("nobody is there", lambda: "lockward_downstream_connections 0" in proxy.metrics(), True)
        clients = [proxy.connect() for _ in range(3)]
        check("three are served", [client.ask("PING") for client in clients], ["PONG"] * 3)
        with proxy.connect() as fourth:
            check("the fourth is not", str(fourth.reply()), FULL)
        with proxy.connect(source="127.0.0.2") as other:
            check("another address is", other.ask("PING"), "PONG")
        clients.pop().close()

        def served():
            with proxy.connect() as again:
                try:
                    return str(again.ask("PING"))
                except WireError:
                    return "closed"
        check.until("a place is free again", served, "PONG")
        for client in clients:
            client.close()


def idle_clients(check, options, server, folder):
    """An idle client is closed; one that waits for something, or asks now and then, is not."""
    with Set(options.proxy, server, folder, 'idle_timeout = "%ds"\n' % IDLE, mode=options.mode) as proxy, \
            proxy.connect(limit=LIMIT) as idle, proxy.connect() as blocked, proxy.connect() as subscribed, \
            proxy.connect() as monitor, proxy.connect() as busy:
        check("a lock", idle.ask("SET", "lock:idle", "1", "NX", "EX", "60"), "OK")
        blocked.send(encode("BLPOP", "storms:none", "0"))
        subscribed.ask("SUBSCRIBE", "storms")
        check("MONITOR", monitor.ask("MONITOR"), "OK")
        end = time.monotonic() + LIMIT
        while not idle.is_closed(0.2) and time.monotonic() < end:
            busy.ask("PING")
        check("the idle one is closed", idle.is_closed(0.1), True)
        # As long again: whoever is still there has been idle by the clock.
        for _ in range(int(IDLE * 10)):
            busy.ask("PING")
            time.sleep(0.2)
        check("its lock stays", busy.ask("EXISTS", "lock:idle"), 1)
        check("a message", busy.ask("PUBLISH", "storms", "x"), 1)
        check("reaches the subscriber", subscribed.reply()[2], b"x")
        busy.ask("RPUSH", "storms:none", "x")
        check("the blocked one is answered", blocked.reply(), [b"storms:none", b"x"])
        check("the monitor sees it", any(b"RPUSH" in monitor.line() for _ in range(1000)), True)
        busy.ask("DEL", "lock:idle", "lockward:{lock:idle}")


def full_buffers(check, options, server, folder):
    """Clients that begin large commands on locks and do not end them: together they may have so much here, and no more."""
    with Set(options.proxy, server, folder, 'max_buffered = "16MB"\n', mode=options.mode) as proxy, proxy.connect() as other:
        def closed():
            return metric_sum(proxy.metrics(), 'lockward_connections_refused_total{reason="buffers"}')

        def gone():
            check.until("they are gone", lambda: metric_sum(proxy.metrics(), "lockward_downstream_connections"), 1.0)

        begun = b"*3\r\n$3\r\nSET\r\n$8\r\nlock:big\r\n$%d\r\n" % (4 << 20)
        clients = [proxy.connect(limit=LIMIT) for _ in range(5)]
        for client in clients[:3]:
            client.send(begun + b"x" * (4 << 20))
        check("what is below the limit stays", [client.is_closed(0.2) for client in clients[:3]], [False] * 3)
        check("and nobody was closed", closed(), 0.0)
        for client in clients[3:]:
            try:
                client.send(begun + b"x" * (4 << 20))
            except OSError:
                pass    # closed in the middle of it
        check.until("who makes it more is closed", closed, 2.0)
        check("another is served", other.ask("PING"), "PONG")
        clients[0].send(b"\r\n")
        check("and so are those who were there", clients[0].reply(), "OK")
        for client in clients:
            client.close()
        gone()
        # Whoever has little is not closed for one who has much.
        with proxy.connect(limit=LIMIT) as hog, proxy.connect(limit=LIMIT) as small:
            hog.send(begun.replace(b"%d" % (4 << 20), b"%d" % (20 << 20)) + b"x" * ((16 << 20) - 20_000))
            value = b"*3\r\n$3\r\nSET\r\n$8\r\nlock:sml\r\n$40000\r\n" + b"x" * 40_000 + b"\r\n"
            small.send(value[:30_000])
            check.until("who has most is closed", lambda: hog.is_closed(0.1), True)
            small.send(value[30_000:])
            check("who has little is served", small.reply(), "OK")
            check("and closed was one", closed(), 3.0)
            small.ask("DEL", "lock:sml", "lockward:{lock:sml}")
        # A command on many locks, whose answer cannot come: what it is to be read by counts too, and has a bound.
        with proxy.connect(limit=LIMIT) as blocked:
            blocked.send(encode("BLPOP", "storms:never", "3"))
            many = encode("DEL", *("lock:%04d" % n for n in range(3000)))
            before = proxy.rss_kib()
            blocked.sock.settimeout(1)
            try:
                for _ in range(600):
                    blocked.sock.sendall(many)
            except OSError:
                pass        # not read any more, or closed
            check("memory has a bound", proxy.rss_kib() - before < 64 * 1024, True)
        gone()
        # What they had is not counted any more.
        with proxy.connect(limit=LIMIT) as again:
            again.send(begun.replace(b"%d" % (4 << 20), b"%d" % (7 << 20)) + b"x" * (7 << 20) + b"\r\n")
            check("there is room again", again.reply(), "OK")
        other.ask("DEL", "lock:big", "lockward:{lock:big}")


def no_descriptors(check, options, server, folder):
    """More clients than descriptors: those that came first are served, the others wait; when there is room all is well."""
    with Narrow(options.proxy, server, DEFAULT_RULES, folder, mode=options.mode) as proxy:
        first = proxy.connect()
        check("the first", first.ask("PING"), "PONG")
        crowd = [proxy.connect() for _ in range(2 * FILES)]
        for client in crowd:
            client.send(encode("PING"))
        check.until("the proxy says why", lambda: "cannot take a client" in open(proxy.log).read(), True)
        time.sleep(2)
        lines = open(proxy.log).read().count("cannot take a client")
        check("at most a line a second (%d)" % lines, lines <= 5, True)
        check("the first is served still", first.ask("PING"), "PONG")
        for client in crowd:
            client.close()
        first.close()

        def served():
            with proxy.connect() as again:
                try:
                    return str(again.ask("PING"))
                except (WireError, OSError):
                    return "closed"
        check.until("there is room again", served, "PONG")


class Storm:
    """Clients that are connected, and come back when they are not: after half a second, more or less."""

    def __init__(self, port, count):
        self.port, self.count, self.served, self.over = port, count, set(), False

    async def client(self, number):
        chance = random.Random(number)
        while not self.over:
            writer = None
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                while not self.over:
                    writer.write(encode("PING"))
                    answer = await asyncio.wait_for(reader.readline(), LIMIT)
                    if answer != b"+PONG\r\n":
                        break
                    self.served.add(number)
                    await asyncio.wait_for(self.end_or_news(reader), LIMIT)
            except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError):
                pass
            finally:
                self.served.discard(number)
                if writer:
                    writer.close()
            await asyncio.sleep(chance.uniform(0.25, 0.75))

    async def end_or_news(self, reader):
        """Until the connection ends, or the storm does."""
        while not self.over and not reader.at_eof():
            try:
                await asyncio.wait_for(reader.read(1), 0.5)
            except asyncio.TimeoutError:
                pass

    async def until_served(self):
        end = time.monotonic() + LIMIT
        while len(self.served) < self.count and time.monotonic() < end:
            await asyncio.sleep(0.05)
        return len(self.served)


def received(server):
    """Connections that the server has taken since its start."""
    try:
        with server.connect() as connection:
            info = connection.ask("INFO", "stats")
            if isinstance(info, Error):
                return None
            line = next(line for line in info.decode().split("\r\n") if line.startswith("total_connections_received"))
            return int(line.split(":")[1])
    except (OSError, WireError):
        return None


async def restart(check, options, server, proxy):
    """The server is killed and comes back; how fast connections are opened to it, until all are served again."""
    storm = Storm(proxy.port, options.clients)
    tasks = [asyncio.ensure_future(storm.client(number)) for number in range(options.clients)]
    check("all are served", await storm.until_served(), options.clients)
    files = descriptors(proxy)
    server.kill()
    while storm.served:
        await asyncio.sleep(0.05)
    server.start()
    begun, seen = time.monotonic(), []
    while len(storm.served) < options.clients and time.monotonic() - begun < LIMIT:
        count = received(server)
        if count is not None:
            # Each look is a connection itself.
            seen.append((time.monotonic(), count - len(seen)))
        await asyncio.sleep(0.1)
    check("all are served again", len(storm.served), options.clients)
    rates = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(seen, seen[5:])]
    fastest = max(rates, default=0)
    if options.mode == "dedicated":
        check("at most %d connections a second, and some (%.0f)" % (RATE, fastest), 0.2 * RATE < fastest < 1.3 * RATE, True)
    else:
        check("few connections (%d)" % seen[-1][1], seen[-1][1] < RATE, True)
    check("no more descriptors (%d, %d)" % (files, descriptors(proxy)), descriptors(proxy) <= files + 8, True)
    storm.over = True
    await asyncio.gather(*tasks)


def server_restarts(check, options, server, folder):
    rules = DEFAULT_RULES + '\n[upstream]\nurl = "redis://$REDIS"\nreconnect_rate = %d\n' % RATE
    with Proxy(options.proxy, server, rules, folder, mode=options.mode) as proxy:
        asyncio.run(restart(check, options, server, proxy))
        check.until("the clients have left", lambda: "lockward_downstream_connections 0" in proxy.metrics(), True)
        check.until("and their connections", lambda: descriptors(proxy) < 100, True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--clients", type=int, default=2000)
    parser.add_argument("--mode", default="dedicated")
    options = parser.parse_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    check = Check("storms", LIMIT)
    with tempfile.TemporaryDirectory(prefix="lockward-storms-") as folder:
        try:
            with Server(options.server, folder) as server:
                for part in (one_address, idle_clients, full_buffers, no_descriptors, server_restarts):
                    part(check, options, server, folder)
        except (WireError, OSError, RuntimeError) as error:
            check("no accident", error or type(error).__name__, None)
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
