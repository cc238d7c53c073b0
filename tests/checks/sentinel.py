#!/usr/bin/env python3
"""Real sentinels, a master, two replicas, and thirty clients at work: after a failover that was asked for, and after one
because the master was killed, every client is on the new master within two seconds, and nobody hears the old one any more.
Sentinels that are away, lie behind, lie, know no such master, ask for a password, or talk nonsense.

    tests/checks/sentinel.py --proxy PATH --server PATH [--mode MODE]
"""
import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]
from harness import marks      # noqa: E402
from harness.checking import Check     # noqa: E402
from harness.processes import Process, Proxy, Server, free_port     # noqa: E402
from harness.resp import Error, WireError, metric_sum      # noqa: E402
from harness.sentinels import Fake, bulks, naming      # noqa: E402

NEWEST = 2 ** 64 - 1     # the highest epoch that can be said
NAME, PASSWORD = "locks", marks.UPSTREAM_PASSWORD
CLIENTS = 30
ON_THE_NEW_ONE, OFF_THE_OLD_ONE = 2.0, 1.0      # seconds after the switch was announced
RULES = '[[locks]]\npattern = "lock:*"\nowner = "client-name"\n'


class Sentinel(Process):
    """A sentinel of three, with a password; it remembers in its file what it knows."""

    name = "sentinel"

    def __init__(self, program, folder, master):
        super().__init__(folder)
        self.program, self.port = program, free_port()
        self.file = os.path.join(folder, "sentinel-%d.conf" % self.port)
        with open(self.file, "w") as file:
            file.write("\n".join([
                "port %d" % self.port, "bind 127.0.0.1", "dir %s" % folder, "requirepass %s" % PASSWORD,
                "sentinel monitor %s 127.0.0.1 %d 2" % (NAME, master.port), "sentinel sentinel-pass %s" % PASSWORD,
                "sentinel down-after-milliseconds %s 700" % NAME, "sentinel failover-timeout %s 3000" % NAME, ""]))
        self.start()

    def command(self):
        return [self.program, self.file, "--sentinel"]

    def address(self):
        return self.port

    def enter(self, **options):
        connection = self.connect(**options)
        connection.ask("AUTH", PASSWORD)
        return connection

    def knows(self):
        """What it says of the master, by name."""
        with self.enter() as connection:
            facts = [part.decode() for part in connection.ask("SENTINEL", "MASTER", NAME)]
        return dict(zip(facts[::2], facts[1::2]))


class Site:
    """The servers and their sentinels."""

    def __init__(self, program, folder, stack):
        def server(*arguments):
            wanted = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1", *arguments]
            return stack.enter_context(Server(program, folder, arguments=wanted))
        master = server()
        self.servers = [master] + [server("--replicaof", "127.0.0.1", str(master.port)) for _ in range(2)]
        self.sentinels = [stack.enter_context(Sentinel(program, folder, master)) for _ in range(3)]

    def settled(self):
        """Whether all sentinels know each other, two good replicas, and one and the same master; its port then."""
        facts = [sentinel.knows() for sentinel in self.sentinels]
        good = all(fact["num-other-sentinels"] == "2" and fact["flags"] == "master" for fact in facts)
        ports = {fact["port"] for fact in facts}
        if not good or len(ports) != 1:
            return None
        port = int(ports.pop())
        with self.at(port).connect() as master:
            replicas = master.ask("INFO", "replication").decode().count("state=online")
        wanted = sum(server.is_running() for server in self.servers) - 1
        return port if replicas == wanted and int(facts[0]["num-slaves"]) >= wanted else None

    def epoch(self):
        """The number of the last failover that any of them knows."""
        return max(int(sentinel.knows()["config-epoch"]) for sentinel in self.sentinels)

    def at(self, port):
        return next(server for server in self.servers if server.port == port)

    def url(self, *more):
        return "redis-sentinel://%s/%s" % (",".join(
            ["127.0.0.1:%d" % port for port in more] + ["127.0.0.1:%d" % s.port for s in self.sentinels]), NAME)


class Told:
    """When a sentinel announced a switch first, and by the port of the new master. Several can lead a failover at once, each
    to another replica: then one switch comes right behind the other."""

    def __init__(self, site):
        self.at, self.to, self.links = None, {}, []
        for sentinel in site.sentinels:
            link = sentinel.enter(limit=60)
            link.ask("SUBSCRIBE", "+switch-master")
            self.links.append(link)
            threading.Thread(target=self.hear, args=(link,), daemon=True).start()

    def hear(self, link):
        with contextlib.suppress(OSError, WireError):
            while True:
                port = int(link.reply()[2].split()[-1])
                self.to.setdefault(port, time.monotonic())
                self.at = self.at or self.to[port]

    def close(self):
        for link in self.links:
            link.close()


