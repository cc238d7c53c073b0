"""lockward as a service: what it tells the service manager, sockets that are handed to it, and the Debian package under a
real systemd.
"""
import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import time

from boot import Machine
from harness.processes import free_port
from harness.resp import Connection
from run import Wrong

LIMIT = 20.0     # seconds for anything to happen
CONFIG = '[listen]\naddress = "127.0.0.1:%d"\n[admin]\naddress = "127.0.0.1:%d"\n[upstream]\nurl = "redis://127.0.0.1:1"\n'


class Watched:
    """A lockward with a service manager that listens."""

    def __init__(self, given, name, at, **variables):
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.bind("\0" + at[1:] if at.startswith("@") else at)
        self.port, self.admin = free_port(), free_port()
        config = given.scratch("notify/%s.toml" % name, CONFIG % (self.port, self.admin))
        self.child = subprocess.Popen([given.program, "--config", config], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, env=dict(os.environ, NOTIFY_SOCKET=at, **variables))

    def told(self, limit=LIMIT):
        """The next message, or None."""
        ready, _, _ = select.select([self.manager], [], [], limit)
        return self.manager.recv(4096).decode().split("\n") if ready else None

    def wait_for(self, word):
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            if word in (self.told() or []):
                return
        raise Wrong("it did not say %s" % word)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.manager.close()
        self.child.kill()
        self.child.wait()


def service_manager_is_told_all(given):
    """READY=1 when clients are taken, WATCHDOG=1 twice as often as asked for, STOPPING=1; by path and abstract name."""
    path = os.path.join(given.folder, "notify.sock")
    with Watched(given, "path", path, WATCHDOG_USEC="200000") as watched:
        first = watched.told()
        if not first or first[0] != "READY=1" or "STATUS=serves clients on 127.0.0.1:%d" % watched.port not in first:
            raise Wrong("first it said %r" % first)
        Connection(watched.port).close()
        begun, fed = time.monotonic(), 0
        while time.monotonic() < begun + 1:
            fed += watched.told() == ["WATCHDOG=1"]
        # The manager wants five; more than eleven would be a loop.
        if not 5 <= fed <= 11:
            raise Wrong("fed %d times in a second, with 200 ms asked for" % fed)
        watched.child.send_signal(signal.SIGTERM)
        watched.wait_for("STOPPING=1")
        if watched.child.wait(LIMIT) != 0:
            raise Wrong("it ended with %d" % watched.child.returncode)
    name = "@lockward-test-%d" % os.getpid()
    # The watchdog of somebody else is not fed.
    with Watched(given, "name", name, WATCHDOG_USEC="100000", WATCHDOG_PID="1") as watched:
        watched.wait_for("READY=1")
        if watched.told(0.5) is not None:
            raise Wrong("it fed a watchdog that is not its own")
    return "fed %d times in a second" % fed


def another_process_is_announced(given):
    """A reload is told; an upgrade makes another process the main one, which says READY=1 itself and feeds the watchdog."""
    path = os.path.join(given.folder, "upgrade.sock")
    with Watched(given, "upgrade", path, WATCHDOG_USEC="60000000") as watched:
        watched.wait_for("READY=1")
        watched.child.send_signal(signal.SIGHUP)
        watched.wait_for("RELOADING=1")
        watched.wait_for("READY=1")
        watched.child.send_signal(signal.SIGUSR2)
        deadline, main = time.monotonic() + LIMIT, None
        while main is None and time.monotonic() < deadline:
            main = next((int(line[len("MAINPID="):]) for line in watched.told() or [] if line.startswith("MAINPID=")), None)
        if main in (None, watched.child.pid):
            raise Wrong("no other process was announced")
        try:
            watched.wait_for("READY=1")
            watched.wait_for("WATCHDOG=1")
            if watched.child.wait(LIMIT) != 0:
                raise Wrong("the old one ended with %d" % watched.child.returncode)
            Connection(watched.port).close()
        finally:
            os.kill(main, signal.SIGKILL)
    return "process %d after %d" % (main, watched.child.pid)


