#!/usr/bin/env python3
"""No program of this folder leaves anything behind, however it is ended: no process, and no folder unless it was killed.

    tests/chaos/endings.py --proxy PATH --server PATH
"""
import glob
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
from harness.checking import Check      # noqa: E402
from scene import known                 # noqa: E402

LIMIT = 30.0        # seconds until a program must be at work, and until all of it must be gone
# What is started, what it must have started before it is ended, and by which signals it is.
RUN = ["run.py", "--seconds", "100", "--faults", "upgrade", "--every", "1"]
CASES = (
    (RUN, "a second lockward", (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)),
    (["series.py", "--minutes", "4", "--jobs", "2"], "clients", (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)),
    (["baseline.py", "--seconds", "100"], "clients", (signal.SIGTERM,)),
    (["planted.py", "--only", "nothing planted"], "clients", (signal.SIGKILL,)),
)


class Seen:
    """One process, as the system has it."""

    def __init__(self, pid):
        with open("/proc/%d/stat" % pid) as stat:
            words = stat.read().rpartition(")")[2].split()
        with open("/proc/%d/cmdline" % pid, "rb") as line:
            self.words = os.fsdecode(line.read()).split("\0")
        self.pid, self.state, self.parent, self.group, self.begun = pid, words[0], int(words[1]), int(words[2]), words[19]

    def is_running(self, child):
        """Whether it still is, and is no other with its number. `child` is waited for if it has ended."""
        try:
            child.poll()
            now = Seen(self.pid)
        except OSError:
            return False
        return now.begun == self.begun and now.state not in "ZX"


def processes():
    found = {}
    for path in glob.glob("/proc/[0-9]*"):
        try:
            found[int(path[6:])] = Seen(int(path[6:]))
        except OSError:
            pass
    return found


def started_by(top):
    """All that this process has started, and what these have: by parents, and by the groups of those."""
    found, mine = processes(), {top}
    for _ in range(6):
        mine |= {pid for pid, seen in found.items() if seen.parent in mine}
    groups = {found[pid].group for pid in mine if pid in found} - {os.getpgrp()}
    return [seen for pid, seen in found.items() if pid in mine or seen.group in groups]


def is_at_work(seen, what, proxy):
    if what == "clients":
        return sum(any(word.endswith("client.py") for word in one.words) for one in seen) >= 4
    serving = {one.pid: one for one in seen if os.path.realpath(one.words[0]) == os.path.realpath(proxy)}
    upgraded = [one for one in serving.values() if one.parent in serving or one.parent == 1]
    return len(upgraded) > 0


def ended(check, options, command, what, number):
    name = "%s and %s" % (command[0], number.name)
    with tempfile.TemporaryDirectory(prefix="lockward-endings-") as folder, open(os.path.join(folder, "said"), "w") as said:
        inside = os.path.join(folder, "tmp")
        os.mkdir(inside)
        child = subprocess.Popen(
            [sys.executable, os.path.join(HERE, command[0]), *command[1:], "--proxy", options.proxy, "--server", options.server],
            stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=dict(os.environ, TMPDIR=inside))
        try:
            deadline = time.monotonic() + LIMIT
            while not is_at_work(seen := started_by(child.pid), what, options.proxy):
                if time.monotonic() > deadline or child.poll() is not None:
                    check(name + ": it is at work", False, True)
                    return
                time.sleep(0.05)
            child.send_signal(number)
            check.until(name + ": nothing runs any more", lambda: [one.words for one in seen if one.is_running(child)], [])
        finally:
            for one in seen:
                if one.is_running(child):
                    os.kill(one.pid, signal.SIGKILL)
            child.wait()
        if number != signal.SIGKILL:
            left = glob.glob(os.path.join(inside, "**"), recursive=True)[1:]
            check(name + ": no folder is left", left, [])
            if left:
                with open(said.name) as text:
                    print(text.read()[-2000:])


def main():
    options = known(__doc__).parse_args()
    check = Check("endings", limit=LIMIT)
    for command, what, numbers in CASES:
        for number in numbers:
            ended(check, options, command, what, number)
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
