"""All processes of a run: server, shim, two lockwards, client processes, watcher; and the harness' own history.

    client processes ──► shim ──► lockward A, lockward B ──► shim ──► server ◄── watcher
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "checks")]
from harness.processes import Server, free_port     # noqa: E402
from record import Book, now                        # noqa: E402
from upgrade import Upgraded                        # noqa: E402
import layout                                       # noqa: E402

PATIENCE = 15.0     # seconds until a process of ours must have ended


class Kept(Server):
    """A server that has its data again when it is started again after SIGKILL: whatever it has answered is with the system
    by then. `clock` is a file that says by how much its clock is off, `tool` the program that makes it so."""

    def __init__(self, program, folder, clock=None, tool=None):
        self.clock, self.tool = clock, tool
        super().__init__(program, folder)

    def command(self):
        plain = super().command()
        kept = plain + ["--appendonly", "yes", "--appendfsync", "no", "--maxmemory-policy", "noeviction",
                        "--protected-mode", "no"]
        # What it says in the variable would hold instead of what is in the file.
        return [self.tool, "+0", "env", "-u", "FAKETIME"] + kept if self.tool else kept

    def environment(self):
        if not self.tool:
            return None
        return dict(os.environ, FAKETIME_TIMESTAMP_FILE=self.clock, FAKETIME_CACHE_DURATION="1")

    def lose(self):
        """Removes what it would read at its next start."""
        subprocess.run(["rm", "-rf", os.path.join(self.folder, "appendonlydir")], check=True)


class Fronting(Upgraded):
    """A lockward; `serving` is the process that serves, also when it is too busy to be asked."""

    serving = 0

    def start(self):
        super().start()
        self.serving = self.child.pid
        return self

    def upgrade(self):
        """Exit code and words of `lockward upgrade`."""
        code, said = self.cli("upgrade")
        found = re.search(r"-> \S+ \(pid (\d+)\)", said)
        if code == 0 and found:
            self.serving = int(found.group(1))
        return code, said

    def pid(self):
        return self.serving

    def kill(self):
        # A number that is somebody else's by now is left alone.
        with contextlib.suppress(OSError):
            with open("/proc/%d/cmdline" % self.serving, "rb") as words:
                if os.fsencode(self.config) in words.read().split(b"\0"):
                    os.kill(self.serving, signal.SIGKILL)
        super().kill()


class Program:
    """A Python program of this folder, told what to do by JSON."""

    def __init__(self, script, told, **options):
        self.told, self.name = told, told.get("name", script)
        self.child = subprocess.Popen([sys.executable, os.path.join(HERE, script), json.dumps(told)], **options)

    def stop(self, number=signal.SIGTERM):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGCONT)
            self.child.send_signal(number)
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


class Scene:
    """Everything that runs; `with` ends it."""

    def __init__(self, options, folder, direct=False, cast="chaos"):
        self.options, self.folder, self.direct, self.cast = options, folder, direct, cast
        self.history = os.path.join(folder, "history")
        os.makedirs(self.history, exist_ok=True)
        self.book, self.clients, self.born = Book(self.history, "harness"), {}, {}
        self.shim = self.watcher = self.server = None
        self.proxies = {}
        tool = getattr(options, "faketime", None)
        clock = os.path.join(folder, "clock")
        self.set_clock(clock, 0)
        self.server = Kept(options.server, folder, clock, tool)
        self.links = {name: [free_port(), 0] for name in ("A", "B", "SA", "SB")}
        for name in "AB":
            self.start_proxy(name)
        self.start_shim()

    @staticmethod
    def set_clock(clock, seconds):
        with open(clock + ".new", "w") as file:
            file.write("%+g\n" % seconds)
        os.rename(clock + ".new", clock)

    def start_proxy(self, name):
        if self.direct:
            self.links[name][1] = self.links["S" + name][1] = self.server.port
            return
        self.links["S" + name][1] = self.server.port
        behind = SimpleNamespace(unix=None, port=self.links["S" + name][0])
        proxy = Fronting(self.options.proxy, behind, layout.rules(self.cast), self.folder, mode=self.options.mode,
                         workers=1)
        self.proxies[name], self.links[name][1] = proxy, proxy.port

    def start_shim(self):
        self.shim = Program("shim.py", {"links": self.links, "front": ["A", "B"]}, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
        self.shim.child.stdout.readline()

    def tell(self, **told):
        """A command for the shim, and its answer."""
        self.shim.child.stdin.write(json.dumps(told) + "\n")
        self.shim.child.stdin.flush()
        return json.loads(self.shim.child.stdout.readline())

    def start_client(self, process):
        """The next life of a client process."""
        self.born[process] = self.born.get(process, 0) + 1
        name = "c%d-%d" % (process, self.born[process])
        told = {"folder": self.history, "name": name, "process": process, "pace": self.options.pace, "cast": self.cast,
                "seed": "%d %s" % (self.options.seed, name), "ports": {name: self.links[name][0] for name in "AB"}}
        self.clients[process] = Program("client.py", told)

    def start_watcher(self):
        links = {} if self.direct else {name: proxy.port for name, proxy in self.proxies.items()}
        self.watcher = Program("watcher.py", {"folder": self.history, "name": "watcher", "server": self.server.port,
                                              "links": links, "keys": layout.all_keys(self.cast)})

    def begin(self):
        self.start_watcher()
        for process in range(layout.CLIENTS):
            self.start_client(process)

    def stop_clients(self):
        """Each comes to its end; what it had begun is over by then, and its leases soon after."""
        for client in self.clients.values():
            if client.child.poll() is None:
                client.child.send_signal(signal.SIGCONT)
                client.child.terminate()
        for client in self.clients.values():
            begun = now()
            client.stop()
            self.book.write("dead", client.name, begun, now())
        self.clients = {}
        time.sleep(layout.MAX_HOLD + 1.5)
        self.watcher.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in [*self.clients.values(), self.watcher, self.shim]:
            if program is not None:
                program.stop(signal.SIGKILL)
        for proxy in self.proxies.values():
            proxy.stop()
        self.server.stop()
