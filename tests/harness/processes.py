"""The processes that tests start: a server and proxies, on free loopback ports, in a folder of their own.

Everything started here is ended by its process id, when its `with` block ends or the program exits.
"""
import atexit
import json
import os
import random
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

from . import marks
from .resp import Connection, Error

START_LIMIT = 20.0      # seconds until a process must listen
DEFAULT_RULES = '[[locks]]\npattern = "lock:*"\n'
given_ports = set()


def free_port():
    """A port below the range from which the system gives out ports for outgoing connections."""
    while True:
        port = random.randrange(20000, 32000)
        if port in given_ports:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        given_ports.add(port)
        return port


class Process:
    """A child process that listens somewhere."""

    name = "process"

    def __init__(self, folder):
        self.folder = folder
        self.log = os.path.join(self.log_folder(), "%s-%08x.log" % (self.name, random.getrandbits(32)))
        self.child = None
        atexit.register(self.kill)

    def log_folder(self):
        return self.folder

    def command(self):
        raise NotImplementedError

    def address(self):
        raise NotImplementedError

    def environment(self):
        """Its environment variables; by default those of the test."""
        return None

    def start(self):
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                          env=self.environment())
        deadline = time.monotonic() + START_LIMIT
        while time.monotonic() < deadline:
            if self.child.poll() is not None:
                raise RuntimeError("the %s ended at its start with code %s; its last words: %s" % (
                    self.name, self.child.returncode, self.last_words()))
            try:
                Connection(self.address(), limit=1).close()
                return self
            except OSError:
                time.sleep(0.01)
        self.kill()
        raise RuntimeError("the %s did not listen within %d s; its last words: %s" % (
            self.name, START_LIMIT, self.last_words()))

    def last_words(self):
        try:
            with open(self.log, errors="replace") as log:
                return " / ".join(log.read().split("\n")[-6:]).strip(" /") or "none"
        except OSError:
            return "none"

    def is_running(self):
        return self.child is not None and self.child.poll() is None

    def signal(self, number):
        if self.is_running():
            self.child.send_signal(number)

    def kill(self):
        if self.is_running():
            self.child.kill()
            self.child.wait()

    def stop(self):
        """SIGTERM, and SIGKILL if that takes longer than 10 s. A stopped process is woken for it."""
        if self.is_running():
            self.child.send_signal(signal.SIGTERM)
            self.child.send_signal(signal.SIGCONT)
            try:
                self.child.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()

    def connect(self, **options):
        return Connection(self.address(), **options)

    def rss_kib(self):
        with open("/proc/%d/status" % self.child.pid) as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Server(Process):
    """A redis-server or valkey-server without persistence, with DEBUG allowed."""

    name = "server"

    def __init__(self, program, folder, unix=None, arguments=()):
        super().__init__(folder)
        self.program, self.port, self.unix, self.arguments = program, free_port(), unix, list(arguments)
        self.start()
        self.first_state = self.state()

    def command(self):
        unix = ["--unixsocket", self.unix] if self.unix else []
        return [self.program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                "--dir", self.folder, "--enable-debug-command", "yes"] + unix + self.arguments

    def address(self):
        return self.port

    def state(self):
        """Every setting and user, to see what a test left changed."""
        with self.connect() as connection:
            settings, users = connection.ask("CONFIG", "GET", "*"), connection.ask("ACL", "LIST")
        if isinstance(settings, Error) or isinstance(users, Error):
            return {"access": settings}
        state = {name.decode(): value for name, value in zip(settings[::2], settings[1::2])}
        state.update(("user %d" % i, user) for i, user in enumerate(users))
        return state

    def changes(self):
        """The names of the settings and users that are not as they were at the start."""
        now = self.state()
        return sorted(n for n in set(now) | set(self.first_state) if now.get(n) != self.first_state.get(n))

    def revive(self):
        """Wakes the server if it was paused, and starts it if it is dead."""
        if self.is_running():
            self.signal(signal.SIGCONT)
        else:
            self.start()


class Proxy(Process):
    """lockward in front of a server. `rules` is the TOML behind the sections that the harness writes itself; with an
    empty `token` nothing can be changed through the admin address. `mode` and `workers` are as in the configuration; rules
    that name a mode themselves are for that one."""

    name = "proxy"

    def __init__(self, program, server, rules, folder, unix=None, token=marks.ADMIN_TOKEN, mode=None, workers=None):
        super().__init__(folder)
        self.program, self.unix = program, unix
        if re.search(r'^mode = "(dedicated|shared)"', rules, re.M):
            mode = None
        self.variables = {name: str(value) for name, value in (
            ("LOCKWARD_UPSTREAM__MODE", mode), ("LOCKWARD_LISTEN__WORKERS", workers)) if value is not None}
        self.port, self.admin_port = free_port(), free_port()
        self.config = os.path.join(folder, os.path.basename(self.log)[:-4] + ".toml")
        listen = 'unix = "%s"' % unix if unix else 'address = "127.0.0.1:%d"' % self.port
        upstream = "redis+unix://%s" % server.unix if server.unix else "redis://127.0.0.1:%d" % server.port
        with open(self.config, "w") as config:
            config.write('[listen]\n%s\n\n[admin]\naddress = "127.0.0.1:%d"\ntoken = "%s"\n\n' % (
                listen, self.admin_port, token))
            config.write(rules.replace("$REDIS", "127.0.0.1:%d" % server.port))
            if "[upstream]" not in rules:
                config.write('\n[upstream]\nurl = "%s"\n' % upstream)
        self.start()

    def log_folder(self):
        """scripts/test keeps the logs of all proxies, and searches them for secrets when all is over."""
        return os.environ.get("LOCKWARD_TEST_LOGS") or self.folder

    def command(self):
        return [self.program, "--config", self.config]

    def environment(self):
        return dict(os.environ, **self.variables)

    def address(self):
        return self.unix or self.port

    def get(self, path, limit=5):
        """What the admin address answers to a GET; an answer that is an error raises urllib's HTTPError."""
        url = "http://127.0.0.1:%d%s" % (self.admin_port, path)
        with urllib.request.urlopen(url, timeout=limit) as answer:
            return answer.read().decode()

    def post(self, path, token=marks.ADMIN_TOKEN):
        """Status and JSON of a POST."""
        request = urllib.request.Request("http://127.0.0.1:%d%s" % (self.admin_port, path), method="POST",
                                         headers={"Authorization": "Bearer " + token})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def metrics(self):
        return self.get("/metrics")

    def has(self, line):
        """Whether this line stands among the metrics."""
        return line in self.metrics().splitlines()

    def readiness(self):
        """What /readyz says: "ok", or why not."""
        try:
            return self.get("/readyz").strip()
        except urllib.error.HTTPError as error:
            return error.read().decode().strip()

    def said(self, text):
        """Whether this stands in the log."""
        with open(self.log, errors="replace") as log:
            return text in log.read()

    def json(self, path):
        return json.loads(self.get(path))