class Crowd:
    """Clients at work: each asks the server for its port and writes a key, and comes back when it is closed."""

    def __init__(self, proxy):
        self.proxy, self.over, self.heard = proxy, False, [[] for _ in range(CLIENTS)]
        self.threads = [threading.Thread(target=self.work, args=(number,)) for number in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def work(self, number):
        while not self.over:
            try:
                with self.proxy.connect() as client:
                    while not self.over:
                        answer = client.ask("CONFIG", "GET", "port")
                        if not isinstance(answer, Error):
                            self.heard[number].append((time.monotonic(), int(answer[1])))
                        client.ask("SET", "plain:%d" % number, "x")
                        time.sleep(0.02)
            except (OSError, WireError):
                time.sleep(0.02)

    def last(self):
        return [heard[-1][1] if heard else None for heard in self.heard]

    def first_at(self, port, since):
        """When each client heard the server at this port first."""
        return [next((at for at, other in heard if other == port and at >= since), None) for heard in self.heard]

    def last_at(self, port):
        return max((at for heard in self.heard for at, other in heard if other == port), default=0)

    def end(self):
        self.over = True
        for thread in self.threads:
            thread.join()


def upstream(url, password=PASSWORD):
    login = 'sentinel_password = "%s"\n' % password if password else ""
    return RULES + '\n[upstream]\nurl = "%s"\n%s' % (url, login)


def named(proxy, name):
    client = proxy.connect()
    client.ask("CLIENT", "SETNAME", name)
    return client


def switches(proxy):
    return metric_sum(proxy.metrics(), "lockward_upstream_switches_total")


def switched(check, what, crowd, told, old, site):
    """All clients are on another master in time, and off the old one. Returns the port of the new one."""
    check.until(what + ": it is announced", lambda: told.at is not None, True)
    check.until(what + ": all clients are elsewhere", lambda: old not in crowd.last(), True)
    # Whoever is still served by the old one would show.
    time.sleep(max(0.0, told.at + ON_THE_NEW_ONE + 0.2 - time.monotonic()))
    check.until(what + ": the sentinels agree", lambda: site.settled() is not None, True)
    new = site.settled()
    check.until(what + ": all clients are there", lambda: set(crowd.last()), {new})
    check(what + ": and it was announced", new in told.to, True)
    slowest = max((at or float("inf")) for at in crowd.first_at(new, told.at - 5)) - told.to.get(new, told.at)
    last = crowd.last_at(old) - told.at
    print("%s: the last client was on the new master %.2f s after the announcement, the old one was heard last %.2f s"
          " after it" % (what, slowest, last), flush=True)
    check(what + ": within two seconds (%.2f)" % slowest, slowest <= ON_THE_NEW_ONE, True)
    check(what + ": the old one is not heard any more (%.2f)" % last, last <= OFF_THE_OLD_ONE, True)
    told.close()
    return new


class Held:
    """Clients of another lockward, which is paused: one has asked for nothing, the other one waits for an answer."""

    def __init__(self, check, options, site, folder):
        self.check, self.options = check, options
        self.proxy = Proxy(options.proxy, site.servers[0], upstream(site.url()), folder, mode=options.mode)
        check.until("held: ready", self.proxy.readiness, "ok")
        self.clients = [self.proxy.connect(limit=30) for _ in range(2)]
        check("held: served", [client.ask("PING") for client in self.clients], ["PONG", "PONG"])
        check("held: paused", self.ask("pause", "--for", "2m"), 0)
        self.clients[1].send(b"CONFIG GET port\r\n")

    def ask(self, *words):
        environment = dict(os.environ, LOCKWARD_ADMIN__TOKEN=marks.ADMIN_TOKEN)
        return subprocess.run([self.options.proxy, *words, "--admin", "127.0.0.1:%d" % self.proxy.admin_port],
                              env=environment, stdout=subprocess.DEVNULL, timeout=30).returncode

    def goes_on(self, port):
        """Both are on the new master, and have not noticed."""
        self.check.until("held: it has seen the switch", lambda: self.proxy.said("the master has switched"), True)
        self.check("held: resumed", self.ask("resume"), 0)
        for what, answer in (("waits", self.clients[1].reply), ("idles", lambda: self.clients[0].ask(*"CONFIG GET port".split()))):
            try:
                got = answer()
            except (WireError, OSError) as error:
                got = error
            self.check("held: who %s is on the new master" % what, got, [b"port", b"%d" % port])
        self.proxy.stop()


def asked_for(check, site, proxy, crowd, old):
    """A planned failover: locks that were replicated stay, and so do their owners."""
    with named(proxy, "holder") as holder, proxy.connect(limit=30) as blocked, site.at(old).connect() as direct:
        check("a lock", holder.ask("SET", "lock:kept", "1", "NX", "EX", "300"), "OK")
        blocked.send(b"BLPOP sentinel:none 0\r\n")
        direct.ask("SET", "plain:wait", "x")
        check("the replicas have it", direct.ask("WAIT", "2", "5000"), 2)
        told, before = Told(site), site.epoch()
        with site.sentinels[0].enter() as sentinel:
            check("a failover begins", sentinel.ask("SENTINEL", "FAILOVER", NAME), "OK")
        new = switched(check, "planned", crowd, told, old, site)
        check("the blocked one was closed", blocked.is_closed(1), True)
    with named(proxy, "other") as other, named(proxy, "holder") as holder:
        check("the lock is held still", other.ask("SET", "lock:kept", "2", "NX", "EX", "300"), None)
        check("nobody else releases it", other.ask("DEL", "lock:kept"), 0)
        check("its holder does", holder.ask("DEL", "lock:kept"), 1)
    # There, and never back and there again: no switch more than the sentinels made, which is one as a rule.
    made = max(site.epoch() - before, len(told.to))
    check("the metric (%d of %d)" % (switches(proxy), made), 1 <= switches(proxy) <= made, True)
    check("the log", proxy.said("the master has switched") and proxy.said("127.0.0.1:%d" % new), True)
    check.until("ready", proxy.readiness, "ok")
    return new


def killed(check, site, proxy, crowd, old):
    """The master dies. The sentinel that lies behind still names the first one, which is a replica now."""
    told = Told(site)
    site.at(old).kill()
    check.until("not ready", lambda: proxy.readiness() != "ok", True)
    new = switched(check, "killed", crowd, told, old, site)
    check("the metric again", switches(proxy) >= 2, True)
    check.until("ready again", proxy.readiness, "ok")
    check.until("up", lambda: proxy.has("lockward_upstream_up 1"), True)
    with named(proxy, "last") as client:
        check("locks are taken", client.ask("SET", "lock:new", "1", "NX", "EX", "300"), "OK")
        check("and released", client.ask("DEL", "lock:new"), 1)
    return new


def away(check, options, site, folder, serving, crowd):
    """No sentinel is there: who serves goes on; who begins waits for them."""
    for sentinel in site.sentinels:
        sentinel.kill()
    with Proxy(options.proxy, site.servers[0], upstream(site.url()), folder, mode=options.mode) as proxy:
        check.until("not ready", lambda: "no sentinel names the master" in proxy.readiness(), True)
        check("the metric", proxy.has('lockward_upstream_condition{condition="no_master"} 1'), True)
        check("none answers", proxy.has('lockward_sentinels{state="silent"} 3'), True)
        with proxy.connect() as client:
            answer = client.ask("PING")
            check("clients are told", str(answer).startswith("UPSTREAM cannot reach the server at master locks"), True)
        check("the other one serves", (serving.readiness(), None in crowd.last()), ("ok", False))
        for sentinel in site.sentinels:
            sentinel.start()
        check.until("ready when they are back", proxy.readiness, "ok")
        check("the metric again", proxy.has('lockward_upstream_condition{condition="no_master"} 0'), True)


def looked_at(options, folder, text):
    """What `lockward check --connect` finds with this configuration: its code, and its findings in one text."""
    file = os.path.join(folder, "looked-at.toml")
    with open(file, "w") as config:
        config.write(text)
    done = subprocess.run([options.proxy, "check", "--config", file, "--connect", "--json"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=30)
    try:
        return done.returncode, "\n".join(str(finding) for finding in json.loads(done.stdout)["findings"])
    except ValueError:
        return done.returncode, done.stdout


def checked(check, options, site, folder, master):
    """`lockward check --connect` says what it found by the sentinels, and what is wrong with them."""
    code, text = looked_at(options, folder, upstream(site.url()))
    wanted = "127.0.0.1:%d is the master locks" % master
    check("check finds it: " + text, (code, wanted in text, "quorum 2 of 3" in text), (0, True, True))
    for name, config, words in (
            ("an unknown name", upstream(site.url().replace("/" + NAME, "/nobody")), "no master is called nobody"),
            ("no password", upstream(site.url(), None), "set upstream.sentinel_password"),
            ("a wrong one", upstream(site.url(), marks.WRONG_PASSWORD), "WRONGPASS"),
            ("no sentinel", upstream("redis-sentinel://127.0.0.1:%d/%s" % (master, NAME), None), "this is no sentinel"),
            ("nobody", upstream("redis-sentinel://127.0.0.1:%d/%s" % (free_port(), NAME), None), "cannot connect")):
        code, text = looked_at(options, folder, config)
        check("check with %s: %s" % (name, text), (code, words in text), (1, True))
    code, text = looked_at(options, folder, upstream(site.url().replace("redis-sentinel", "redis+sentinel")))
    check("check with a slip: " + text, (code != 0, "for sentinels write redis-sentinel://" in text), (True, True))


def nonsense(check, options, site, folder):
    """Sentinels that talk nonsense cost nothing, and those that do not are heard."""
    address = b"GET-MASTER-ADDR-BY-NAME"
    fakes = [Fake({address: says}) for says in (
        b"*1\r\n" * 200_000, b"$100000000\r\n" + b"x" * 1_000_000, b"*2\r\n$3\r\n::1\r\n$2\r\n-1\r\n", b"+OK\r\n",
        bulks("h/../x", 1), b"-" + b"e" * 100_000 + b"\r\n", b"")]
    with Proxy(options.proxy, site.servers[0], upstream(site.url(*(fake.port for fake in fakes))), folder,
               mode=options.mode) as proxy:
        check.until("ready all the same", proxy.readiness, "ok")
        check.until("they are told apart", lambda: proxy.has('lockward_sentinels{state="answering"} 3'), True)
        check("little memory", proxy.rss_kib() < 60_000, True)
    for fake in fakes:
        fake.shutdown()


def word_against_word(check, options, folder):
    """Word against word: those who are late move nobody back, and one who names a dead master for ever holds nobody."""
    def place():
        with contextlib.suppress(OSError, WireError), proxy.connect() as client:
            answer = client.ask("CONFIG", "GET", "port")
            return None if isinstance(answer, Error) else int(answer[1])

    def rounds():
        """All are asked several times."""
        until = [fake.asked + 3 for fake in fakes]

        def asked():
            fakes[1].announce(NAME)
            return all(fake.asked >= wanted for fake, wanted in zip(fakes, until))
        check.until("all are asked", asked, True)

    with Server(options.server, folder) as old, Server(options.server, folder) as new:
        fakes = [naming(old.port) for _ in range(3)]
        url = "redis-sentinel://%s/%s" % (",".join("127.0.0.1:%d" % fake.port for fake in fakes), NAME)
        with Proxy(options.proxy, old, upstream(url), folder, mode=options.mode) as proxy:
            check.until("words: ready", proxy.readiness, "ok")
            # The two others answer in the same round, but later, and have not heard of it.
            fakes[1].delay = fakes[2].delay = 0.01
            fakes[0].names(new.port, 1)
            rounds()
            check.until("one that knows more is followed", place, new.port)
            check("and no other one", (switches(proxy), proxy.readiness()), (1, "ok"))
            fakes[0].says = {}
            rounds()
            check("not when it is silent either", (place(), switches(proxy)), (new.port, 1))
            fakes[2].names(new.port, NEWEST)
            rounds()
            for fake in fakes[:2]:
                fake.names(old.port, 9)
            rounds()
            check("a master that is one stays", (place(), switches(proxy)), (new.port, 1))
            new.kill()
            check.until("a dead one does not, whoever names it", place, old.port)
            check("the metric of both", switches(proxy), 2)
        for fake in fakes:
            fake.shutdown()


def all_parts(check, options, folder, stack):
    site = Site(options.server, folder, stack)
    first = site.servers[0].port
    check.until("the sentinels know all", site.settled, first)
    old_one = naming(first)
    proxy = stack.enter_context(
        Proxy(options.proxy, site.servers[0], upstream(site.url(old_one.port)), folder, mode=options.mode))
    check.until("ready", proxy.readiness, "ok")
    check.until("all answer", lambda: proxy.has('lockward_sentinels{state="answering"} 4'), True)
    crowd = Crowd(proxy)
    try:
        check.until("all are served", lambda: set(crowd.last()), {first})
        held = Held(check, options, site, folder)
        second = asked_for(check, site, proxy, crowd, first)
        held.goes_on(second)
        checked(check, options, site, folder, second)
        third = killed(check, site, proxy, crowd, second)
        check("the one that lies behind was asked", old_one.asked > 2, True)
        away(check, options, site, folder, proxy, crowd)
        nonsense(check, options, site, folder)
        check("nobody was moved back", set(crowd.last()), {third})
    finally:
        crowd.end()
        old_one.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--mode", default="dedicated")
    options = parser.parse_args()
    check = Check("sentinel", 30.0)
    with tempfile.TemporaryDirectory(prefix="lockward-sentinel-") as folder:
        try:
            with contextlib.ExitStack() as stack:
                word_against_word(check, options, folder)
                all_parts(check, options, folder, stack)
        except (WireError, OSError, RuntimeError) as error:
            check("no accident", error or type(error).__name__, None)
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
