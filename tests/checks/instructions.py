#!/usr/bin/env python3
"""How many instructions a request costs lockward, against what it cost when somebody last wrote it down.

    tests/checks/instructions.py --server PATH [--valgrind PATH] [--only TEXT] [--update]

Counts by callgrind, which counts and does not time, so that a busy machine changes nothing; the kernel's part is not in
it. Twice: the core alone (benches/core.rs: one session without sockets), which gives the same count each time, to the
instruction; and the release program between 50 clients and a server, where the count varies by some parts in a hundred
with how many requests one wake-up finds. instructions.toml holds the counts and how far above them is a failure. Where
another compiler than the one named there built the programs, the bounds are wider, and this says so.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]
from harness.measuring import TOP, Failed, Load, build          # noqa: E402
from harness.processes import DEFAULT_RULES, Proxy, Server      # noqa: E402

FILE = os.path.join(HERE, "instructions.toml")
TURNS = 500             # of the core; twice as many in a second run, and the difference counts
REQUESTS, LOCK_REQUESTS = 8000, 2000     # of the whole program, in each of ROUNDS
WARM_UP = 1000
ROUNDS = 3
OTHER_COMPILER = 15     # per cent that a count may grow by where another compiler built the programs


class Counted(Proxy):
    """lockward under callgrind, with one worker. `count` is what it did since the last time."""

    def __init__(self, valgrind, *arguments, **options):
        self.valgrind = valgrind
        super().__init__(*arguments, workers=1, **options)

    def command(self):
        self.counts, self.pipe = os.path.join(self.folder, "counts"), os.path.join(self.folder, "vgdb")
        return [self.valgrind, "--tool=callgrind", "--callgrind-out-file=" + self.counts,
                "--vgdb-prefix=" + self.pipe] + super().command()

    def count(self):
        for name in os.listdir(self.folder):
            if name.startswith("counts"):
                os.remove(os.path.join(self.folder, name))
        vgdb = os.path.join(os.path.dirname(self.valgrind), "vgdb")
        done = subprocess.run([vgdb, "--vgdb-prefix=" + self.pipe, "--pid=%d" % self.child.pid, "dump"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                              timeout=60)
        files = [name for name in os.listdir(self.folder) if name.startswith("counts.")]
        if done.returncode != 0 or len(files) != 1:
            raise Failed("vgdb had no count: %s" % done.stdout.strip()[-200:])
        with open(os.path.join(self.folder, files[0])) as dump:
            return int(re.search(r"^totals: (\d+)", dump.read(), re.M).group(1))


def rustc():
    words = subprocess.run(["rustc", "--version"], cwd=TOP, stdout=subprocess.PIPE, text=True, check=True).stdout
    return words.split()[1]


def empty(server):
    with server.connect() as connection:
        connection.ask("FLUSHALL")


def core(options, programs, server, mode, shape):
    """Instructions of a turn of the core."""
    totals = []
    for turns in (TURNS, 2 * TURNS):
        empty(server)
        done = subprocess.run([options.valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null", programs["core"],
                               str(server.port), mode, shape, str(turns)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        match = re.search(r"Collected : (\d+)", done.stdout)
        if done.returncode != 0 or not match:
            raise Failed(done.stdout.strip()[-300:])
        totals.append(int(match.group(1)))
    return (totals[1] - totals[0]) / TURNS


def end_to_end(programs, proxy, shape):
    """Instructions of the whole program for each request, or for each cycle of two."""
    operation, pipeline = shape.split("-")
    shared = dict(operation=operation, pipeline=pipeline, clients=50, keys=WARM_UP)
    counts, number = [], REQUESTS if operation == "get" else LOCK_REQUESTS
    with Load(programs["load"], proxy.port, requests=WARM_UP, **shared) as load:
        load.run()
    for seed in range(ROUNDS):
        with Load(programs["load"], proxy.port, requests=number, seed=seed + 1, **shared) as load:
            proxy.count()
            requests = load.run()["requests"]
            counts.append(proxy.count() / requests * (2 if operation == "cycle" else 1))
    return statistics.median(counts)


class Check:
    """Compares with the file, counts and prints."""

    def __init__(self, options):
        self.only, self.passed, self.failed, self.measured = options.only, 0, 0, {}
        with open(FILE, "rb") as file:
            self.written = tomllib.load(file)
        self.compiler = rustc()

    def wants(self, part, mode):
        """The shapes that the file has of this part and mode, and that are asked for."""
        return [shape for shape in self.written[part].get(mode, {}) if self.only in self.name(part, mode, shape)]

    def name(self, part, mode, shape):
        return "%s, %s, %s" % (part.replace("_", " "), mode, shape)

    def __call__(self, part, mode, shape, measure):
        name, bounds = self.name(part, mode, shape), self.written[part]
        limit = self.written.get("limits", {}).get(part, {}).get(mode, {}).get(shape)
        wanted, percent = bounds[mode][shape], bounds["percent"]
        if self.compiler != self.written["rustc"]:
            percent = max(percent, OTHER_COMPILER)
        most = wanted * (1 + percent / 100)
        try:
            got = measure()
            # How many requests one wake-up finds is chance: what counts is the lowest of three.
            for _ in range(2 if part == "end_to_end" else 0):
                if got > min(most, limit or most):
                    got = min(got, measure())
        except (Failed, OSError, subprocess.TimeoutExpired) as error:
            return self.say(False, "%s: %s" % (name, error))
        self.measured[part, mode, shape] = round(got)
        text = "%s: %.0f instructions, written down %d (%+.1f %%)" % (name, got, wanted, 100 * (got / wanted - 1))
        if got > most:
            return self.say(False, "%s: at most %d %% more" % (text, percent))
        if limit is not None and got > limit:
            return self.say(False, "%s: at most %d whatever is written down" % (text, limit))
        if got < wanted * (1 - bounds["percent"] / 100):
            text += "; less than before: write the lower count down (--update), so that it is kept"
        return self.say(True, text)

    def say(self, good, text):
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        print("%s  %s" % ("ok  " if good else "FAIL", text), flush=True)

    def update(self):
        """Writes what was measured into the file; limits stay."""
        part = mode = None
        lines = []
        with open(FILE) as file:
            for line in file.read().splitlines():
                section = re.match(r"\[([\w.]+)\]", line)
                count = re.match(r'"?([a-z]+-\d+)"? = \d+', line)
                if section:
                    part, mode = (section.group(1).split(".") + [None])[:2]
                elif count and (part, mode, count.group(1)) in self.measured:
                    line = '%s = %d' % (count.group(1), self.measured[part, mode, count.group(1)])
                elif line.startswith("rustc = "):
                    line = 'rustc = "%s"' % self.compiler
                lines.append(line)
        with open(FILE, "w") as file:
            file.write("\n".join(lines) + "\n")


def play(options, programs, check):
    with tempfile.TemporaryDirectory(prefix="lockward-instructions-") as folder, \
            Server(options.server, folder) as server:
        for mode in ("dedicated", "shared"):
            for shape in check.wants("core", mode):
                check("core", mode, shape, lambda: core(options, programs, server, mode, shape))
        empty(server)
        with Load(programs["load"], server.port, operation="fill", keys=WARM_UP) as load:
            load.run()
        for mode in ("dedicated", "shared"):
            if not check.wants("end_to_end", mode):
                continue
            with Counted(options.valgrind, programs["lockward"], server, DEFAULT_RULES, folder, mode=mode) as proxy:
                for shape in check.wants("end_to_end", mode):
                    check("end_to_end", mode, shape, lambda: end_to_end(programs, proxy, shape))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", default=shutil.which("redis-server"))
    parser.add_argument("--valgrind", default=shutil.which("valgrind"))
    parser.add_argument("--only", default="", help="only counts whose names hold this text")
    parser.add_argument("--update", action="store_true", help="write what is measured into instructions.toml")
    options = parser.parse_args()
    if not options.server:
        sys.exit("instructions: no redis-server on PATH: use --server $(scripts/get-server redis)")
    if not options.valgrind:
        sys.exit("instructions: no valgrind on PATH: use --valgrind $(scripts/get-tool valgrind)")
    try:
        programs = build("core", "load")
    except Failed as error:
        sys.exit("instructions: %s" % error)
    check = Check(options)
    if check.compiler != check.written["rustc"]:
        print("rustc is %s and the counts were written down with %s: %d %% more are allowed" % (
            check.compiler, check.written["rustc"], OTHER_COMPILER))
    play(options, programs, check)
    if options.update:
        check.update()
    print("%d passed, %d failed" % (check.passed, check.failed))
    return 1 if check.failed or not check.passed else 0


if __name__ == "__main__":
    sys.exit(main())
