#!/usr/bin/env python3
"""Several ways in, each with rules of its own; the headers of load balancers (PROXY protocol 1 and 2), from whom they are
believed and what happens to everything else; the rights of unix sockets.

    tests/checks/listeners.py --proxy PATH --server PATH [--mode MODE]
"""
import argparse
import fcntl
import grp
import json
import os
import re
import shutil
import socket
import ssl
import stat
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]
from harness import marks                                   # noqa: E402
from harness.checking import Check                          # noqa: E402
from harness.papers import Papers                           # noqa: E402
from harness.processes import Proxy, Server, free_port      # noqa: E402
from harness.resp import Connection, WireError, encode, metric_sum  # noqa: E402

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
TIMEOUT = 0.5       # seconds that a header may take
UNTRUSTED = "127.0.0.2"
FLOOD = 60

# $NAME stands for what the check itself chooses.
RULES = """
[[locks]]
name = "general"
pattern = ["lock:*", "job:*"]
owner = "connection"

[[listeners]]
name = "watched"
address = "127.0.0.1:$watched"
[[listeners.locks]]
name = "watched"
pattern = "lock:*"
owner = "connection"
mode = "observe"

[[listeners]]
name = "side"
unix = "$side"
unix_mode = "0640"
unix_group = "$group"

[[listeners]]
name = "plain-side"
unix = "$plain"

[[listeners]]
name = "balanced"
address = "127.0.0.1:$balanced"
proxy_protocol = true
trusted_proxies = ["127.0.0.1"]
[[listeners.locks]]
name = "by address"
pattern = "lock:*"
owner = "address"

[[listeners]]
name = "encrypted"
address = "127.0.0.1:$encrypted"
tls = { cert = "$cert", key = "$key" }
proxy_protocol = true
trusted_proxies = ["127.0.0.1"]
[[listeners.locks]]
name = "by address, encrypted"
pattern = "lock:*"
owner = "address"

[[listeners]]
name = "local"
unix = "$local"
proxy_protocol = true
trusted_proxies = "unix"
"""


class Ways(Proxy):
    """A lockward with many ways in."""

    def __init__(self, options, server, folder):
        self.papers = Papers(folder, "ours")
        certificate, key = self.papers.sign("front")
        # Root may choose any group.
        self.group = grp.getgrgid(1 if os.getuid() == 0 else os.getgid())
        self.at = {name: free_port() for name in ("watched", "balanced", "encrypted")}
        self.at.update((name, os.path.join(folder, name + ".sock")) for name in ("side", "plain", "local"))
        self.server_port = server.port
        rules = RULES
        for name, value in dict(self.at, group=self.group.gr_name, cert=certificate, key=key).items():
            rules = rules.replace("$" + name, str(value))
        super().__init__(options.proxy, server, rules, folder, mode=options.mode)

    def environment(self):
        return dict(super().environment(), LOCKWARD_LISTEN__HANDSHAKE_TIMEOUT="%dms" % (1000 * TIMEOUT))

    def connect_by(self, way, first=b"", **options):
        """A connection by a listener, on which these bytes were sent first."""
        connection = Connection(self.at[way], **options)
        connection.send(first)
        return connection

    def refused(self, reason):
        return metric_sum(self.metrics(), 'lockward_connections_refused_total{reason="%s"}' % reason)

    def lines(self, text):
        with open(self.log, errors="replace") as log:
            return [line for line in log if text in line]

    def reload(self, *replaced):
        """Puts other texts into the file, and what a reload of it says."""
        with open(self.config) as file:
            text = file.read()
        for old, new in replaced:
            assert old in text, old
            text = text.replace(old, new)
        with open(self.config, "w") as file:
            file.write(text)
        request = urllib.request.Request("http://127.0.0.1:%d/-/reload" % self.admin_port, method="POST",
                                         headers={"Authorization": "Bearer " + marks.ADMIN_TOKEN})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    def trust(self):
        """What a client needs to speak TLS with it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.papers.ca)
        return context


def version_1(source, family=None):
    family = family or ("TCP6" if ":" in source else "TCP4")
    other = "::1" if family == "TCP6" else "192.0.2.9"
    return ("PROXY %s %s %s 40000 6379\r\n" % (family, source, other)).encode()


def version_2(source=None, command=0x21, more=b""):
    """With `more` behind the addresses; without a source it says none."""
    family, addresses = 0, b""
    if source:
        kind, family = (socket.AF_INET6, 0x21) if ":" in source else (socket.AF_INET, 0x11)
        address = socket.inet_pton(kind, source)
        addresses = address + address[::-1] + struct.pack("!HH", 40000, 6379)
    rest = addresses + more
    return SIGNATURE + struct.pack("!BBH", command, family, len(rest)) + rest


def owner_seen(connection):
    """The client's owner under the first rule, and how that rule is called."""
    answer = [text.decode() for text in connection.ask("LOCKWARD", "WHOAMI")]
    return answer[2].replace("owner under rule ", ""), answer[3]


