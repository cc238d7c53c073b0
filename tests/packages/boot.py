"""A machine of its own for installing a package: this one's files with everything that is written kept in memory, in
namespaces, with systemd as the first process (boot.sh). Needs root, util-linux and systemd; no container engine, no image.
"""
import os
import re
import shutil
import subprocess
import sys
import time

from harness import marks
from run import Impossible, Wrong

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 60.0     # seconds for anything to happen
SYSTEMD = ("/usr/lib/systemd/systemd", "/lib/systemd/systemd")
# One place in the kernel's tree of control groups, for systemd to make its own below.
GROUP = """
set -e
mount --make-rprivate /
mount -t cgroup2 cgroup2 "$1"
mkdir -p "$1/$2"
echo $$ >"$1/$2/cgroup.procs"
umount "$1"
shift 2
exec "$@"
"""
# The processes below it are gone; so are their groups, once each is removed, the innermost first.
FORGET = """
mount --make-rprivate /
mount -t cgroup2 cgroup2 "$1"
find "$1/$2" -depth -type d -exec rmdir {} +
"""


class Machine:
    """The machine, while its `with` block runs."""

    token = marks.ADMIN_TOKEN

    def __init__(self, given):
        if os.geteuid() != 0:
            raise Impossible("installing a package needs root")
        given.tool("systemd-analyze")
        systemd = next((path for path in SYSTEMD if os.path.exists(path)), None)
        for tool in ("unshare", "nsenter", "setpriv", "pivot_root", "dpkg", "ip"):
            if not shutil.which(tool):
                raise Wrong("there is no %s on this machine" % tool)
        if not systemd:
            raise Wrong("there is no systemd on this machine")
        self.given, self.shared = given, given.folder
        self.space, self.groups = (os.path.join(given.folder, name) for name in ("space", "groups"))
        self.group = "lockward-test-%d" % os.getpid()
        for folder in (self.space, self.groups):
            os.mkdir(folder)
        self.try_the_place()
        self.log = open(os.path.join(given.folder, "boot.log"), "w+")
        # The program of the server, and what asks it, may lie on another file system than the rest.
        shown = {os.path.dirname(os.path.abspath(given.server)), given.path("tests"), sys.base_prefix, given.folder}
        root = os.stat("/").st_dev
        shown = [path for path in shown if os.stat(path).st_dev != root or path.startswith("/tmp/")]
        self.outer = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", GROUP, "sh", self.groups, self.group,
             "unshare", "--mount", "--pid", "--fork", "--kill-child", "--cgroup", "--uts", "--ipc", "--net",
             "sh", os.path.join(HERE, "boot.sh"), self.space, systemd, *shown],
            stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        self.server = None
        try:
            self.wait_for("systemd", self.is_up)
            self.run("ip", "link", "set", "lo", "up")
        except BaseException:
            self.__exit__()
            raise

    def try_the_place(self):
        """Whether namespaces can be had here, and a file system over the one that is there."""
        overlay = 'mount -t tmpfs tmpfs "$1" && mkdir "$1/a" "$1/b" "$1/c" && ' \
                  'mount -t overlay -o "lowerdir=/,upperdir=$1/a,workdir=$1/b" overlay "$1/c"'
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", GROUP, "sh", self.groups, self.group,
             "unshare", "--mount", "--pid", "--fork", "--kill-child", "--cgroup", "--uts", "--ipc", "--net",
             "sh", "-c", overlay, "sh", self.space],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=60)
        if done.returncode != 0:
            raise Impossible("this place allows no namespaces to install it in: %s" % done.stdout.strip()[-300:])

    def first(self):
        """The number of its first process, as this machine counts."""
        with open("/proc/%d/task/%d/children" % (self.outer.pid, self.outer.pid)) as children:
            return children.read().split()[0]

    def is_up(self):
        if self.outer.poll() is not None:
            self.log.seek(0)
            raise Wrong("the machine did not start: %s" % self.log.read()[-500:])
        try:
            first = self.first()
            with open("/proc/%s/comm" % first) as name:
                if name.read().strip() != "systemd":
                    return False
        except (OSError, IndexError):
            return False
        said = subprocess.run(self.inside("systemctl", "is-system-running"), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True).stdout.strip()
        return said in ("running", "degraded")

    def inside(self, *command):
        """A command, to be run in the machine, with its own search path."""
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return ["nsenter", "--target", self.first(), "--all", "env", "-i", path, "LC_ALL=C.UTF-8", *command]

    def run(self, *command):
        try:
            return self.given.run(*self.inside(*command))
        except Wrong as error:
            journal = subprocess.run(self.inside("journalctl", "--no-pager", "-n", "15"), stdout=subprocess.PIPE, text=True)
            raise Wrong("%s\nthe journal:\n%s" % (error, journal.stdout)) from error

    def exists(self, path):
        return subprocess.run(self.inside("test", "-e", path)).returncode == 0

    def write(self, path, text):
        self.run("mkdir", "-p", os.path.dirname(path))
        subprocess.run(self.inside("sh", "-c", 'cat >"$1"', "sh", path), input=text, text=True, check=True)

    def state(self, name):
        """A property of the service."""
        return self.run("systemctl", "show", "--value", "--property", name, "lockward.service").strip()

    def wait_for(self, what, holds):
        deadline = time.monotonic() + LIMIT
        while not holds():
            if time.monotonic() > deadline:
                raise Wrong("%s did not come" % what)
            time.sleep(0.05)

    def serve(self):
        """A server at its usual port."""
        self.server = subprocess.Popen(self.inside(os.path.abspath(self.given.server), "--port", "6379", "--save", "",
                                                   "--dir", "/"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for("the server", lambda: "PONG" in self.ask("6379", "PING"))

    def ask(self, address, command):
        """What a client in there, in a process of its own, is answered."""
        done = subprocess.run(self.inside(sys.executable, "-B", os.path.join(HERE, "ask.py"), address, *command.split()),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
        return done.stdout.strip()

    def says(self, address, command, expected):
        said = self.ask(address, command)
        if said != expected:
            raise Wrong("%s: expected %s, got %s" % (command, expected, re.sub(r"\s+", " ", said)[-300:]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # All its processes end with the first one.
        self.outer.kill()
        self.outer.wait()
        if self.server:
            self.server.wait()
        self.log.close()
        deadline = time.monotonic() + LIMIT
        while subprocess.run(["unshare", "--mount", "sh", "-c", FORGET, "sh", self.groups, self.group],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
