"""What breaks in a run: one fault after the other by a seeded plan, each written down from before it began until it was
over.

Every kind comes once before any comes twice, but jumps of the clock, which come there and back. It does not look at what the clients make of it.
"""
import contextlib
import os
import signal
import time

from harness.resp import WireError
from record import now
import layout

EVERY = 2.0             # seconds from one to the next
LONGEST = 1.2           # seconds that one stops something
CUTS = 32               # lock cycles that one `cut-bytes` cuts
BACK = 15.0             # seconds until what was killed must serve again


class Faults:
    """The plan, and how each is done."""

    def __init__(self, scene, random, only=()):
        self.scene, self.random, self.book = scene, random, scene.book
        kinds = [name[3:].replace("_", "-") for name in vars(Faults) if name.startswith("do_")]
        if not scene.server.tool:
            kinds = [kind for kind in kinds if not kind.startswith("clock")]
        unknown = set(only) - set(kinds)
        if unknown:
            raise SystemExit("run: no fault here is called %s; there are %s" % (", ".join(unknown), ", ".join(kinds)))
        # Only some servers can have it; those have it the more.
        kinds += ["clock-jump"] * kinds.count("clock-jump")
        self.kinds = [kind for kind in kinds if not only or kind in only]
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
            detail = getattr(self, "do_" + kind.replace("-", "_"))()
            self.book.write("f", kind, start, now(), detail)
            count += 1
            time.sleep(max(0.0, begun + count * every - time.monotonic()))
        time.sleep(max(0.0, begun + seconds - time.monotonic()))

    # ---- choices

    def pause(self):
        time.sleep(self.random.uniform(0.1, LONGEST))

    def proxy(self):
        return self.scene.proxies[self.random.choice("AB")]

    def link(self):
        return self.random.choice(["A", "B", "SA", "SB"])

    def stopped(self, pid):
        os.kill(pid, signal.SIGSTOP)
        self.pause()
        os.kill(pid, signal.SIGCONT)

    def ask(self, *words):
        """A command for the server itself."""
        deadline = time.monotonic() + BACK
        while True:
            try:
                with self.scene.server.connect(limit=BACK) as direct:
                    return str(direct.ask(*words))
            except (OSError, WireError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    # ---- clients

    def do_client_kill(self):
        process = self.random.randrange(layout.CLIENTS)
        client, begun = self.scene.clients[process], now()
        client.child.kill()
        client.child.wait()
        self.book.write("dead", client.name, begun, now())
        self.scene.start_client(process)
        return client.name

    def do_client_stop(self):
        client = self.scene.clients[self.random.randrange(layout.CLIENTS)]
        self.stopped(client.child.pid)
        return client.name

    # ---- lockward

    def do_proxy_kill(self):
        proxy = self.proxy()
        proxy.kill()
        deadline = time.monotonic() + BACK
        while not self.started(proxy):
            # The system may not have taken the ports back yet from one that was not our child.
            if time.monotonic() > deadline:
                raise RuntimeError("lockward does not start again: %s" % proxy.last_words())
            time.sleep(0.02)
        return proxy.port

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
        proxy = self.proxy()
        self.stopped(proxy.pid())
        return proxy.port

    def do_reload(self):
        proxy = self.proxy()
        turn = self.random.choice(("info", "warn"))
        with open(proxy.config) as file:
            text = file.read().split("[log]")
        with open(proxy.config, "w") as file:
            head, rest = text[0], text[-1]
            rest = rest[rest.index("[["):]
            file.write('%s[log]\nlevel = "%s"\n\n%s' % (head.split("[[")[0], turn, rest))
        os.kill(proxy.pid(), signal.SIGHUP)
        return turn

    def do_upgrade(self):
        code, said = self.proxy().upgrade()
        return [code, said[-300:]]

    # ---- the server

    def do_server_kill(self):
        self.scene.server.kill()
        self.scene.server.start()
        return self.ask("PING")

    def do_server_loss(self):
        begun = now()
        self.scene.server.kill()
        self.scene.server.lose()
        self.scene.server.start()
        self.book.write("loss", begun, now())
        return self.ask("DBSIZE")

    def do_server_stop(self):
        self.stopped(self.scene.server.child.pid)

    def do_server_sleep(self):
        return self.ask("DEBUG", "SLEEP", "%.2f" % self.random.uniform(0.1, LONGEST))

    def do_script_flush(self):
        return self.ask("SCRIPT", "FLUSH")

    def do_connections_kill(self):
        return self.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def do_client_pause(self):
        pause = self.random.uniform(0.1, LONGEST)
        said = self.ask("CLIENT", "PAUSE", int(1000 * pause), self.random.choice(("ALL", "WRITE")))
        time.sleep(pause)
        return said

    def do_oom(self):
        said = self.ask("CONFIG", "SET", "maxmemory", 1)
        self.pause()
        return [said, self.ask("CONFIG", "SET", "maxmemory", 0)]

    # ---- links

    def do_cut(self):
        link = self.link()
        self.scene.tell(do="cut", link=link, share=self.random.choice((0.1, 0.5, 1.0)))
        return link

    def do_cut_bytes(self):
        self.scene.tell(do="arm", count=CUTS)
        time.sleep(LONGEST)
        return self.scene.tell(do="count")["turns"]

    def do_hole(self):
        link, way = self.link(), self.random.choice(("up", "down", "both"))
        self.scene.tell(do="hole", link=link, way=way)
        self.pause()
        self.scene.tell(do="heal")
        return [link, way]

    # ---- clocks

    def do_clock_jump(self):
        """There and back again in turns, some of both at once behind one another."""
        step = self.random.choice((0.3, 1.5, 3.0))
        ahead = -step if self.ahead > 0 else step
        self.ahead += ahead
        self.scene.set_clock(self.scene.server.clock, self.ahead)
        time.sleep(LONGEST)
        return ahead