def rules_differ(check, proxy):
    with proxy.connect() as holder, proxy.connect() as other, proxy.connect_by("watched") as watched, \
            proxy.connect_by("side") as side:
        check("acquire", holder.ask("SET", "lock:two", "1", "NX", "EX", "60"), "OK")
        check("another's DEL by the main listener", other.ask("DEL", "lock:two"), 0)
        check("another's DEL by a socket with the general rules", side.ask("DEL", "lock:two"), 0)
        check("another's DEL where that is only observed", watched.ask("DEL", "lock:two"), 1)
        check("what no rule of that listener matches", watched.ask("SET", "job:two", "1"), "OK")
        check("is unmanaged by the general rules", other.ask("DEL", "job:two"), 1)
        names = [owner_seen(one)[0] for one in (holder, side, watched)]
        check("whose rules they go by", names, ["general", "general", "watched"])
        check("granted at the watched listener", watched.ask("SET", "lock:three", "1", "NX", "EX", "60"), "OK")
        check("given up there", watched.ask("DEL", "lock:three"), 1)
    counted = [metric_sum(proxy.metrics(), 'lockward_lock_acquires_total{rule="%s",outcome="granted"}' % rule)
               for rule in ("general", "watched", "by address")]
    check("acquires by rule", counted, [1, 1, 0])


