"""What scripts/get-server and scripts/get-tool share: a cache that several may fill at once, and words on what went wrong.

It decides nothing about what is fetched, and from where.
"""
import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))


class Unavailable(Exception):
    """Something could not be had; the text says why and what would help."""


def say(text):
    print("%s: %s" % (os.path.basename(sys.argv[0]), text), file=sys.stderr, flush=True)


def run(*command, **options):
    """Runs a command quietly; its output becomes part of the complaint when it fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              text=True, errors="replace", **options)
    except OSError as error:
        raise Unavailable("%s: %s" % (command[0], error.strerror))
    if done.returncode != 0:
        last = " / ".join(line.strip() for line in done.stdout.strip().splitlines()[-4:])
        raise Unavailable("%s failed: %s" % (" ".join(command[:4]), last or "code %d" % done.returncode))
    return done.stdout


class Cache:
    """The folder in LOCKWARD_CACHE, else `.cache/KIND` beside the folder of the scripts."""

    def __init__(self, kind):
        self.folder = os.path.abspath(os.environ.get("LOCKWARD_CACHE") or os.path.join(HERE, "..", ".cache", kind))

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    @contextlib.contextmanager
    def locked(self):
        """For one at a time: the others wait, and look again before they fetch."""
        try:
            os.makedirs(self.folder, exist_ok=True)
            lock = open(self.path("lock"), "w")
        except OSError as error:
            raise Unavailable("cannot write the cache %s: %s (LOCKWARD_CACHE names another)" % (
                self.folder, error.strerror))
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def fill(self, name, fetch, check):
        """Puts what `fetch(folder, target)` makes of an empty folder into the cache as `name`, if `check(target)` does
        not complain. It appears there whole, by a rename, or not at all."""
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="tmp-") as folder:
            target = os.path.join(folder, "target")
            os.mkdir(target, 0o755)
            fetch(folder, target)
            check(target)
            shutil.rmtree(self.path(name), ignore_errors=True)
            os.rename(target, self.path(name))
