"""What breaks in a run: one fault after the other by a seeded plan, each written down from before it began until it was
over, with what shows that it took effect. One that had none is written down as `fault-without-effect` and counts for nothing.

Every kind comes once before any comes twice, but jumps of the clock, which come there and back. It does not look at what the
clients make of it.
"""
import contextlib
import os
import signal
import time

from harness.resp import WireError, metric_sum
from record import now
import layout

EVERY = 2.0             # seconds from one to the next
LONGEST = 1.2           # seconds that one stops something
CUTS = 32               # lock cycles that one `cut-bytes` cuts
BACK = 15.0             # seconds until what was killed must serve again
AT_ONCE = 5.0           # seconds until a fault must have taken effect
MARK = "chaos:mark"     # a key of the harness' own, which no rule matches
WITHOUT = "fault-without-effect"


def kinds(clocks):
    """All that can come, `clocks` telling whether the server's clock can be put."""
    found = [name[3:].replace("_", "-") for name in vars(Faults) if name.startswith("do_")]
    return [kind for kind in found if clocks or kind != "clock-jump"]


class Faults:
    """The plan, and how each is done."""

    def __init__(self, scene, random, only=()):
        self.scene, self.random, self.book = scene, random, scene.book
        here = kinds(bool(scene.server.tool))
        unknown = set(only) - set(here)
        if unknown:
            raise SystemExit("run: no fault here is called %s; there are %s" % (", ".join(unknown), ", ".join(here)))
        # Only some servers can have it; those have it the more.
        here += ["clock-jump"] * here.count("clock-jump")
        self.kinds = [kind for kind in here if not only or kind in only]
        self.bag, self.ahead = [], 0.0

    def first_bag(self, seed):
        """The first round begins elsewhere with each seed, so that four short runs in a row have all kinds."""
        at = (seed % 4) * -(-len(self.kinds) // 4)
        self.bag = self.kinds[at:] + self.kinds[:at]

    def run(self, seconds, every=EVERY):
        begun, count = time.monotonic(), 0
        while time.monotonic() - begun < seconds - LONGEST:
            if not self.bag:
                self.bag = self.random.sample(self.kinds, len(self.kinds))
            kind = self.bag.pop(0)
            start = now()
            # Each says what shows that it took effect, and whether it did.
            detail, effect = getattr(self, "do_" + kind.replace("-", "_"))()
            if effect:
                self.book.write("f", kind, start, now(), detail)
            else:
                self.book.write("f", WITHOUT, start, now(), [kind, detail])
            count += 1
            time.sleep(max(0.0, begun + count * every - time.monotonic()))
        time.sleep(max(0.0, begun + seconds - time.monotonic()))

    # ---- choices

    def pause(self):
        time.sleep(self.random.uniform(0.1, LONGEST))

    def proxy(self):
        """A lockward, and its name, by which the checker knows whom the fault concerns."""
        name = self.random.choice("AB")
        return name, self.scene.proxies[name]

    def link(self):
        return self.random.choice(["A", "B", "SA", "SB"])

    def stopped(self, pid):
        """The state in which the system had that process meanwhile."""
        os.kill(pid, signal.SIGSTOP)
        self.pause()
        state = state_of(pid)
        os.kill(pid, signal.SIGCONT)
        return state, state == "T"

    def direct(self):
        """A connection to the server itself, as soon as it serves."""
        deadline = time.monotonic() + BACK
        while True:
            try:
                connection = self.scene.server.connect(limit=BACK)
                if connection.ask("PING") == "PONG":
                    return connection
                connection.close()
            except (OSError, WireError):
                pass
            if time.monotonic() > deadline:
                raise RuntimeError("the server does not serve: %s" % self.scene.server.last_words())
            time.sleep(0.02)

    def until(self, ask):
        """What `ask` says at last, and whether that is something."""
        deadline = time.monotonic() + AT_ONCE
        while not (said := ask()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return said, bool(said)

    # ---- clients

    def do_client_kill(self):
        process = self.random.randrange(layout.CLIENTS)
        client, begun = self.scene.clients[process], now()
        client.child.kill()
        code = client.child.wait()
        self.book.write("dead", client.name, begun, now())
        self.scene.start_client(process)
        return [client.name, code], code == -signal.SIGKILL

    def do_client_stop(self):
        return self.stopped(self.scene.clients[self.random.randrange(layout.CLIENTS)].child.pid)

    # ---- lockward

    def do_proxy_kill(self):
        name, proxy = self.proxy()
        before = proxy.pid()
        proxy.kill()
        gone = self.until(lambda: state_of(before) in ("", "Z"))[1]
        deadline = time.monotonic() + BACK
        while not self.started(proxy):
            # The system may not have taken the ports back yet from one that was not our child.
            if time.monotonic() > deadline:
                raise RuntimeError("lockward does not start again: %s" % proxy.last_words())
            time.sleep(0.02)
        return [name, before, proxy.pid()], gone and before != proxy.pid()

    @staticmethod
    def started(proxy):
        """Whether it came to serve, with all its ports."""
        with contextlib.suppress(RuntimeError):
            proxy.start()
        while proxy.is_running():
            with contextlib.suppress(OSError, ValueError):
                return proxy.json("/api/v1/process")["pid"] == proxy.child.pid
            time.sleep(0.02)
        return False

    def do_proxy_stop(self):
        name, proxy = self.proxy()
        state, effect = self.stopped(proxy.pid())
        return [name, state], effect

    def do_reload(self):
        name, proxy = self.proxy()
        before, turn = self.reloads(proxy), self.random.choice(("info", "warn"))
        with open(proxy.config) as file:
            text = file.read().split("[log]")
        with open(proxy.config, "w") as file:
            head, rest = text[0], text[-1]
            rest = rest[rest.index("[["):]
            file.write('%s[log]\nlevel = "%s"\n\n%s' % (head.split("[[")[0], turn, rest))
        os.kill(proxy.pid(), signal.SIGHUP)
        count, effect = self.until(lambda: self.reloads(proxy) - before)
        return [name, turn, count], effect

    @staticmethod
    def reloads(proxy):
        """How often it took its file anew."""
        return metric_sum(proxy.metrics(), 'lockward_config_reload_total{outcome="ok"}')

    def do_upgrade(self):
        name, proxy = self.proxy()
        before = proxy.pid()
        code, said = proxy.upgrade()
        serving = proxy.json("/api/v1/process")["pid"]
        return [name, code, before, serving, said[-300:]], code == 0 and serving == proxy.pid() != before

    # ---- the server

    def do_server_kill(self):
        return self.killed(lambda: None, 1)

    def do_server_loss(self):
        begun = now()
        done = self.killed(self.scene.server.lose, 0)
        self.book.write("loss", begun, now())
        return done

    def killed(self, meanwhile, left):
        """The server killed and started; so much is there then of what was there before."""
        server = self.scene.server
        with self.direct() as direct:
            direct.ask("SET", MARK, 1)
        server.kill()
        code = server.child.returncode
        meanwhile()
        server.start()
        with self.direct() as direct:
            found = direct.ask("EXISTS", MARK)
        return [code, server.child.pid, found], code == -signal.SIGKILL and found == left

    def do_server_stop(self):
        return self.stopped(self.scene.server.child.pid)

    def do_server_sleep(self):
        return self.waits("DEBUG", "SLEEP", "%.2f" % self.random.uniform(0.1, LONGEST))

    def do_client_pause(self):
        return self.waits("CLIENT", "PAUSE", int(1000 * self.random.uniform(0.1, LONGEST)),
                          self.random.choice(("ALL", "WRITE")))

    def waits(self, *words):
        """How many seconds a write behind that command took; at least those of its third word."""
        begun, wanted = time.monotonic(), float(words[2]) / (1 if "." in str(words[2]) else 1000)
        with self.direct() as direct:
            said = direct.ask(*words)
            direct.ask("SET", MARK, 1)
        took = time.monotonic() - begun
        return [said, wanted, took], said == "OK" and took >= 0.95 * wanted

    def do_script_flush(self):
        with self.direct() as direct:
            for words in (("MULTI",), ("INFO", "memory"), ("SCRIPT", "FLUSH"), ("INFO", "memory")):
                direct.ask(*words)
            before, said, after = direct.ask("EXEC")
        counts = [int(info(text, "number_of_cached_scripts")) for text in (before, after)]
        return [said, counts], said == "OK" and counts[0] > counts[1] == 0

    def do_connections_kill(self):
        with self.direct() as direct:
            killed = direct.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        return killed, killed > 0

    def do_oom(self):
        with self.direct() as direct:
            before = self.refused(direct)
            direct.ask("CONFIG", "SET", "maxmemory", 1)
            self.pause()
            direct.ask("CONFIG", "SET", "maxmemory", 0)
            refused = self.refused(direct) - before
        return refused, refused > 0

    @staticmethod
    def refused(direct):
        """How many commands the server has refused for want of memory."""
        return int(info(direct.ask("INFO", "errorstats"), "errorstat_OOM").rpartition("=")[2] or 0)

    # ---- links

    def do_cut(self):
        link = self.link()
        ended = self.scene.tell(do="cut", link=link, share=self.random.choice((0.1, 0.5, 1.0)))["did"]
        return [link, ended], ended > 0

    def do_cut_bytes(self):
        """The detail: a way and a byte for each cycle that was cut."""
        self.scene.tell(do="arm", count=CUTS)
        deadline = time.monotonic() + LONGEST
        while len(cuts := self.scene.tell(do="count")["cuts"]) < CUTS and time.monotonic() < deadline:
            time.sleep(0.05)
        cuts = self.scene.tell(do="disarm")["cuts"]
        return cuts, bool(cuts)

    def do_hole(self):
        link, way = self.link(), self.random.choice(("up", "down", "both"))
        self.scene.tell(do="hole", link=link, way=way)
        self.pause()
        swallowed = self.scene.tell(do="heal")["did"]
        return [link, way, swallowed], swallowed > 0

    # ---- clocks

    def do_clock_jump(self):
        """There and back again in turns, some of both at once behind one another."""
        step = self.random.choice((0.3, 1.5, 3.0))
        ahead = -step if self.ahead > 0 else step
        with self.direct() as direct:
            before = off(direct)
            self.ahead += ahead
            self.scene.set_clock(self.scene.server.clock, self.ahead)
            jumped = self.until(lambda: abs(off(direct) - before - ahead) < abs(ahead) / 4)[1]
            return [ahead, off(direct) - before], jumped


def state_of(pid):
    """One letter, as the system has it; empty if there is no such process."""
    try:
        with open("/proc/%d/stat" % pid) as stat:
            return stat.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def info(text, name):
    """A value out of what INFO answers; empty if it is not there."""
    lines = dict(line.partition(":")[::2] for line in text.decode().splitlines())
    return lines.get(name, "")


def off(direct):
    """How many seconds the server's clock is ahead of the machine's."""
    seconds, micros = direct.ask("TIME")
    return int(seconds) + int(micros) / 1e6 - time.time()
