#!/usr/bin/env python3
"""Plays wire scenarios: a server, the proxy in front of it, and every answer compared.

    tests/wire/run.py [--proxy PATH] [--server PATH] [--mode shared] [--only TEXT] [--jobs N] [-v] [FILE_OR_FOLDER...]

README.md beside this file describes the language of the scenarios. With --jobs N, N scenarios run side by side, each
job with a server and proxies of its own. Prints one line a scenario and, at the end, 'N passed, N failed'.
"""
import argparse
import os
import queue
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
from harness.processes import DEFAULT_RULES, Proxy, Server      # noqa: E402
from harness.resp import ANSWER_LIMIT, Connection, Error, WireError, encode, metric_sum     # noqa: E402
from language import ScenarioError, read_scenario               # noqa: E402

METRIC_LIMIT = 2.0      # seconds until a counter must have its value


class Mismatch(Exception):
    """An answer, a metric or a connection that is not as the scenario says."""


def shown(reply):
    return "!%s" % reply if isinstance(reply, Error) else repr(reply)


class Stage:
    """A job's server, and the proxies that stand in front of it: one set for each set of rules, kept between
    scenarios, since starting them takes longer than most scenarios."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.server = Server(options.server, folder)
        self.sets = {}

    def proxies(self, rules, count):
        alive = [proxy for proxy in self.sets.get(rules, []) if proxy.is_running()]
        while len(alive) < count:
            alive.append(Proxy(self.options.proxy, self.server, rules, self.folder, mode=self.options.mode))
        self.sets[rules] = alive
        return alive[:count]

    def play(self, scenario, trace):
        proxies = self.proxies(scenario.rules or DEFAULT_RULES, scenario.proxies)
        player = Player(self.server, proxies, scenario.uses_metrics)
        try:
            for step in scenario.steps:
                if trace:
                    trace("   %3d %s" % (step.line, step.text))
                player.play(step)
            player.check_leftovers()
        finally:
            player.close()
            self.server.revive()
            for proxy in proxies:
                proxy.signal(signal.SIGCONT)
            changes = self.server.changes()
            if changes:
                self.server.kill()
                self.server.start()
        if changes:
            raise Mismatch("it left the server changed: %s" % ", ".join(changes)[:200])

    def end(self):
        for proxies in self.sets.values():
            for proxy in proxies:
                proxy.stop()
        self.server.kill()


class Player:
    """Plays one scenario. The method for a step is named in the step."""

    def __init__(self, server, proxies, uses_metrics):
        self.server, self.proxies = server, proxies
        # Ten characters always: scenarios with raw packets count on it.
        self.unique = "%010x" % (time.time_ns() & 0xFFFFFFFFFF)
        self.connections = {}
        self.uncounted = set()      # connections whose answers the scenario need not have read to the end
        self.before = [proxy.metrics() for proxy in proxies] if uses_metrics else None

    def play(self, step):
        try:
            getattr(self, "step_" + step.what)(**step.arguments)
        except socket.timeout:
            raise Mismatch("line %d: %s: no answer within %g s" % (step.line, step.text, ANSWER_LIMIT))
        except (Mismatch, WireError, OSError, LookupError, ValueError) as error:
            raise Mismatch("line %d: %s: %s" % (step.line, step.text, error if str(error) else repr(error)))

    def fill_in(self, words):
        return [word.replace(b"%%", self.unique.encode()) for word in words]

    def connection(self, name, via=1, resp=2, source=None):
        """The connection of that name, opened if need be. Its letter is its host: A is 127.0.0.11."""
        if name not in self.connections:
            if name == "direct":
                self.connections[name] = self.server.connect()
            else:
                source = source or "127.0.0.%d" % (ord(name[0]) - ord("A") + 11)
                self.connections[name] = self.proxies[via - 1].connect(source=source, resp=resp)
        return self.connections[name]

    def expect(self, pattern, connection, what):
        reply = connection.reply()
        if not pattern.fits(reply, self.unique):
            raise Mismatch("%s: expected %s, got %s" % (what, pattern, shown(reply)))

    # ---- steps

    def step_ask(self, name, commands, answers):
        connection = self.connection(name)
        commands = [self.fill_in(command) for command in commands]
        connection.send(b"".join(encode(*command) for command in commands))
        if len(answers) != len(commands):
            self.uncounted.add(name)
        for i, pattern in enumerate(answers):
            what = b" ".join(commands[i]).decode("utf-8", "replace") if i < len(commands) else "one more answer"
            self.expect(pattern, connection, what)

    def step_send(self, name, command):
        self.uncounted.add(name)
        self.connection(name).send(encode(*self.fill_in(command)))

    def step_read(self, name, answer):
        self.expect(answer, self.connection(name), "the next answer")

    def step_raw(self, name, data):
        self.uncounted.add(name)
        self.connection(name).send(self.fill_in([data])[0])

    def step_bytes(self, name, data):
        want = self.fill_in([data])[0]
        got = self.connection(name).take(len(want))
        if got != want:
            raise Mismatch("got the bytes %r" % got)

    def step_open(self, name, options):
        if name in self.connections:
            raise Mismatch("it is open already")
        self.connection(name, int(options.get("via", 1)), int(options.get("resp", 2)), options.get("from"))

    def step_close(self, name):
        self.connections.pop(name).close()

    def step_closed(self, name):
        if not self.connections[name].is_closed():
            raise Mismatch("it is still open")

    def step_shut(self, name):
        self.connections[name].half_close()

    def step_wait(self, duration):
        time.sleep(duration)

    def step_process(self, verb, target, number):
        process = self.server if target == "redis" else self.proxies[number - 1]
        if verb == "start":
            process.start()
        elif verb in ("pause", "resume"):
            process.signal(signal.SIGSTOP if verb == "pause" else signal.SIGCONT)
        elif verb == "stop" and target == "proxy":
            process.stop()
        else:
            process.kill()

    def step_metric(self, relation, count, selector):
        holds = {"+": float.__eq__, ">=": float.__ge__, "<=": float.__le__}[relation]
        selector = selector.replace("%%", self.unique)
        deadline = time.monotonic() + METRIC_LIMIT
        while True:
            rise = sum(metric_sum(proxy.metrics(), selector) - metric_sum(before, selector)
                       for proxy, before in zip(self.proxies, self.before))
            if holds(float(rise), float(count)):
                return
            if time.monotonic() > deadline:
                raise Mismatch("it rose by %g" % rise)
            time.sleep(0.05)

    # ---- the end

    def check_leftovers(self):
        for proxy in self.proxies:
            if not proxy.is_running():
                raise Mismatch("the proxy ended with code %s; its last words: %s" % (
                    proxy.child.returncode, proxy.last_words()))
        for name, connection in self.connections.items():
            if name not in self.uncounted and connection.pending():
                raise Mismatch("%s got more than it asked for: %r" % (name, connection.pending()[:80]))

    def close(self):
        for connection in self.connections.values():
            connection.close()


class Run:
    """All scenarios, by as many jobs as asked for."""

    def __init__(self, options, scenarios):
        self.options = options
        self.waiting = queue.SimpleQueue()
        for scenario in scenarios:
            self.waiting.put(scenario)
        self.passed, self.failures = 0, []
        self.printing = threading.Lock()

    def say(self, text):
        with self.printing:
            print(text, flush=True)

    def job(self):
        with tempfile.TemporaryDirectory(prefix="lockward-wire-") as folder:
            stage = None
            try:
                while True:
                    scenario = self.waiting.get_nowait()
                    try:
                        stage = stage or Stage(self.options, folder)
                        stage.play(scenario, self.say if self.options.v else None)
                        self.passed += 1
                        self.say("ok    %s" % scenario.path)
                    except Exception as error:      # whatever it is, it did not pass, and the rest is played
                        self.failures.append(scenario.path)
                        self.say("FAIL  %s: %s" % (scenario.path, str(error) or repr(error)))
            except queue.Empty:
                pass
            finally:
                if stage:
                    stage.end()

    def all(self):
        jobs = [threading.Thread(target=self.job) for _ in range(max(1, self.options.jobs))]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()


def scenario_files(paths, only):
    files = []
    for path in paths:
        if os.path.isdir(path):
            files += [os.path.join(folder, name) for folder, _, names in sorted(os.walk(path))
                      for name in sorted(names) if name.endswith(".wire")]
        else:
            files.append(path)
    return [file for file in files if only in file]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward", help="the proxy's program")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--mode", choices=["dedicated", "shared"], help="of the connections to the server")
    parser.add_argument("--only", default="", help="only scenarios whose path holds this text")
    parser.add_argument("--jobs", type=int, default=1, help="how many to run side by side")
    parser.add_argument("--parse", action="store_true", help="only read the scenarios")
    parser.add_argument("-v", action="store_true", help="print each step")
    parser.add_argument("paths", nargs="*", default=[os.path.relpath(os.path.join(HERE, "scenarios"))])
    options = parser.parse_args()
    try:
        scenarios = [read_scenario(file) for file in scenario_files(options.paths, options.only)]
    except (ScenarioError, OSError) as error:
        sys.exit("wire: %s" % error)
    if options.parse:
        print("%d scenarios, %d steps" % (len(scenarios), sum(len(s.steps) for s in scenarios)))
        return 0
    if not options.server:
        sys.exit("wire: no redis-server or valkey-server on PATH: use --server $(scripts/get-server)")
    run = Run(options, scenarios)
    run.all()
    print("%d passed, %d failed" % (run.passed, len(run.failures)))
    return 1 if run.failures or not run.passed else 0


if __name__ == "__main__":
    sys.exit(main())
