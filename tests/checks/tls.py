#!/usr/bin/env python3
"""lockward with TLS on both sides, in front of a server that speaks TLS itself: who gets in and who does not, large
pipelines both ways, half-closed connections, locks, clients that go on while certificates are given out anew, and a
sentinel that speaks TLS and gives host names.

    tests/checks/tls.py --proxy PATH --server PATH

The server must be built with TLS (Debian's is). Certificates are made here by the openssl command, clients are Python's
ssl, redis-py and ioredis (the lock programs of tests/clients), and redis-cli, if that is there.
"""
import argparse
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "clients")]
from harness.installing import Broken                               # noqa: E402
from harness.papers import Papers                                   # noqa: E402
from harness.processes import Process, Proxy, Server, free_port     # noqa: E402
from harness.resp import Connection, WireError, encode, metric_sum  # noqa: E402
from run import commands, steps_of, unexpected                        # noqa: E402

VALUE = os.urandom(1 << 20)
RULES = '[[locks]]\nname = "jobs"\npattern = "lock:*"\nowner = "connection"\n'
LIBRARIES = ("redis_py_lock.py", "ioredis_lock.js")
LIBRARY_RULES = '[[locks]]\nname = "clients"\npattern = ["lock:*", "lock-signal:*"]\nowner = "address"\n'
LIMIT = 10


class TlsConnection(Connection):
    """A connection over TLS."""

    def __init__(self, port, papers, shows=None, version=None):
        super().__init__(port, limit=LIMIT)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(papers.ca)
        if shows:
            context.load_cert_chain(*shows)
        if version:
            context.minimum_version = context.maximum_version = version
        try:
            self.sock = context.wrap_socket(self.sock, server_hostname="localhost", suppress_ragged_eofs=False)
        except OSError:
            self.sock.close()
            raise


class TlsServer(Server):
    """A server that speaks TLS at a second port, and wants a certificate there."""

    def __init__(self, program, folder, papers):
        self.tls_port = free_port()
        certificate, key = papers.sign("server")
        super().__init__(program, folder, arguments=[
            "--tls-port", str(self.tls_port), "--tls-cert-file", certificate, "--tls-key-file", key,
            "--tls-ca-cert-file", papers.ca, "--tls-auth-clients", "yes"])


class TlsSentinel(Process):
    """A sentinel that speaks TLS at one port and not at another, and calls the master by the name of its host."""

    name = "sentinel"

    def __init__(self, scene):
        super().__init__(scene.folder)
        self.program, self.port, self.tls_port = scene.options.server, free_port(), free_port()
        self.file = os.path.join(scene.folder, "sentinel.conf")
        certificate, key = scene.papers.sign("sentinel")
        with open(self.file, "w") as file:
            file.write("\n".join([
                "port %d" % self.port, "tls-port %d" % self.tls_port, "bind 127.0.0.1", "dir %s" % scene.folder,
                "tls-replication yes", "tls-auth-clients yes", "tls-ca-cert-file %s" % scene.papers.ca,
                "tls-cert-file %s" % certificate, "tls-key-file %s" % key, "sentinel resolve-hostnames yes",
                "sentinel announce-hostnames yes", "sentinel monitor locks localhost %d 1" % scene.server.tls_port, ""]))
        self.start()

    def command(self):
        return [self.program, self.file, "--sentinel"]

    def address(self):
        return self.port