@contextlib.contextmanager
def activated(given, *listen, names="clients", datagram=False):
    """A lockward that systemd-socket-activate starts as soon as somebody connects."""
    activate = os.path.join(os.path.dirname(given.tool("systemd-analyze")), "systemd-socket-activate")
    # Checks run side by side, so each has its own files.
    port = free_port()
    config = given.scratch("activated-%d.toml" % port, CONFIG % (port, free_port()))
    log = open(os.path.join(given.folder, "activated-%d.log" % port), "w+")
    child = subprocess.Popen([activate, *(["--datagram"] if datagram else []), *("--listen=" + place for place in listen),
                              "--fdname=" + names, given.program, "--config", config], stdout=log, stderr=log)
    try:
        yield child, log
    finally:
        child.kill()
        child.wait()
        log.close()


def reach(address):
    """A connection to what listens there soon."""
    deadline = time.monotonic() + LIMIT
    while True:
        try:
            return Connection(address, limit=LIMIT)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def knock(address, child):
    """Connects until the program behind the socket has started and ended; its exit code. It may end before a connection
    is made, and nothing listens then."""
    deadline = time.monotonic() + LIMIT
    while child.poll() is None:
        try:
            Connection(address, limit=LIMIT).close()
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise Wrong("it did not end")
        time.sleep(0.02)
    return child.returncode


def sockets_are_taken_over(given):
    """A TCP socket, and one for HTTP beside it; a unix socket, which stays when lockward ends."""
    port, admin = free_port(), free_port()
    with activated(given, "127.0.0.1:%d" % port, "127.0.0.1:%d" % admin, names="clients:admin"):
        with reach(port) as client:
            said = [str(client.ask("PING"))]
        given.lockward("health", "--live", "--admin", "127.0.0.1:%d" % admin)
    path = os.path.join(given.folder, "activated.sock")
    with activated(given, path) as (child, _):
        with reach(path) as client:
            said.append(str(client.ask("PING")))
        child.send_signal(signal.SIGTERM)
        if child.wait(LIMIT) != 0 or not os.path.exists(path):
            raise Wrong("ended with %d; the socket is there: %s" % (child.returncode, os.path.exists(path)))
    # There is no server behind it.
    if not all("UPSTREAM" in answer for answer in said):
        raise Wrong("clients were told %s" % said)
    return "TCP, HTTP, unix"


def sockets_that_cannot_be_meant_are_refused(given):
    """Two for clients, and one for HTTP that is no TCP socket: an end with a line that says so."""
    ports = [free_port(), free_port()]
    path = os.path.join(given.folder, "refused.sock")
    for listen, names, words in ((["127.0.0.1:%d" % port for port in ports], "a:b", "two sockets for clients"),
                                 ([path], "admin", "HTTP is served on TCP only")):
        with activated(given, *listen, names=names) as (child, log):
            code = knock(path if listen == [path] else ports[0], child)
            log.seek(0)
            said = log.read()
            if code != 1 or words not in said:
                raise Wrong("ended with %d, said %s" % (code, said[-300:]))
    return "2 kinds"


# ---- under a real systemd -----------------------------------------------------------------

def package_installs_runs_in_its_sandbox_and_goes(given):
    """dpkg -i, the service under its unit with a server behind it, socket activation, reload, a hung process, an upgrade,
    dpkg --purge: in a machine of namespaces."""
    with Machine(given) as machine:
        machine.run("dpkg", "-i", given.package())
        machine.wait_for("the service", lambda: machine.state("ActiveState") == "active")
        if machine.run("systemctl", "is-enabled", "lockward").strip() != "enabled":
            raise Wrong("it is not enabled")
        exposure = machine.run("systemd-analyze", "security", "--no-pager", "lockward.service")
        exposure = re.search(r"Overall exposure level.*?: (.*)", exposure).group(1)
        if " OK" not in exposure:
            raise Wrong("systemd finds it exposed: " + exposure)
        confined(machine)
        locks(machine)
        read_again(machine)
        upgraded(machine)
        by_socket(machine)
        kept_alive(machine)
        changed(machine, given.package())
        left = gone(machine)
    return "exposure %s; %s" % (exposure.strip(), left)


