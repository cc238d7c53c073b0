"""What measurements share: the programs among the bench targets, the load generator, and the CPU clocks of processes.
It judges nothing.
"""
import json
import os
import signal
import subprocess
import time

from .processes import Process

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))


class Failed(Exception):
    """A build or a measurement that gave no figures; the text says why."""


def executables(*command):
    """What a cargo command built, or had built before: {name of the target: path}."""
    done = subprocess.run(["cargo", *command, "--locked", "--message-format=json-render-diagnostics"], cwd=TOP,
                          stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failed("cargo %s ended with code %d" % (command[0], done.returncode))
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {m["target"]["name"]: m["executable"] for m in messages if m.get("executable")}


def build(*programs):
    """Builds the programs of these names, and lockward as it is released; {name: path}."""
    wanted = [name for name in programs if name != "relay"]
    found = executables("build", "--release", "--package", "lockward-programs", *("--bin=" + name for name in wanted))
    if "relay" in programs:
        found.update(executables("bench", "--no-run", "--bench=relay"))
    # Last: cargo bench builds a lockward too, with what the tests' dependencies switch on in those they share with it.
    found.update(executables("build", "--release"))
    lacking = [name for name in ("lockward", *programs) if name not in found]
    if lacking:
        raise Failed("cargo built no %s" % ", ".join(lacking))
    return found


def cpu_seconds(pid):
    """What all threads of a process have had of a CPU, to the nanosecond. Threads that ended do not count."""
    total = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/schedstat" % (pid, thread)) as clock:
                total += int(clock.read().split()[0])
        except FileNotFoundError:
            pass        # it ended between the two lines
    return total / 1e9


class Load:
    """The load generator (benches/load.rs), connected and waiting; `run` lets it go and returns what it measured. Its
    connections stay open until the end of the `with` block."""

    def __init__(self, program, port, **arguments):
        command = [program, "port=%d" % port] + ["%s=%s" % pair for pair in arguments.items()]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True)
        try:
            self.expect_ready()
        except Failed:
            self.end()
            raise

    def expect_ready(self):
        if self.child.stdout.readline().strip() != "ready":
            raise Failed("the load generator did not connect: %s" % self.last_words())

    def last_words(self):
        return self.child.stderr.read().strip()[-200:]

    def cpu_seconds(self):
        return cpu_seconds(self.child.pid)

    def run(self):
        self.child.stdin.write("go\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line.startswith("{"):
            raise Failed("the load generator gave up: %s" % self.last_words())
        return json.loads(line)

    def end(self):
        self.child.stdin.close()
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.child.stdout.close()
        self.child.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class Awake:
    """While it lasts, one loop of the lowest kind of priority turns on each CPU. A virtual CPU that has nothing to do is
    given back to the machine below, and takes tens of microseconds to come again: more than what is to be measured."""

    LIMIT = 60          # seconds, should nobody end it

    def __init__(self, wanted=True):
        self.wanted, self.children = wanted, []

    def __enter__(self):
        for cpu in sorted(os.sched_getaffinity(0)) if self.wanted else []:
            child = os.fork()
            if child == 0:
                self.turn(cpu)
            self.children.append(child)
        return self

    def turn(self, cpu):
        try:
            signal.alarm(self.LIMIT)
            os.sched_setaffinity(0, {cpu})
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            while True:
                pass
        finally:
            os._exit(1)

    def __exit__(self, *_):
        for child in self.children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def idle_kib(process, count):
    """What each of so many connections costs a process, in KiB of its resident memory, when it has asked once and idles."""
    with process.connect() as first:
        first.ask("GET", "idle")
    time.sleep(0.3)
    before, connections = process.rss_kib(), []
    try:
        for _ in range(count):
            connections.append(process.connect())
            connections[-1].ask("GET", "idle")
        time.sleep(0.5)
        return (process.rss_kib() - before) / count
    finally:
        for connection in connections:
            connection.reset()


class Command(Process):
    """Another proxy: its command line is given, with the port that it shall listen on."""

    def __init__(self, name, folder, port, words):
        self.name = name
        super().__init__(folder)
        self.port, self.words = port, words
        self.start()

    def command(self):
        return self.words

    def address(self):
        return self.port