def addresses_are_announced(check, proxy):
    one, two, six = "203.0.113.1", "203.0.113.2", "2001:db8::1"
    for name, header in (("1", version_1), ("2", version_2)):
        for mine, another in ((one, two), (six, "2001:db8::2")):
            what = "version %s, %s: " % (name, mine)
            with proxy.connect_by("balanced", header(mine)) as holder, \
                    proxy.connect_by("balanced", header(mine)) as sibling, \
                    proxy.connect_by("balanced", header(another)) as stranger:
                check(what + "the owner", owner_seen(holder), ("by address", "address=" + mine))
                check(what + "acquire", holder.ask("SET", "lock:p", "1", "NX", "EX", "60"), "OK")
                check(what + "a stranger's DEL", stranger.ask("DEL", "lock:p"), 0)
                check(what + "a sibling's DEL", sibling.ask("DEL", "lock:p"), 1)
    for what, header, owner in (
            ("an IPv4-mapped address", version_1("::ffff:" + one), one),
            ("UNKNOWN", b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", "127.0.0.1"),
            ("LOCAL", version_2(one, command=0x20), "127.0.0.1"), ("no address", version_2(), "127.0.0.1"),
            ("more behind the address", version_2(one, more=b"\xea\0\x10" + bytes(16)), one),
            ("as much as is taken", version_2(one, more=bytes(4096 - 28)), one)):
        with proxy.connect_by("balanced", header) as client:
            check(what, owner_seen(client)[1], "address=" + owner)
    # Owners are the same by whatever listener and rule.
    context = proxy.trust()
    with proxy.connect_by("balanced", version_2(one)) as holder, \
            proxy.connect_by("encrypted", version_2(one)) as sibling:
        sibling.sock = context.wrap_socket(sibling.sock, server_hostname="localhost")
        check("acquire by one listener", holder.ask("SET", "lock:p", "1", "NX", "EX", "60"), "OK")
        check("release by another", sibling.ask("DEL", "lock:p"), 1)
        check.until("its row is gone", lambda: [lock["key"] for lock in proxy.json("/api/v1/locks")["locks"]], [])
    with proxy.connect_by("local", version_1(one)) as client:
        check("by a unix socket", owner_seen(client)[0], "general")
    with proxy.connect_by("balanced", version_2(one)) as client:
        client.ask("SET", "lock:shown", "1", "NX", "EX", "60")
        check("the lock table", [lock["client_address"] for lock in proxy.json("/api/v1/locks")["locks"]
                                 if lock["key"] == "lock:shown"], [one + ":40000"])
        client.ask("DEL", "lock:shown")


def any_packets(check, proxy):
    for name, header in (("1", version_1("203.0.113.3")), ("2", version_2("203.0.113.3", more=bytes(300)))):
        with proxy.connect_by("balanced", header + encode("PING") + encode("ECHO", "x")) as client:
            check("commands in the packet of version " + name, (client.reply(), client.reply()), ("PONG", b"x"))
        with proxy.connect_by("balanced") as client:
            for byte in header + encode("PING"):
                client.send(bytes([byte]))
            check("version %s byte by byte" % name, client.reply(), "PONG")


def tls_behind_a_header(check, proxy):
    context = proxy.trust()
    for name, header in (("1", version_1("203.0.113.4")), ("2", version_2("203.0.113.4"))):
        with proxy.connect_by("encrypted", header) as client:
            client.sock = context.wrap_socket(client.sock, server_hostname="localhost")
            check("TLS behind version " + name, owner_seen(client),
                  ("by address, encrypted", "address=203.0.113.4"))
    # The header and the beginning of TLS in one packet.
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with proxy.connect_by("encrypted") as client:
        first = version_2("203.0.113.5")
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                client.send(first + outgoing.read())
                first = b""
                incoming.write(client.sock.recv(1 << 16))
        tls.write(encode("PING"))
        client.send(outgoing.read())
        answer = b""
        while not answer.endswith(b"PONG\r\n"):
            try:
                answer += tls.read(100)
            except ssl.SSLWantReadError:
                incoming.write(client.sock.recv(1 << 16))
        check("TLS in the packet of the header", answer, b"+PONG\r\n")
    before = proxy.refused("plain_on_tls")
    with proxy.connect_by("encrypted", version_1("203.0.113.6") + encode("PING")) as client:
        check("no TLS behind a header", client.is_closed(), True)
    check("is counted", proxy.refused("plain_on_tls"), before + 1)
    check("with the address that was announced", len(proxy.lines("203.0.113.6:40000")), 1)


def closed(check, proxy, way, reason, attempts):
    """Each of these bytes, sent first, closes the connection, and is counted under this reason."""
    for what, first in attempts:
        before = proxy.refused(reason)
        with proxy.connect_by(way, first) as client:
            # What was said in answer, as by a server to HTTP, is nothing.
            check(what + " is closed", client.is_closed(), True)
        check.until(what + " is counted as " + reason, lambda: proxy.refused(reason), before + 1)


def everything_else_is_closed(check, proxy):
    closed(check, proxy, "balanced", "proxy_header", (
        ("a command", encode("PING")), ("HTTP", b"GET / HTTP/1.1\r\n\r\n"), ("TLS", b"\x16\x03\x01\x02\0\x01"),
        ("junk", os.urandom(64).replace(b"P", b"p").replace(b"\r", b"r")),
        ("a line without an end", b"PROXY TCP4 " + b"1" * 200),
        ("a line of another family", version_1("203.0.113.1", family="TCP6")),
        ("a line with a port too large", b"PROXY TCP4 1.1.1.1 2.2.2.2 70000 1\r\n"),
        ("a header of version 3", SIGNATURE + b"\x31\x11\0\x0c" + bytes(12)),
        ("a header too long", SIGNATURE + b"\x21\x11\xff\xff"),
        ("a header too short for its address", SIGNATURE + b"\x21\x11\0\x04" + bytes(4))))
    closed(check, proxy, "balanced", "handshake_timeout", (
        ("half a line", b"PROXY TCP4 203"), ("half a header", version_2("203.0.113.1")[:20]), ("silence", b"")))
    before = proxy.refused("proxy_header")
    with proxy.connect_by("balanced", b"PROXY TC") as client:
        client.half_close()
        check("an end in the middle", client.is_closed(), True)
    with proxy.connect_by("balanced") as client:
        client.half_close()
        check("a look at the port", client.is_closed(), True)
    # Who only looks whether the port is open may be gone before it is taken, and then has no address any more.
    untrusted = proxy.refused("untrusted_proxy")
    for _ in range(20):
        proxy.connect_by("balanced").reset()
    with proxy.connect_by("balanced", version_1("203.0.113.1")) as client:
        check("one behind many who only looked", client.ask("PING"), "PONG")
    check("nobody was taken for somebody untrusted", proxy.refused("untrusted_proxy"), untrusted)
    check("only the first is counted", proxy.refused("proxy_header"), before + 1)
    proxy.at["main"] = proxy.port
    closed(check, proxy, "main", "unasked_proxy_header", (
        ("an unasked header of version 1", version_1("203.0.113.1") + encode("PING")),
        ("an unasked header of version 2", version_2("203.0.113.1") + encode("PING"))))


def nobody_else_is_believed(check, proxy):
    before, begun = proxy.refused("untrusted_proxy"), time.monotonic()
    lines = len(proxy.lines("untrusted_proxy"))
    for number in range(FLOOD):
        try:
            with proxy.connect_by("balanced", version_1("203.0.113.1"), source=UNTRUSTED) as client:
                closed_at_once = client.is_closed()
        except OSError:
            closed_at_once = True
        if not closed_at_once:
            check("connection %d from an untrusted source is closed" % number, False, True)
    check.until("all are counted", lambda: proxy.refused("untrusted_proxy"), before + FLOOD)
    most = time.monotonic() - begun + 2
    written = len(proxy.lines("untrusted_proxy")) - lines
    check("the log tells of them at most once a second", written <= most, True)
    left_out = r"left_out=(\d+)"
    check.until("and how many it left out", lambda: len(proxy.lines("a connection was closed")) + sum(
        int(number) for line in proxy.lines("left_out=") for number in re.findall(left_out, line)),
        int(metric_sum(proxy.metrics(), "lockward_connections_refused_total")))
    with proxy.connect_by("balanced", version_1("203.0.113.1")) as client:
        check("a trusted one goes on", client.ask("PING"), "PONG")


def sockets_have_their_rights(check, proxy):
    state = os.stat(proxy.at["side"])
    check("mode", oct(stat.S_IMODE(state.st_mode)), oct(0o640))
    check("group", state.st_gid, proxy.group.gr_gid)
    umask = os.umask(0)
    os.umask(umask)
    config = os.path.join(proxy.folder, "group.toml")
    with open(config, "w") as file:
        file.write('[listen]\nunix = "%s.none"\nunix_group = "no-such-group"\n[admin]\naddress = "127.0.0.1:%d"\n' % (
            proxy.at["side"], free_port()))
    done = subprocess.run([proxy.program, "--config", config], capture_output=True, text=True, timeout=20)
    check("a group that is not there", (done.returncode, 'no group "no-such-group"' in done.stderr), (1, True))
    check("leaves no socket", os.path.exists(proxy.at["side"] + ".none"), False)
    check("the mode by default", oct(stat.S_IMODE(os.stat(proxy.at["plain"]).st_mode)), oct(0o777 & ~umask))


def reloads_are_for_open_connections(check, proxy):
    with proxy.connect_by("watched") as holder, proxy.connect_by("watched") as other, proxy.connect() as main:
        check("acquire", holder.ask("SET", "lock:r", "1", "NX", "EX", "60"), "OK")
        answer = proxy.reload(('mode = "observe"', 'mode = "enforce"'))
        check("what comes into force", answer["applied"], ['rule "watched", mode: observe -> enforce'])
        check("acquire again", holder.ask("DEL", "lock:r") + holder.ask("SETNX", "lock:r", "1"), 2)
        check("another's DEL is refused now", other.ask("DEL", "lock:r"), 0)
        check("the main listener's rules are as they were", owner_seen(main)[0], "general")
        holder.ask("DEL", "lock:r")
    answer = proxy.reload(('name = "plain-side"', 'name = "new-side"'),
                          ('trusted_proxies = ["127.0.0.1"]', 'trusted_proxies = ["127.0.0.0/8"]'))
    check("what waits for a restart", answer["needs_restart"], ["listeners.plain-side", "listeners.new-side"])
    check("the log names it", len(proxy.lines("waits for a restart: listeners.plain-side, listeners.new-side")), 1)
    with proxy.connect_by("balanced", version_1("203.0.113.1"), source=UNTRUSTED) as client:
        check("other load balancers are believed", client.ask("PING"), "PONG")
    with proxy.connect_by("plain") as client:
        check("who is gone from the file goes on", client.ask("PING"), "PONG")


def certificates_are_renewed(check, proxy):
    def name_shown():
        with proxy.connect_by("encrypted", version_1("203.0.113.1")) as client:
            client.sock = proxy.trust().wrap_socket(client.sock, server_hostname="localhost")
            return client.sock.getpeercert()["subject"][0][0][1]

    check("the certificate of the start", name_shown(), "front")
    old, new = (os.path.join(proxy.papers.folder, name) for name in ("front.", "second."))
    answer = proxy.reload((old, new))
    told = "listeners.encrypted.tls.cert: %spem: cannot be read" % new
    check("what is wrong with a file", told in json.dumps(answer), True)
    check("leaves all as it was", name_shown(), "front")
    proxy.papers.sign("second")
    check("what comes into force", proxy.reload()["applied"], ["listeners.encrypted.tls: other files"])
    check("the certificate from then on", name_shown(), "second")


def limits_are_by_announced_address(check, proxy):
    proxy.reload(("[listen]\n", "[listen]\nmax_connections_per_address = 2\n"))
    first = [proxy.connect_by("balanced", version_2("203.0.113.7")) for _ in range(2)]
    check("two of one address", [one.ask("PING") for one in first], ["PONG", "PONG"])
    with proxy.connect_by("balanced", version_2("203.0.113.7")) as third:
        check("a third one is turned away", third.reply(), "ERR max number of clients reached")
    with proxy.connect_by("balanced", version_2("203.0.113.8")) as other:
        check("one of another address is not", other.ask("PING"), "PONG")
    first.pop().close()

    def again():
        with proxy.connect_by("balanced", version_2("203.0.113.7")) as client:
            return client.ask("PING")

    check.until("its place is free when it is gone", again, "PONG")
    first.pop().close()


HANDED = """[listen]
address = "127.0.0.1:%d"
[admin]
address = "127.0.0.1:%d"
[upstream]
url = "redis://127.0.0.1:%d"
[[listeners]]
name = "side"
address = "127.0.0.1:%d"
[[listeners.locks]]
name = "of the side"
pattern = "lock:*"
"""


def handed_over(proxy, names, listening):
    """A lockward that got these sockets as from systemd."""
    config = os.path.join(proxy.folder, "handed.toml")
    with open(config, "w") as file:
        file.write(HANDED % (free_port(), free_port(), proxy.server_port, free_port()))
    high = [fcntl.fcntl(one, fcntl.F_DUPFD, 100) for one in listening]

    def place():
        for number, one in enumerate(high):
            os.dup2(one, 3 + number)

    variables = dict(os.environ, LISTEN_FDS=str(len(high)), LISTEN_FDNAMES=":".join(names))
    with open(os.path.join(proxy.log_folder(), "proxy-handed.log"), "a") as log:
        child = subprocess.Popen(["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh", proxy.program, "--config", config],
                                 stdout=log, stderr=subprocess.PIPE if len(set(names)) < len(names) else log, text=True,
                                 env=variables, preexec_fn=place, pass_fds=range(3, 3 + len(high)))
    for one in high:
        os.close(one)
    return child


def sockets_are_handed_over(check, proxy):
    """A socket has the name of its listener; one of another name is the main listener's."""
    paths = [os.path.join(proxy.folder, "handed-%d.sock" % number) for number in range(2)]
    listening = []
    for path in paths:
        listening.append(socket.socket(socket.AF_UNIX))
        listening[-1].bind(path)
        listening[-1].listen()
    child = handed_over(proxy, ["side", "lockward.socket"], listening)
    try:
        rules = []
        for path in paths:
            with Connection(path, limit=20) as client:
                rules.append(owner_seen(client)[0])
        check("the rules of each", rules, ["of the side", "default"])
    finally:
        child.terminate()
        child.wait(20)
    child = handed_over(proxy, ["one", "one"], listening)
    _, said = child.communicate(timeout=20)
    check("two for one", "two sockets for clients (listen); there can be one" in said, True)
    check("is a failure", child.returncode, 1)
    for one in listening:
        one.close()


CHECKS = [rules_differ, addresses_are_announced, any_packets, tls_behind_a_header, everything_else_is_closed,
          nobody_else_is_believed, sockets_have_their_rights, sockets_are_handed_over, reloads_are_for_open_connections,
          certificates_are_renewed, limits_are_by_announced_address]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--mode", choices=["dedicated", "shared"], help="of the connections to the server")
    options = parser.parse_args()
    check = Check("listeners")
    with tempfile.TemporaryDirectory(prefix="lockward-ways-") as folder:
        with Server(options.server, folder) as server, Ways(options, server, folder) as proxy:
            for one in CHECKS:
                check.name = one.__name__.replace("_", " ")
                try:
                    one(check, proxy)
                except (WireError, OSError, RuntimeError) as error:
                    check(error or type(error).__name__, "broken", "whole")
            check.name = "at the end"
            check("the proxy runs", proxy.is_running(), True)
            with server.connect() as direct:
                check("what is left on the server", direct.ask("KEYS", "*lock:*"), [])
            paths = [path for path in proxy.at.values() if isinstance(path, str)]
            proxy.stop()
            check("sockets are removed", [path for path in paths if os.path.exists(path)], [])
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