def confined(machine):
    """The process as it is: no rights, a filter, no way to get more, a user of its own."""
    pid = machine.state("MainPID")
    status = machine.run("cat", "/proc/%s/status" % pid)
    for line in ("CapBnd:\t0000000000000000", "CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"):
        if line not in status:
            raise Wrong("the process is not as closed as its unit says: no %r" % line)
    if re.search(r"^Uid:\t0", status, re.M):
        raise Wrong("it runs as root")
    inside = machine.run("nsenter", "-t", pid, "-m", "sh", "-c", "touch /etc/x /var/x /usr/x 2>&1; true")
    if inside.count("Read-only file system") != 3:
        raise Wrong("it could write: " + inside)
    machine.run("systemd-analyze", "verify", "lockward.service", "lockward.socket")
    # Nobody can give more than he has.
    files, most = (int(re.search(r"Max open files.* (\d+) +files", machine.run("cat", "/proc/%s/limits" % number)).group(1))
                   for number in (pid, 1))
    if files < min(65536, most):
        raise Wrong("it may open %d files" % files)


def locks(machine):
    """Locks through the service, with rules and secrets from /etc/default/lockward."""
    machine.serve()
    machine.write("/etc/default/lockward", "LOCKWARD_LOCKS__0__MODE=enforce\nLOCKWARD_LOCKS__0__OWNER=process\n"
                  "LOCKWARD_UPSTREAM__URL=redis://localhost:6379\nLOCKWARD_ADMIN__TOKEN=%s\n" % machine.token)
    machine.run("systemctl", "restart", "lockward")
    machine.run("lockward", "health")
    machine.says("6380", "SET lock:a 1 NX EX 60", "OK")
    machine.says("6380", "DEL lock:a", "0")         # another connection, so another owner
    machine.run("lockward", "release", "lock:a", "--token", machine.token)
    machine.says("6380", "DEL lock:a", "0")
    machine.says("6380", "EXISTS lock:a", "0")
    metrics = machine.run("lockward", "locks", "-o", "json")
    if "lock:a" in metrics:
        raise Wrong("the lock is still shown")


def read_again(machine):
    """systemctl reload: a file with a slip changes nothing and is named in the journal, a good one is in force."""
    path = "/etc/lockward/lockward.toml"
    good = machine.run("cat", path)
    for text, words in ((good + "slip = 1\n", "nothing has changed: "),
                        (good + '[log]\nlevel = "debug"\n', "the configuration was reloaded: ")):
        machine.write(path, text)
        machine.run("systemctl", "reload", "lockward")
        machine.wait_for(words, lambda said=words: said in machine.run("journalctl", "--no-pager", "-u", "lockward"))
    machine.write(path, good)
    machine.run("systemctl", "reload", "lockward")
    if machine.state("ActiveState") != "active":
        raise Wrong("a reload ended it")


def upgraded(machine):
    """Another process takes the place of the main one inside the service; systemd knows it, and looks after it."""
    before = machine.state("MainPID")
    machine.run("systemctl", "kill", "--signal=USR2", "--kill-whom=main", "lockward")
    machine.wait_for("another main process", lambda: machine.state("MainPID") not in (before, "0"))
    machine.wait_for("the end of the old one", lambda: not machine.exists("/proc/" + before))
    if machine.state("ActiveState") != "active":
        raise Wrong("after an upgrade the service is " + machine.state("ActiveState"))
    machine.run("lockward", "health")
    after = machine.state("MainPID")
    machine.run("kill", "-KILL", after)
    machine.wait_for("a restart", lambda: machine.state("ActiveState") == "active" and
                     machine.state("MainPID") not in (after, "0"))


