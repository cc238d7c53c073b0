"""All processes of a run: server, shim, two lockwards, client processes, watcher; and the harness' own history.

    client processes ──► shim ──► lockward A, lockward B ──► shim ──► server ◄── watcher
"""
import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "checks")]
from harness.processes import Proxy, Server         # noqa: E402
from keeper import Group                            # noqa: E402
from record import Book, now                        # noqa: E402
from upgrade import Upgraded                        # noqa: E402
import layout                                       # noqa: E402

PATIENCE = 15.0     # seconds until a process of ours must have ended


def known(doc):
    """A parser of the options that the programs here have in common."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--mode", default="dedicated")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    return parser


class Kept(Server):
    """A server that has its data again when it is started again after SIGKILL: whatever it has answered is with the system
    by then. `clock` is a file that says by how much its clock is off, `tool` the program that makes it so."""

    def __init__(self, group, program, folder, clock=None, tool=None):
        self.group, self.clock, self.tool = group, clock, tool
        super().__init__(program, folder)

    def command(self):
        plain = super().command()
        kept = plain + ["--appendonly", "yes", "--appendfsync", "no", "--maxmemory-policy", "noeviction",
                        "--protected-mode", "no"]
        # What it says in the variable would hold instead of what is in the file.
        return self.group.member([self.tool, "+0", "env", "-u", "FAKETIME"] + kept if self.tool else kept)

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

    def __init__(self, group, *arguments, **options):
        self.group = group
        super().__init__(*arguments, **options)

    def command(self):
        return self.group.member(super().command())

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
        # Not as Upgraded does it: a number that is 0 as yet would mean this program and all of its group.
        Proxy.kill(self)


class Program:
    """A Python program of this folder, told what to do by JSON."""

    def __init__(self, group, script, told, stdin=subprocess.DEVNULL, **options):
        self.name = told.get("name", script)
        command = group.member([sys.executable, os.path.join(HERE, script), json.dumps(told)])
        self.child = subprocess.Popen(command, stdin=stdin, **options)

    def tell_to_end(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGCONT)
            self.child.terminate()

    def ended(self):
        """Its exit code, waited for."""
        try:
            return self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            return self.child.wait()


class Scene:
    """Everything that runs; `with` ends it. `fallen` are the programs that ended otherwise than they were told to."""

    def __init__(self, options, folder, direct=False, cast="chaos"):
        self.options, self.folder, self.direct, self.cast = options, folder, direct, cast
        self.history = os.path.join(folder, "history")
        os.makedirs(self.history, exist_ok=True)
        self.book, self.clients, self.born, self.fallen = Book(self.history, "harness"), {}, {}, []
        self.shim = self.watcher = self.server = None
        self.proxies = {}
        self.group = Group()
        try:
            self.start()
        except BaseException:
            self.end()
            raise

    def start(self):
        """Server, shim, proxies: each needs the port of the one before."""
        clock = os.path.join(self.folder, "clock")
        self.set_clock(clock, 0)
        self.server = Kept(self.group, self.options.server, self.folder, clock, getattr(self.options, "faketime", None))
        told = {"links": ["A", "B", "SA", "SB"], "front": ["A", "B"], "seed": self.options.seed}
        self.shim = Program(self.group, "shim.py", told, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ports = json.loads(self.shim.child.stdout.readline())
        for name in "AB":
            self.tell(do="aim", link="S" + name, target=self.server.port)
            self.tell(do="aim", link=name, target=self.server.port if self.direct else self.start_proxy(name))

    @staticmethod
    def set_clock(clock, seconds):
        with open(clock + ".new", "w") as file:
            file.write("%+g\n" % seconds)
        os.rename(clock + ".new", clock)

    def start_proxy(self, name):
        behind = SimpleNamespace(unix=None, port=self.ports["S" + name])
        self.proxies[name] = Fronting(self.group, self.options.proxy, behind, layout.rules(self.cast), self.folder,
                                      mode=self.options.mode, workers=1)
        return self.proxies[name].port

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
                "seed": "%d %s" % (self.options.seed, name), "ports": {link: self.ports[link] for link in "AB"}}
        self.clients[process] = Program(self.group, "client.py", told)

    def start_watcher(self):
        links = {} if self.direct else {name: proxy.port for name, proxy in self.proxies.items()}
        self.watcher = Program(self.group, "watcher.py", {
            "folder": self.history, "name": "watcher", "server": self.server.port, "links": links,
            "keys": layout.all_keys(self.cast)})

    def begin(self):
        self.book.write("m", self.options.mode)
        self.start_watcher()
        for process in range(layout.CLIENTS):
            self.start_client(process)

    def stop_clients(self):
        """Each comes to its end; what it had begun is over by then, and its leases soon after."""
        for client in self.clients.values():
            client.tell_to_end()
        for client in self.clients.values():
            begun = now()
            self.see_end(client)
            self.book.write("dead", client.name, begun, now())
        self.clients = {}
        time.sleep(layout.MAX_HOLD + 1.5)
        self.watcher.tell_to_end()
        self.see_end(self.watcher)

    def see_end(self, program):
        code = program.ended()
        # One that has just been born does not know SIGTERM yet.
        if code not in (0, -signal.SIGTERM):
            self.fallen.append("%s ended with code %s" % (program.name, code))

    def end(self):
        self.group.end()
        for program in [*self.clients.values(), self.watcher, self.shim]:
            if program is not None:
                program.child.wait()
        for process in [*self.proxies.values(), self.server]:
            if process is not None:
                process.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
