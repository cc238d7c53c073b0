#!/usr/bin/env python3
"""Change without pain: forty clients at work while lockward is drained, upgraded and paused lose no request and no lock.

    tests/checks/upgrade.py --proxy PATH --server PATH [--mode MODE] [--clients N]
"""
import argparse
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]
from harness import marks                       # noqa: E402
from harness.checking import Check              # noqa: E402
from harness.processes import Proxy, Server     # noqa: E402
from harness.resp import WireError              # noqa: E402

LIMIT = 20.0            # seconds until something must be so
THINK = 0.004           # seconds between two requests of a client
RULES = '''[[locks]]
name = "renewed"
pattern = "lock:renewed:*"
owner = "client-name"
renew = true

[[locks]]
name = "left"
pattern = "lock:left:*"
owner = "client-name"
release_on_disconnect = true
disconnect_grace = "200ms"

[[locks]]
name = "locks"
pattern = "lock:*"
owner = "client-name"
'''


class Upgraded(Proxy):
    """A lockward whose place other processes take."""

    def __init__(self, program, server, rules, folder, **options):
        self.server = server
        super().__init__(program, server, rules, folder, **options)

    def pid(self):
        """The number of the process that answers."""
        return self.json("/api/v1/process")["pid"]

    def write(self, old, new):
        """The file with one text in place of another."""
        with open(self.config) as file:
            text = file.read()
        with open(self.config, "w") as file:
            file.write(text.replace(old, new, 1))

    def cli(self, *words):
        """Exit code and output of a command that asks this lockward."""
        environment = dict(os.environ, LOCKWARD_ADMIN__TOKEN=marks.ADMIN_TOKEN)
        done = subprocess.run([self.program, *words, "--admin", "127.0.0.1:%d" % self.admin_port], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        return done.returncode, done.stdout

    def listens(self):
        try:
            self.connect(limit=1).close()
            return True
        except OSError:
            return False

    def stop(self):
        """SIGTERM for the process that serves, whichever it is."""
        try:
            os.kill(self.pid(), signal.SIGTERM)
        except (OSError, ValueError):
            pass
        deadline = time.monotonic() + 10
        while self.listens() and time.monotonic() < deadline:
            time.sleep(0.02)
        super().stop()

    def kill(self):
        if getattr(self, "child", None) is not None:
            try:
                os.kill(self.pid(), signal.SIGKILL)
            except (OSError, ValueError):
                pass
        super().kill()


class Caller(threading.Thread):
    """A client at work: counts, and takes and gives up locks, one request after the other. Before each it looks whether
    its connection has ended, as pools do, and connects anew then. Keeps what went wrong."""

    def __init__(self, proxy, number):
        super().__init__(daemon=True)
        self.proxy, self.number, self.over = proxy, number, threading.Event()
        self.connection, self.count, self.answered, self.ends, self.unanswered, self.faults = None, 0, 0, 0, 0, []

    def ready(self):
        """A connection that has not ended, as far as can be seen."""
        while self.connection is not None:
            if not select.select([self.connection.sock], [], [], 0)[0]:
                return self.connection
            # Nothing was asked, so it can only have ended.
            try:
                rest = self.connection.sock.recv(1 << 16)
            except OSError as error:
                rest = error
            if rest != b"":
                self.faults.append(("at the end of a connection", rest))
            self.connection.close()
            self.connection = None
            self.ends += 1
        while not self.over.is_set():
            try:
                self.connection = self.proxy.connect()
            except OSError:
                # Nobody listens: no request is lost by that.
                time.sleep(0.01)
                continue
            if self.ask("CLIENT", "SETNAME", "caller-%d" % self.number, old=True) == "OK":
                return self.connection
        return None

    def ask(self, *words, old=False):
        """The answer; None if there was none, which is noted."""
        connection = self.connection if old else self.ready()
        if connection is None:
            return None
        try:
            answer = connection.ask(*words)
            self.answered += 1
            return answer
        except (WireError, OSError) as error:
            self.unanswered += 1
            self.faults.append((words, "no answer", str(error) or type(error).__name__))
            connection.close()
            self.connection = None
            return None

    def wants(self, answer, *words):
        got = self.ask(*words)
        if got is not None and got != answer:
            self.faults.append((words, got))

    def run(self):
        lock = "lock:caller:%d" % self.number
        while not self.over.is_set():
            self.wants("OK", "SET", lock, "1", "NX", "PX", "30000")
            value = self.ask("INCR", "count:%d" % self.number)
            if value is not None:
                if value != self.count + 1:
                    self.faults.append(("INCR", self.count, value))
                self.count = value
            self.wants(1, "DEL", lock)
            time.sleep(THINK)
        if self.connection is not None:
            self.connection.close()


class Crowd:
    """Many of them."""

    def __init__(self, check, proxy, size):
        self.check, self.proxy = check, proxy
        self.callers = [Caller(proxy, number) for number in range(size)]
        for caller in self.callers:
            caller.start()
        self.works("at first")

    def works(self, when):
        """Each of them is answered again."""
        before = [caller.answered for caller in self.callers]
        self.check.until("all work, " + when, lambda: all(
            caller.answered > count + 6 for caller, count in zip(self.callers, before)), True)

    def answered(self):
        return sum(caller.answered for caller in self.callers)

    def ends(self):
        return sum(caller.ends for caller in self.callers)

    def lost(self, what):
        """Nothing went wrong until now."""
        self.check(what + ": unanswered", sum(caller.unanswered for caller in self.callers), 0)
        self.check(what + ": faults", [fault for caller in self.callers for fault in caller.faults][:5], [])

    def stop(self):
        for caller in self.callers:
            caller.over.set()
        for caller in self.callers:
            caller.join(LIMIT)


def named(proxy, name):
    client = proxy.connect()
    client.ask("CLIENT", "SETNAME", name)
    return client


def drained(check, proxy, server, crowd):
    """SIGTERM, and another lockward at the address."""
    blocked, listener = proxy.connect(), proxy.connect()
    blocked.send(b"BLPOP queue 0\r\n")
    listener.ask("SUBSCRIBE", "news")
    with named(proxy, "holder") as holder:
        check("a lock that is held meanwhile", holder.ask("SET", "lock:drained", "1", "NX", "PX", "60000"), "OK")
    ends, begun = crowd.ends(), time.monotonic()
    os.kill(proxy.pid(), signal.SIGTERM)
    check("the subscriber is closed", listener.is_closed(LIMIT), True)
    check("the blocked client is closed", blocked.is_closed(LIMIT), True)
    proxy.child.wait(LIMIT)
    check("it was out in time", time.monotonic() - begun < 4.5, True)
    check("with a good end", proxy.child.returncode, 0)
    proxy.start()
    crowd.works("after a drain")
    check("all have moved", crowd.ends() - ends >= len(crowd.callers), True)
    with server.connect() as direct:
        direct.ask("RPUSH", "queue", "element")
        check("no element was swallowed", direct.ask("LLEN", "queue"), 1)
    with named(proxy, "holder") as holder, named(proxy, "other") as other:
        check("another's DEL", other.ask("DEL", "lock:drained"), 0)
        check("the holder's DEL", holder.ask("DEL", "lock:drained"), 1)
    crowd.lost("drained")


def upgraded(check, proxy, crowd):
    """Three processes, one after the other."""
    with named(proxy, "holder") as holder:
        check("a lock", holder.ask("SET", "lock:held", "1", "NX", "PX", "60000"), "OK")
        check("a lock that is renewed", holder.ask("SET", "lock:renewed:1", "1", "NX", "PX", "1500"), "OK")
    first = proxy.pid()
    for turn in range(3):
        before, ends = proxy.pid(), crowd.ends()
        # The holder is there, and moves with the others.
        holder = named(proxy, "holder")
        code, said = proxy.cli("upgrade")
        check("upgrade %d" % turn, (code, "upgraded: " in said), (0, True))
        now = proxy.pid()
        check("another process answers", now != before and str(now) in said and str(before) in said, True)
        check("the holder is sent away", holder.is_closed(LIMIT), True)
        holder = named(proxy, "holder")
        check.until("the lease is known there", lambda: "lock:held" in [
            lock["key"] for lock in proxy.json("/api/v1/locks")["locks"]], True)
        check.until("all have moved", lambda: crowd.ends() - ends >= len(crowd.callers), True)
        crowd.works("after upgrade %d" % turn)
        holder.close()
    check.until("the first has ended", lambda: proxy.child.poll(), 0)
    check("it was the first", proxy.child.pid, first)
    held = next(lock for lock in proxy.json("/api/v1/locks")["locks"] if lock["key"] == "lock:held")
    check("its age is right", held["held_ms"] > 500, True)
    with named(proxy, "holder") as holder, named(proxy, "other") as other:
        time.sleep(2.0)
        check("the renewed lock is held beyond its TTL", other.ask("EXISTS", "lock:renewed:1"), 1)
        for key in ("lock:held", "lock:renewed:1"):
            check("another's DEL of " + key, other.ask("DEL", key), 0)
            check("the holder's DEL of " + key, holder.ask("DEL", key), 1)
    crowd.lost("upgraded")


def thrown_away(check, proxy):
    """In a drain some connections of an owner are closed, and it throws the others away itself; it lives on in the new
    process, and so does its lock."""
    idle, last, other = named(proxy, "pool"), named(proxy, "pool"), named(proxy, "other")
    check("a lock", idle.ask("SET", "lock:left:1", "1", "NX", "PX", "60000"), "OK")
    for client in (last, other):
        # Who has begun a transaction is waited for.
        check("MULTI", client.ask("MULTI"), "OK")
    code, said = proxy.cli("upgrade")
    check("upgrade", (code, "upgraded: " in said), (0, True))
    check("one is sent away", idle.is_closed(LIMIT), True)
    idle.close()
    with named(proxy, "pool") as owner:
        check("it is at work in the new process", owner.ask("SET", "lock:left:2", "1", "NX", "PX", "60000"), "OK")
        last.close()
        # Longer than the grace, and the old process is still there.
        time.sleep(0.6)
        check("the old one drains yet", other.ask("EXEC"), [])
        check("the lock of before is held", owner.ask("EXISTS", "lock:left:1"), 1)
        for key in ("lock:left:1", "lock:left:2"):
            check("the DEL of " + key, owner.ask("DEL", key), 1)


def failing(check, proxy, crowd):
    """A program that does not come to serve: nothing changes, and it is said why."""
    before, ends = proxy.pid(), crowd.ends()
    proxy.write("[[locks]]", '[log]\nlevel = "loud"\n\n[[locks]]')
    code, said = proxy.cli("upgrade")
    check("a faulty file", (code, "log.level" in said, proxy.config in said), (1, True, True))
    status, body = proxy.post("/-/upgrade")
    check("by HTTP", (status, "log.level" in body["error"]), (409, True))
    proxy.write('[log]\nlevel = "loud"\n\n', "")
    url = 'url = "redis://127.0.0.1:%d"'
    proxy.write(url % proxy.server.port, url % 1)
    code, said = proxy.cli("upgrade")
    check("another server", (code, "held twice" in said, "127.0.0.1:1 " in said), (1, True, True))
    proxy.write(url % 1, url % proxy.server.port)
    proxy.write("[[locks]]", '[records]\nprefix = "other:"\n\n[[locks]]')
    code, said = proxy.cli("upgrade")
    check("records of another name", (code, "held twice" in said), (1, True))
    proxy.write('[records]\nprefix = "other:"\n\n', "")
    check("a wrong token", proxy.post("/-/upgrade", token="wrong")[0], 401)
    check("the same process answers", proxy.pid(), before)
    check("the log says it", proxy.said("not upgraded, and nothing has changed"), True)
    check("and who asked", proxy.said("an operator asked for an upgrade"), True)
    crowd.works("after upgrades that failed")
    check("nobody was sent away", crowd.ends(), ends)
    crowd.lost("failing")
    os.kill(before, signal.SIGUSR2)
    check.until("SIGUSR2 does it", lambda: proxy.pid() != before, True)
    crowd.works("after SIGUSR2")
    crowd.lost("SIGUSR2")


def without_server(check, options, folder):
    """The server is silent, and the new process does not wait for it longer than it may take."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        nobody = argparse.Namespace(unix=None, port=silent.getsockname()[1])
        with Upgraded(options.proxy, nobody, RULES, folder, mode=options.mode) as proxy:
            before = proxy.pid()
            proxy.write("[upstream]\n", '[upstream]\nconnect_timeout = "20s"\n')
            check("upgrade without a server", proxy.cli("upgrade")[0], 0)
            check("another process serves", proxy.pid() != before, True)


def under_way(check, proxy):
    """Who has begun a transaction may end it, and is waited for; who comes has to wait; it ends by itself."""
    with proxy.connect() as inside, proxy.connect() as late:
        check("MULTI", inside.ask("MULTI"), "OK")
        check("INCR", inside.ask("INCR", "inside"), "QUEUED")
        code, said = proxy.cli("pause", "--for", "60s", "--wait", "100ms")
        check("it is not safe yet", (code, " 1 under way" in said and "not safe yet" in said), (1, True))
        late.send(b"PING\r\n")
        check("EXEC", inside.ask("EXEC"), [1])
        check.until("nothing is under way", lambda: proxy.json("/api/v1/pause")["under_way"], 0)
        check("who came is not answered", select.select([late.sock], [], [], 0.2)[0], [])
        check("longer than may be", proxy.post("/-/pause?for=6m")[0], 400)
        check("no upgrade meanwhile", proxy.post("/-/upgrade")[0], 409)
        check("a wrong token", proxy.post("/-/resume", token="wrong")[0], 401)
        check("a shorter one", proxy.post("/-/pause?for=100ms")[0], 200)
        check("it ends by itself", late.reply(), "PONG")
        check("and says so", proxy.json("/api/v1/pause")["left_ms"], None)


def paused(check, proxy, server, crowd):
    """The server is restarted while all wait."""
    blocked, listener = proxy.connect(), proxy.connect()
    blocked.send(b"BLPOP queue:2 0\r\n")
    listener.ask("SUBSCRIBE", "news")
    holder, other = named(proxy, "holder"), named(proxy, "other")
    check("a lock", holder.ask("SET", "lock:paused", "1", "NX", "PX", "60000"), "OK")
    ends = crowd.ends()
    code, said = proxy.cli("pause")
    check("it is safe", (code, "paused for 30 s: 0 under way, 1 blocked" in said), (0, True))

    def all_wait():
        """What was answered is read before long; then nothing comes."""
        before = crowd.answered()
        time.sleep(0.2)
        return crowd.answered() == before

    check.until("nobody is answered", all_wait, True)
    answered = crowd.answered()
    try:
        proxy.get("/readyz")
        check("ready", "it says so", "paused")
    except urllib.error.HTTPError as error:
        check("not ready", (error.code, "paused" in error.read().decode()), (503, True))
    check("the metric", "lockward_paused 1\n" in proxy.metrics(), True)
    check("the state", proxy.json("/api/v1/process")["state"], "paused")
    check("who blocks stays", select.select([blocked.sock, listener.sock], [], [], 0.2)[0], [])
    check("nobody was answered meanwhile", crowd.answered(), answered)
    with server.connect() as direct:
        direct.ask("SAVE")
    server.kill()
    check("who blocked on that server is closed", blocked.is_closed(LIMIT), True)
    check("who listened to it is, too", listener.is_closed(LIMIT), True)
    server.start()
    check("resumed", proxy.cli("resume"), (0, "resumed\n"))
    crowd.works("after the server was restarted")
    check("nobody was sent away", crowd.ends(), ends)
    check("another's DEL", other.ask("DEL", "lock:paused"), 0)
    check("the holder's DEL", holder.ask("DEL", "lock:paused"), 1)
    holder.close()
    other.close()
    check("the metric again", "lockward_paused 0\n" in proxy.metrics(), True)
    check("who asked stands in the log", proxy.said("an operator asked to hold clients back"), True)
    crowd.lost("paused")


def carried(check, options, server, folder):
    """More clients than may come back at once: all wait for their turn. Whoever goes meanwhile is let go."""
    upstream = '\n[upstream]\nurl = "redis://127.0.0.1:%d"\nreconnect_rate = 20\n' % server.port
    with Upgraded(options.proxy, server, RULES + upstream, folder, mode=options.mode) as proxy:
        clients = [proxy.connect(limit=LIMIT) for _ in range(50)]
        check("carried: all are served", {client.ask("PING") for client in clients}, {"PONG"})
        with server.connect() as direct:
            direct.ask("SAVE")
        # In shared mode these have connections of their own for a while.
        for client in clients[:10]:
            client.ask("MULTI")
            client.ask("EXEC")
        idle, half = clients[-2:]
        check("carried: paused", proxy.post("/-/pause?for=60s")[0], 200)
        for client in clients[:-2] + [half]:
            client.send(b"PING\r\n")
        server.kill()
        check.until("carried: the server is away", lambda: "lockward_upstream_up 0\n" in proxy.metrics(), True)
        half.half_close()
        idle.half_close()
        check("carried: who asked for nothing and goes is let go", idle.is_closed(LIMIT), True)
        with proxy.connect() as newcomer:
            newcomer.half_close()
            check("carried: and so is who has just come", newcomer.is_closed(LIMIT), True)
        server.start()
        check.until("carried: the server is back", lambda: "lockward_upstream_up 1\n" in proxy.metrics(), True)
        check("carried: resumed", proxy.post("/-/resume")[0], 200)
        answers = []
        for client in clients[:-2] + [half]:
            try:
                answers.append(client.reply())
            except (WireError, OSError) as error:
                answers.append(str(error))
        check("carried: all are answered", (len(answers), set(answers)), (49, {"PONG"}))
        for client in clients:
            client.close()


def another_program(check, options, server, folder):
    """Behind a unix socket, which stays; and a file in the place of the program that is no lockward."""
    program, path = os.path.join(folder, "program"), os.path.join(folder, "clients.sock")
    shutil.copy2(options.proxy, program)

    def put(text):
        """Another file in its place, as packages do it: the old one is still being run."""
        with open(program + ".new", "w") as file:
            file.write(text)
        os.chmod(program + ".new", 0o755)
        os.rename(program + ".new", program)

    with Upgraded(program, server, RULES, folder, unix=path, mode=options.mode) as proxy:
        proxy.program = options.proxy       # what the command line is asked with
        for turn in range(2):
            before = proxy.pid()
            with proxy.connect() as client:
                check("served over %d" % turn, client.ask("PING"), "PONG")
                code, said = proxy.cli("upgrade")
                check("upgrade over a unix socket %d" % turn, (code, said.count("\n")), (0, 1))
                check("another process", proxy.pid() != before, True)
                check("the client is sent away", client.is_closed(LIMIT), True)
        check.until("the first has ended", lambda: proxy.child.poll(), 0)
        with proxy.connect() as client:
            check("the socket is there", client.ask("PING"), "PONG")
            put("#!/bin/sh\nexit 3\n")
            code, said = proxy.cli("upgrade")
            check("a program that ends", (code, "ended before it served (exit status: 3)" in said), (1, True))
            number = os.path.join(folder, "hangs")
            put("#!/bin/sh\necho $$ > %s.new\nmv %s.new %s\nexec sleep 60\n" % (number, number, number))
            os.kill(proxy.pid(), signal.SIGUSR2)
            check.until("a program that hangs", lambda: os.path.exists(number), True)
            # Until it is given up nobody may hold clients back, for the new one would not.
            check("no pause meanwhile", proxy.post("/-/pause?for=100ms"), (
                409, {"error": "an upgrade is under way already"}))
            check("it does not hold the old one up", client.ask("PING"), "PONG")
            os.remove(program)
            with open(number) as file:
                os.kill(int(file.read()), signal.SIGKILL)
            check.until("a pause again", lambda: proxy.post("/-/pause?for=100ms")[0], 200)
            check.until("it ends by itself", lambda: proxy.json("/api/v1/pause")["left_ms"], None)
            code, said = proxy.cli("upgrade")
            check("no program", (code, "cannot be started" in said), (1, True))
            check("the same connection", client.ask("PING"), "PONG")
        proxy.stop()
        check.until("the last takes the socket with it", lambda: os.path.exists(path), False)


def renamed(check, options, server, folder):
    """A unix socket that stays, under another name of its listener, and with other rights."""
    path = os.path.join(folder, "renamed.sock")
    with Upgraded(options.proxy, server, RULES, folder, unix=path, mode=options.mode) as proxy:
        listener = '[[listeners]]\nname = "local"\nunix = "%s"\n' % path
        proxy.write('[listen]\nunix = "%s"\n' % path, '[listen]\naddress = "127.0.0.1:%d"\n\n%s' % (proxy.port, listener))
        check("upgrade to another name", proxy.cli("upgrade")[0], 0)
        check.until("the old one has ended", lambda: proxy.child.poll(), 0)
        check("its socket is there", os.path.exists(path), True)
        with proxy.connect() as client:
            check("it is served", client.ask("PING"), "PONG")
        at = 'unix = "%s"\n' % path
        for rights in ('unix_mode = "0600"\n', ""):
            proxy.write(at, at + rights)
            check("upgrade with %r" % rights, proxy.cli("upgrade")[0], 0)
            check("its rights", stat.S_IMODE(os.stat(path).st_mode), 0o600)
            proxy.write(at + rights, at)
        proxy.write(at, at + 'unix_group = "nobody-has-this"\n')
        code, said = proxy.cli("upgrade")
        check("a group that is not there", (code, "no group" in said), (1, True))
        proxy.write('unix_group = "nobody-has-this"\n', "")
        proxy.stop()
        check.until("the new one takes it with it", lambda: os.path.exists(path), False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--mode", default="dedicated")
    parser.add_argument("--clients", type=int, default=40)
    options = parser.parse_args()
    check = Check("upgrade", LIMIT)
    with tempfile.TemporaryDirectory(prefix="lockward-upgrade-") as folder:
        try:
            with Server(options.server, folder) as server, \
                    Upgraded(options.proxy, server, RULES, folder, mode=options.mode) as proxy:
                crowd = Crowd(check, proxy, options.clients)
                drained(check, proxy, server, crowd)
                upgraded(check, proxy, crowd)
                thrown_away(check, proxy)
                failing(check, proxy, crowd)
                under_way(check, proxy)
                paused(check, proxy, server, crowd)
                crowd.stop()
                crowd.lost("in all")
                with server.connect() as direct:
                    counts = [int(direct.ask("GET", "count:%d" % caller.number)) for caller in crowd.callers]
                check("every answer happened once", counts, [caller.count for caller in crowd.callers])
                carried(check, options, server, folder)
                another_program(check, options, server, folder)
                renamed(check, options, server, folder)
                without_server(check, options, folder)
                print("%d requests answered, %d connections ended" % (
                    crowd.answered(), crowd.ends()))
        except (WireError, OSError, RuntimeError) as error:
            check("no accident", error or type(error).__name__, None)
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