def by_socket(machine):
    """The socket unit with a unix socket: the first client starts the service, which sees the process there."""
    path = "/run/lockward.sock"
    machine.write("/etc/systemd/system/lockward.socket.d/unix.conf",
                  "[Socket]\nListenStream=\nListenStream=%s\nSocketMode=0666\n" % path)
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "stop", "lockward.service")
    machine.run("systemctl", "start", "lockward.socket")
    if machine.state("ActiveState") != "inactive":
        raise Wrong("the service does not wait for a client")
    machine.says(path, "SET lock:b 1 NX EX 60", "OK")
    machine.says(path, "DEL lock:b", "0")           # another process
    who = machine.ask(path, "LOCKWARD WHOAMI")
    if "process" not in who:
        raise Wrong("over a unix socket it sees %s" % who)
    machine.run("systemctl", "stop", "lockward.socket", "lockward.service")
    machine.run("rm", "-r", "/etc/systemd/system/lockward.socket.d")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "lockward")


def kept_alive(machine):
    """A process that hangs is ended by the watchdog and started again."""
    machine.write("/run/systemd/system/lockward.service.d/soon.conf", "[Service]\nWatchdogSec=1s\nTimeoutAbortSec=1s\n")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", "lockward")
    before = machine.state("MainPID")
    time.sleep(1.5)
    if machine.state("MainPID") != before:
        raise Wrong("the watchdog ends a service that is well")
    machine.run("kill", "-STOP", before)
    machine.wait_for("a new process", lambda: machine.state("ActiveState") == "active" and
                     machine.state("MainPID") not in (before, "0"))
    machine.run("rm", "-r", "/run/systemd/system/lockward.service.d")
    machine.run("systemctl", "daemon-reload")


def changed(machine, package):
    """The same version once more: what the operator changed stays, and the service is a new process."""
    before = machine.state("MainPID")
    machine.run("dpkg", "-i", package)
    machine.wait_for("a restart", lambda: machine.state("ActiveState") == "active" and machine.state("MainPID") != before)
    if machine.token not in machine.run("cat", "/etc/default/lockward"):
        raise Wrong("an upgrade lost what stood in /etc/default/lockward")
    machine.run("systemctl", "stop", "lockward")
    if machine.state("Result") != "success":
        raise Wrong("it did not end well: %s" % machine.state("Result"))
    machine.run("systemctl", "start", "lockward")


def gone(machine):
    """After a removal the configuration stays, after a purge nothing does."""
    pid = machine.state("MainPID")
    machine.run("dpkg", "-r", "lockward")
    if machine.exists("/proc/" + pid) or machine.exists("/usr/bin/lockward"):
        raise Wrong("it still runs, or is there, after its removal")
    if not machine.exists("/etc/lockward/lockward.toml"):
        raise Wrong("a removal took the configuration with it")
    machine.run("dpkg", "--purge", "lockward")
    machine.run("systemctl", "reset-failed")
    left = [path for path in machine.run(
        "find", "/etc", "/usr", "/var", "/run", "/lib/systemd", "-xdev", "-iname", "*lockward*",
        "-not", "-path", "/var/log/*", "-not", "-path", "/var/cache/man/*").split() if not path.startswith(machine.shared)]
    if left:
        raise Wrong("a purge leaves %s" % " ".join(left))
    units = machine.run("systemctl", "list-units", "--all", "--plain", "--no-legend", "lockward*").strip()
    if units:
        raise Wrong("systemd still knows %s" % units)
    return "nothing left"


SLOW = [package_installs_runs_in_its_sandbox_and_goes]
CHECKS = [service_manager_is_told_all, another_process_is_announced, sockets_are_taken_over,
          sockets_that_cannot_be_meant_are_refused]
