"""Processes that end with the one that started them, however that one ends: also when it was killed.

They are one process group, and its leader, the keeper, waits for the end of a pipe that only their parent holds open.
Whatever they start themselves belongs to the group too. It does not know what any of them is.
"""
import contextlib
import glob
import signal
import subprocess
import sys
import time

PATIENCE = 10.0     # seconds until a killed process must have ended
PYTHON = [sys.executable, "-I", "-S", "-c"]
KEEP = """
import os, sys
os.setpgid(0, 0)
print("ready", flush=True)
sys.stdin.read()
os.killpg(0, 9)
"""
# Who joins when the pipe's end is closed already may have come too late to be killed.
JOIN = """
import os, select, sys
try:
    os.setpgid(0, int(sys.argv[1]))
    poll = select.poll()
    poll.register(os.open("/proc/%s/fd/0" % sys.argv[1], os.O_RDONLY | os.O_NONBLOCK), 0)
    if poll.poll(0):
        sys.exit(1)
except OSError:
    sys.exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""


class Group:
    """At its end all are killed, and nobody is asked."""

    def __init__(self):
        self.keeper = subprocess.Popen(PYTHON + [KEEP], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.keeper.stdout.readline()

    def member(self, command):
        """That command as one of the group: with the same process id, as soon as it runs."""
        return PYTHON + [JOIN, str(self.keeper.pid), *command]

    def end(self):
        self.keeper.stdin.close()
        self.keeper.wait()
        self.keeper.stdout.close()
        # Some are nobody's child by now, and may be creating a file yet.
        deadline = time.monotonic() + PATIENCE
        while any(self.running()) and time.monotonic() < deadline:
            time.sleep(0.01)

    def running(self):
        """For each process whether it is one of the group that has not ended."""
        for path in glob.glob("/proc/[0-9]*/stat"):
            with contextlib.suppress(OSError), open(path) as stat:
                state, _, group = stat.read().rpartition(")")[2].split()[:3]
                yield int(group) == self.keeper.pid and state not in "ZX"


def end_orderly():
    """From now on SIGTERM ends this program as Ctrl-C does, closing what is open. A second one does not disturb that."""
    def ended(number, _):
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)
    signal.signal(signal.SIGTERM, ended)