class Scene:
    """A server, and the papers of all."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.papers, self.others = Papers(folder, "ours"), Papers(folder, "others")
        self.front, self.client = self.papers.sign("front"), self.papers.sign("client")
        self.stranger = self.others.sign("stranger")
        self.server = TlsServer(options.server, folder, self.papers)

    def proxy(self, mode, ca=None, shows=True, rules=RULES, url=None, more=""):
        """lockward with TLS on both sides, everything about it in one [listen] and one [upstream]."""
        config = '[upstream]\nurl = "%s"\nmode = "%s"\n%stls = { ca = "%s"%s }\n' % (
            url or "rediss://127.0.0.1:%d" % self.server.tls_port, mode, more, ca or self.papers.ca,
            ', cert = "%s", key = "%s"' % self.client if shows else "")
        return TlsProxy(self.options.proxy, self.server, config + rules, self.folder, dict(
            LOCKWARD_LISTEN__TLS__CERT=self.front[0], LOCKWARD_LISTEN__TLS__KEY=self.front[1],
            LOCKWARD_LISTEN__TLS__CLIENT_CA=self.papers.ca, LOCKWARD_LISTEN__HANDSHAKE_TIMEOUT="500ms"))

    def connect(self, proxy, **options):
        return TlsConnection(proxy.port, self.papers, **dict({"shows": self.client}, **options))


class TlsProxy(Proxy):
    """lockward that clients reach over TLS."""

    def __init__(self, program, server, rules, folder, variables):
        self.more = variables
        super().__init__(program, server, rules, folder)

    def environment(self):
        return dict(super().environment(), **self.more)

    def refused(self, reason):
        return metric_sum(self.metrics(), 'lockward_connections_refused_total{reason="%s"}' % reason)

    def readiness(self):
        try:
            return self.get("/readyz")
        except OSError as error:
            return error.read().decode() if hasattr(error, "read") else str(error)

    def text(self):
        with open(self.log, errors="replace") as log:
            return log.read()


def until(question, wanted, limit=LIMIT):
    """The answer, once it is the one wanted or it is too late."""
    deadline = time.monotonic() + limit
    while True:
        answer = question()
        if answer == wanted or time.monotonic() > deadline:
            return answer
        time.sleep(0.02)


def fails(act):
    """What it comes to; "refused" if the connection fails or is closed."""
    try:
        return act()
    except (OSError, WireError):
        return "refused"


def conversation(scene, proxy):
    """Yields what was asked, the answer, and the answer expected."""
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with scene.connect(proxy, version=version) as client:
            yield "PING, " + version.name, client.ask("PING"), "PONG"
    with scene.connect(proxy) as first, scene.connect(proxy) as second:
        yield "acquire", first.ask("SET", "lock:a", "1", "NX", "EX", "30"), "OK"
        yield "another's DEL", second.ask("DEL", "lock:a"), 0
        yield "its own DEL", first.ask("DEL", "lock:a"), 1
        second.ask("SUBSCRIBE", "news")
        yield "PUBLISH", first.ask("PUBLISH", "news", "x"), 1
        yield "the message", second.reply(), [b"message", b"news", b"x"]
        first.ask("MULTI")
        first.ask("ECHO", "queued")
        yield "EXEC", first.ask("EXEC"), [b"queued"]
    if shutil.which("redis-cli"):
        command = ["redis-cli", "-p", str(proxy.port), "--tls", "--cacert", scene.papers.ca, "--cert", scene.client[0],
                   "--key", scene.client[1], "ECHO", "from redis-cli"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20)
        yield "redis-cli", done.stdout.strip(), "from redis-cli"


def bulk(scene, proxy):
    with scene.connect(proxy) as client:
        client.send(b"".join(encode("SET", "big:%d" % i, VALUE) for i in range(16)))
        yield "16 SETs of 1 MiB", [client.reply() for _ in range(16)], ["OK"] * 16
        client.send(b"".join(encode("GET", "big:%d" % i) for i in range(16)))
        time.sleep(0.2)     # a reader that is slow at the beginning
        yield "16 GETs of 1 MiB", [client.reply() == VALUE for _ in range(16)], [True] * 16
        for _ in range(20):
            client.send(encode("PING") * 16)
            yield "pipeline of 16", [client.reply() for _ in range(16)], ["PONG"] * 16
    with scene.connect(proxy) as client:
        client.send(b"".join(encode("GET", "big:%d" % i) for i in range(16)))
        # Of the connection below: what was said is still answered, and then the end is said as TLS says it.
        os_level = socket.socket(fileno=os.dup(client.sock.fileno()))
        os_level.shutdown(socket.SHUT_WR)
        os_level.close()
        yield "half-closed: the answers", [client.reply() == VALUE for _ in range(16)], [True] * 16
        yield "half-closed: the end", client.sock.recv(1), b""
    blocked = scene.connect(proxy)
    blocked.send(encode("BLPOP", "queue", "0"))
    with scene.connect(proxy) as client:
        yield "blocked", until(lambda: b"cmd=blpop" in client.ask("CLIENT", "LIST"), True), True
        blocked.close()
        yield "gone", until(lambda: b"cmd=blpop" in client.ask("CLIENT", "LIST"), False), False
        yield "nothing is swallowed", (client.ask("RPUSH", "queue", "x"), client.ask("LPOP", "queue")), (1, b"x")
    with scene.connect(proxy) as client:
        yield "QUIT", client.ask("QUIT"), "OK"
        yield "QUIT: the end", client.sock.recv(1), b""


def refusals(scene, proxy):
    def ping(**options):
        with scene.connect(proxy, **options) as client:
            return client.ask("PING")

    yield "no client certificate", fails(lambda: ping(shows=None)), "refused"
    yield "a stranger's certificate", fails(lambda: ping(shows=scene.stranger)), "refused"
    yield "both counted", until(lambda: proxy.refused("client_certificate"), 2.0), 2.0
    yield "a client that trusts others", fails(lambda: TlsConnection(proxy.port, scene.others, scene.client)), "refused"
    yield "counted", until(lambda: proxy.refused("handshake"), 1.0), 1.0
    for bytes_sent in (encode("SET", "sneaked", "1"), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", os.urandom(64) + b"\xff"):
        with proxy.connect() as client:
            client.send(b"\x00" + bytes_sent if bytes_sent[0] in range(0x14, 0x18) else bytes_sent)
            yield "plain bytes", client.is_closed(), True
    yield "plain bytes counted", until(lambda: proxy.refused("plain_on_tls"), 3.0), 3.0
    hello = proxy.connect()
    hello.send(b"\x16\x03\x01\x02\x00\x01")
    begun = time.monotonic()
    yield "a handshake that hangs", hello.is_closed(), True
    yield "is closed in time", 0.3 < time.monotonic() - begun < 3, True
    yield "counted", until(lambda: proxy.refused("handshake_timeout"), 1.0), 1.0
    for _ in range(200):
        with proxy.connect() as client:
            client.send(b"junk")
    yield "200 more, counted", until(lambda: proxy.refused("plain_on_tls"), 203.0), 203.0
    time.sleep(2.2)
    lines = [line for line in proxy.text().splitlines() if "closed: " in line or "connections were closed" in line]
    yield "a line each second at most", 1 <= len(lines) <= 8, True
    with scene.connect(proxy) as client:
        yield "nothing was done", client.ask("EXISTS", "sneaked"), 0


class Traffic(threading.Thread):
    """Requests one after the other, on one connection after the other, until told to stop."""

    def __init__(self, scene, proxy, number):
        super().__init__(daemon=True)
        self.scene, self.proxy, self.key = scene, proxy, "renewed:%d" % number
        self.over, self.count, self.faults = threading.Event(), 0, []

    def run(self):
        try:
            while not self.over.is_set():
                with self.scene.connect(self.proxy) as client:
                    for _ in range(20):
                        self.count += 1
                        if client.ask("INCR", self.key) != self.count:
                            self.faults.append("a request was lost or done twice")
        except (OSError, WireError) as error:
            self.faults.append(error or type(error).__name__)


def renewed(scene, proxy):
    """Certificates are given out anew under load, and read at SIGHUP: no request is lost, and new clients see the new one."""
    def shown():
        with scene.connect(proxy) as client:
            return client.sock.getpeercert()["serialNumber"]

    clients = [Traffic(scene, proxy, number) for number in range(4)]
    for client in clients:
        client.start()
    with scene.connect(proxy) as old:
        for turn in range(5):
            before = shown()
            scene.papers.sign("front")
            proxy.signal(signal.SIGHUP)
            yield "another certificate, %d" % turn, until(lambda: shown() != before, True), True
        yield "an open connection stays", old.ask("PING"), "PONG"
    last = shown()
    with open(scene.front[0]) as file:
        good = file.read()
    with open(scene.front[0], "w") as file:
        file.write(good[:len(good) // 2])
    proxy.signal(signal.SIGHUP)
    yield "half a certificate is refused", until(
        lambda: metric_sum(proxy.metrics(), 'lockward_config_reload_total{outcome="error"}'), 1.0), 1.0
    yield "the log says which", until(lambda: scene.front[0] in proxy.text() and "listen.tls.cert" in proxy.text(), True), True
    yield "the one of before is in force", shown(), last
    with open(scene.front[0], "w") as file:
        file.write(good)
    for client in clients:
        client.over.set()
    for client in clients:
        client.join(LIMIT)
    yield "traffic", all(client.count > 50 for client in clients), True
    yield "nothing was lost", [fault for client in clients for fault in client.faults], []


def libraries(scene):
    """The lock programs of two client libraries, whose steps say what they have to come to."""
    papers = " ".join((scene.papers.ca, *scene.client))
    with scene.proxy("dedicated", rules=LIBRARY_RULES) as proxy:
        for program, (command, environment) in commands(LIBRARIES).items():
            steps = steps_of(program, command, dict(environment, LOCKWARD_TEST_TLS=papers), proxy.port)
            yield program, (len(steps) > 20, list(unexpected("over TLS", steps))[:3]), (True, [])


def system_roots(scene):
    """Without upstream.tls.ca: by the file in SSL_CERT_FILE."""
    for roots, wanted in ((scene.papers.ca, (0, True)), ("/nowhere/roots.pem", (1, False))):
        variables = dict(os.environ, SSL_CERT_FILE=roots, LOCKWARD_UPSTREAM__TLS__CERT=scene.client[0],
                         LOCKWARD_UPSTREAM__TLS__KEY=scene.client[1],
                         LOCKWARD_UPSTREAM__URL="rediss://127.0.0.1:%d" % scene.server.tls_port)
        done = subprocess.run([scene.options.proxy, "check", "--connect"], env=variables, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        yield "roots in " + roots, (done.returncode, "/nowhere" not in done.stdout), wanted


def misfits(scene):
    for what, options, part in (
            ("another authority", {"ca": scene.others.ca}, "signed by none of those in upstream.tls.ca"),
            ("no certificate for the server", {"shows": False}, "the server")):
        with scene.proxy("dedicated", **options) as proxy:
            said = until(lambda: part in proxy.readiness(), True)
            yield what + ": readiness says why", said, True
            yield what + ": the log too", until(lambda: part in proxy.text(), True), True
            done = subprocess.run([scene.options.proxy, "check", "--connect", "--config", proxy.config],
                                  env=proxy.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            yield what + ": check says why", (done.returncode, part in " ".join(done.stdout.split())), (1, True)


def sentinels(scene):
    """TLS to sentinel and master, or to the master only; the name in the master's certificate is that which the sentinel
    gives."""
    with TlsSentinel(scene) as sentinel:
        named = "master=localhost:%d" % scene.server.tls_port
        for what, port, more, said, wanted in (
                ("by TLS", sentinel.tls_port, "", named, True),
                ("TLS at its plain port", sentinel.port, "", "not speak TLS", False),
                ("only to the master", sentinel.port, "sentinel_tls = false\n", named, True)):
            url = "rediss-sentinel://localhost:%d/locks" % port
            with scene.proxy("dedicated", url=url, more=more) as proxy:
                yield "sentinel, %s: it is said" % what, until(lambda: said in proxy.text(), True), True
                yield "sentinel, %s: ready" % what, until(lambda: proxy.readiness() == "ok\n", wanted), wanted
                if wanted:
                    with scene.connect(proxy) as client:
                        yield "sentinel, %s: served" % what, client.ask("PING"), "PONG"


def look(scene):
    for mode in ("dedicated", "shared"):
        with scene.proxy(mode) as proxy:
            until(lambda: metric_sum(proxy.metrics(), "lockward_upstream_up"), 1.0)
            for part in (conversation, bulk):
                for what, got, wanted in part(scene, proxy):
                    yield "%s, %s" % (mode, what), got, wanted
            if mode == "dedicated":
                yield from refusals(scene, proxy)
                yield from renewed(scene, proxy)
    yield from misfits(scene)
    yield from libraries(scene)
    yield from sentinels(scene)
    yield from system_roots(scene)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    options = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="lockward-tls-") as folder:
        try:
            scene = Scene(options, folder)
            with scene.server:
                for what, got, wanted in look(scene):
                    if got == wanted:
                        passed += 1
                    else:
                        failed += 1
                        print("FAIL  tls: %s: expected %.300r, got %.300r" % (what, wanted, got))
        except (Broken, WireError, OSError, RuntimeError) as error:
            failed += 1
            print("FAIL  tls: %s" % (error or type(error).__name__))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
