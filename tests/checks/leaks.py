#!/usr/bin/env python3
"""No token, password or stored value is in anything that lockward prints, logs, shows or serves.

    tests/checks/leaks.py --proxy PATH --server PATH [--only TEXT]

Every secret carries a mark (harness/marks.py), and the owner tokens are read off the server's own MONITOR. All kinds of
traffic go through a lockward that logs at trace, once as text and once as JSON; every path is read over HTTP, every
command called, broken configurations are shown to it. Then its log, its answers, the streams, the commands' output and
the command lines of all processes are searched. That the secrets did come by is checked too: else nothing would be shown.
"""
import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import secret_traffic                           # noqa: E402
from harness import marks                       # noqa: E402
from harness.processes import Proxy, Server     # noqa: E402

CONFIG = """
[log]
level = "trace"
format = "%s"

[upstream]
url = "redis://lockward:%s@$REDIS"

[[locks]]
name = "jobs"
pattern = "lock:*"
owner = "client-name"
fencing = true
default_ttl = "60s"

[[locks]]
name = "kept"
pattern = "keep:*"
owner = "connection"
renew = true
release_on_disconnect = true
disconnect_grace = "100ms"

[[locks]]
name = "watched"
pattern = "seen:*"
owner = "user"
mode = "observe"
"""
PATHS = ["/", "/page.css", "/page.js", "/icon.svg", "/metrics", "/livez", "/readyz", "/api/v1/openapi.json",
         "/api/v1/rules", "/api/v1/suggestions", "/api/v1/locks", "/api/v1/locks?sort=waiters&warned=true",
         "/api/v1/locks?token=%s" % marks.WRONG_TOKEN, "/api/v1/no-such-path"]
STREAMS = ["/api/v1/events", "/api/v1/live"]
COMMANDS = [["check"], ["check", "--connect"], ["explain", "SET lock:a value NX EX 30"], ["locks"], ["locks", "-o", "json"],
            ["locks", "-o", "csv"], ["locks", "--warned"], ["top", "--once"], ["suggest"], ["release", "lock:held"],
            ["release", "lock:held"], ["--version"], ["--help"]]


class Wrong(Exception):
    """A secret that shows, or a part of this test that did not happen."""


class Spy(threading.Thread):
    """Reads a socket to its end and keeps all of it."""

    def __init__(self, address, request):
        super().__init__(daemon=True)
        self.socket = socket.create_connection(("127.0.0.1", address), timeout=30)
        self.socket.sendall(request)
        self.kept, self.lock = bytearray(), threading.Lock()
        self.start()

    def run(self):
        try:
            while data := self.socket.recv(1 << 16):
                with self.lock:
                    self.kept += data
        except OSError:
            pass

    def text(self):
        with self.lock:
            return self.kept.decode("utf-8", "replace")

    def wait_for(self, what):
        deadline = time.monotonic() + 10
        while what not in self.text():
            if time.monotonic() > deadline:
                raise Wrong("a stream never said %r" % what)
            time.sleep(0.02)

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.join()
        self.socket.close()


class Shown:
    """All that was shown, by where."""

    def __init__(self):
        self.texts = {}

    def add(self, where, text):
        self.texts[where] = self.texts.get(where, "") + text

    def search(self, tokens):
        lines = [(where, line) for where, text in self.texts.items() for line in marks.found(text, tokens)]
        lines += [(where, "an UUID: " + marks.UUID.sub("<UUID>", line)[:300]) for where, text in self.texts.items()
                  for line in text.splitlines() if marks.UUID.search(line)]
        if lines:
            raise Wrong("%d lines show a secret:\n%s" % (len(lines), "\n".join("      %s: %s" % line for line in lines[:20])))
        return "%d texts, %d KiB" % (len(self.texts), sum(map(len, self.texts.values())) // 1024)


# ---- ways to look ------------------------------------------------------------------------

def read(proxy, shown, path, token=None, method="GET"):
    request = urllib.request.Request("http://127.0.0.1:%d%s" % (proxy.admin_port, path), method=method,
                                     headers={"Authorization": "Bearer " + token} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            status, headers, body = answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        status, headers, body = error.code, error.headers, error.read()
    shown.add("HTTP %s %s" % (method, marks.hidden(path)), str(headers) + body.decode("utf-8", "replace"))
    return status, body


def call(proxy, shown, arguments, **more):
    """A lockward command, with its configuration and the secrets in that or in the environment."""
    config = [] if arguments[0].startswith("--") else ["--config", more.pop("config", proxy.config)]
    done = subprocess.run([proxy.program, *arguments, *config], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, text=True, timeout=30, env=dict(os.environ, **more))
    shown.add("lockward " + " ".join(arguments), done.stdout)
    return done


def read_everything(proxy, shown):
    paths = list(PATHS)
    documented = json.loads(read(proxy, shown, "/api/v1/openapi.json")[1])["paths"]
    unread = [path for path in documented if "{" not in path and path not in STREAMS + ["/api/v1/records"]
              and path not in [known.partition("?")[0] for known in paths]]
    paths += unread
    for key in ("lock:held", "lock:late", "seen:a", "keep:a", "lock:none"):
        paths.append("/api/v1/locks/" + key)
    for path in paths:
        read(proxy, shown, path)
    cursor, pages = "", 0
    while cursor is not None:
        status, body = read(proxy, shown, "/api/v1/records" + ("?cursor=" + cursor if cursor else ""))
        if status == 429:
            time.sleep(0.15)
            continue
        page = json.loads(body)
        if status != 200:
            raise Wrong("records: %r" % page)
        cursor, pages = page["cursor"], pages + len(page["records"])
    if not pages:
        raise Wrong("there were no records to read")
    for token in (None, marks.WRONG_TOKEN, marks.ADMIN_TOKEN[:-1], ""):
        status, _ = read(proxy, shown, "/api/v1/locks/lock:held?reason=leaks", token, "DELETE")
        if status not in (401, 403):
            raise Wrong("a release by force without the token: %d" % status)
    status, _ = read(proxy, shown, "/api/v1/locks/lock:late?reason=leaks", marks.ADMIN_TOKEN, "DELETE")
    if status not in (200, 404):
        raise Wrong("a release by force with the token: %d" % status)


def call_everything(proxy, shown):
    for arguments in COMMANDS:
        done = call(proxy, shown, arguments)
        if "panicked" in done.stdout:
            raise Wrong("lockward %s: %s" % (" ".join(arguments), done.stdout))
    call(proxy, shown, ["release", "lock:held"], LOCKWARD_ADMIN__TOKEN=marks.WRONG_TOKEN)
    tap = subprocess.Popen([proxy.program, "tap", "--summary", "--config", proxy.config], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
    with proxy.connect() as client:
        client.ask("AUTH", marks.DEFAULT_PASSWORD)
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline and tap.poll() is None:
            client.ask("SET", "lock:tapped", marks.LOCK_VALUE, "NX", "EX", "5")
            client.ask("DEL", "lock:tapped")
            time.sleep(0.3)
    tap.send_signal(signal.SIGINT)
    said, _ = tap.communicate(timeout=10)
    shown.add("lockward tap", said)
    if "lock:tapped" not in said:
        raise Wrong("lockward tap did not say a word of lock:tapped: %r" % said[:300])


# ---- the checks -------------------------------------------------------------------------

def nothing_shows(options, log_format):
    """All kinds of traffic, everything read: no secret anywhere."""
    shown = Shown()
    with tempfile.TemporaryDirectory(prefix="lockward-leaks-") as folder, Server(options.server, folder) as server:
        secret_traffic.close_the_server(server)
        rules = CONFIG % (log_format, marks.UPSTREAM_PASSWORD)
        monitor = Spy(server.port, secret_traffic.monitor_request())
        monitor.wait_for("+OK\r\n+OK\r\n")
        with Proxy(options.proxy, server, rules, folder) as proxy:
            streams = [(path, Spy(proxy.admin_port, b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode()))
                       for path in STREAMS]
            for _, stream in streams:
                stream.wait_for("text/event-stream")
            held = secret_traffic.play(server, proxy)
            read_everything(proxy, shown)
            call_everything(proxy, shown)
            streams[0][1].wait_for("lock:tapped")
            for path, stream in streams:
                shown.add("HTTP GET " + path, stream.text())
                stream.close()
            shown.add("command lines", command_lines(folder, server, proxy))
            for client in held:
                client.close()
            if not proxy.is_running():
                raise Wrong("the proxy ended; its last words: %s" % proxy.last_words())
        with open(proxy.log, errors="replace") as log:
            shown.add("its log", log.read())
        monitor.close()
    tokens = sorted(set(match.group(0) for match in marks.UUID.finditer(monitor.text())))
    did_happen(monitor.text(), tokens, shown)
    return "%d owner tokens; %s" % (len(tokens), shown.search(tokens))


def command_lines(folder, *processes):
    """Of the processes of this test, and of all that name its folder."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % name) as file:
                line = file.read().replace("\0", " ")
        except OSError:
            continue            # it has just ended
        if folder in line or int(name) in [process.child.pid for process in processes]:
            found.append(line)
    if len(found) < len(processes):
        raise Wrong("the processes of this test were not found: %r" % found)
    return "\n".join(found)


def did_happen(monitored, tokens, shown):
    """The secrets came by, and the log was not empty: the search had something to find."""
    for value in (marks.LOCK_VALUE, marks.STORED_VALUE, marks.SCRIPT_ARGUMENT):
        if value not in monitored:
            raise Wrong("the server never saw %s" % marks.hidden(value))
    if len(tokens) < 5:
        raise Wrong("only %d owner tokens were seen" % len(tokens))
    log = shown.texts["its log"]
    for word in ("TRACE", "DEBUG", "refusal", "overrun", "overlap", "forced", "lock:late"):
        if word.lower() not in log.lower():
            raise Wrong("the log says nothing of %r" % word)


BROKEN = [
    ("an unknown key", '[admin]\ntokn = "%s"\n' % marks.ADMIN_TOKEN),
    ("a token that is no text", '[admin]\ntoken = ["%s"]\n' % marks.ADMIN_TOKEN),
    ("a token without its end", '[admin]\ntoken = "%s\n' % marks.ADMIN_TOKEN),
    ("a token twice", '[admin]\ntoken = "%s"\ntoken = "%s"\n' % (marks.ADMIN_TOKEN, marks.ADMIN_TOKEN)),
    ("a token without quotes", "[admin]\ntoken = %s\n" % marks.ADMIN_TOKEN),
    ("a token in the wrong place", 'token = "%s"\n' % marks.ADMIN_TOKEN),
    ("a token with more behind it", '[admin]\ntoken = "%s" oops\n' % marks.ADMIN_TOKEN),
    ("a bad escape in a token", '[admin]\ntoken = "%s\\q"\n' % marks.ADMIN_TOKEN),
    ("a token as section", '[admin.token]\nvalue = "%s"\n' % marks.ADMIN_TOKEN),
    ("an unknown scheme", '[upstream]\nurl = "http://u:%s@127.0.0.1"\n' % marks.UPSTREAM_PASSWORD),
    ("a bad port", '[upstream]\nurl = "redis://u:%s@127.0.0.1:port"\n' % marks.UPSTREAM_PASSWORD),
    ("a bad percent sign", '[upstream]\nurl = "redis://u:%s%%zz@127.0.0.1"\n' % marks.UPSTREAM_PASSWORD),
    ("no host", '[upstream]\nurl = "redis://u:%s@"\n' % marks.UPSTREAM_PASSWORD),
    ("a slash in the password", '[upstream]\nurl = "redis://u:a/%s@127.0.0.1:1"\n' % marks.UPSTREAM_PASSWORD),
    ("an at sign in the password", '[upstream]\nurl = "redis://u:a@%s@127.0.0.1:x"\n' % marks.UPSTREAM_PASSWORD),
    ("a URL as list", '[upstream]\nurl = ["redis://u:%s@127.0.0.1"]\n' % marks.UPSTREAM_PASSWORD),
    ("a URL without quotes", "[upstream]\nurl = redis://u:%s@127.0.0.1\n" % marks.UPSTREAM_PASSWORD),
    ("a password key", '[upstream]\npassword = "%s"\n' % marks.UPSTREAM_PASSWORD),
]
VARIABLES = [
    ("LOCKWARD_ADMIN__TOKN", marks.ADMIN_TOKEN),
    ("LOCKWARD_UPSTREAM__URL", "http://u:%s@127.0.0.1" % marks.UPSTREAM_PASSWORD),
    ("LOCKWARD_UPSTREAM__URL", "redis://u:%s@127.0.0.1:port" % marks.UPSTREAM_PASSWORD),
    ("LOCKWARD_UPSTREAM__PASSWORD", marks.UPSTREAM_PASSWORD),
    ("LOCKWARD_LOCKS__0__TOKEN", marks.ADMIN_TOKEN),
]


def broken_configurations_do_not_tell(options):
    """What is wrong is said with file, key and line, and without the value of a secret."""
    shown = Shown()
    with tempfile.TemporaryDirectory(prefix="lockward-leaks-") as folder:
        for number, (what, text) in enumerate(BROKEN):
            path = os.path.join(folder, "broken-%d.toml" % number)
            with open(path, "w") as file:
                file.write(text)
            for command in (["check"], []):
                said = refused(options, [*command, "--config", path], what, {})
                if "broken-%d.toml" % number not in said:
                    raise Wrong("%s: the file is not named: %s" % (what, marks.hidden(said)))
                shown.add(what, said)
        for name, value in VARIABLES:
            shown.add(name, refused(options, ["check"], name, {name: value}))
    return shown.search([])


def refused(options, arguments, what, variables):
    done = subprocess.run([options.proxy, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, text=True, timeout=20, env=dict(os.environ, **variables))
    if done.returncode != 2 or not done.stdout.strip() or "panicked" in done.stdout:
        raise Wrong("%s: code %d, %s" % (what, done.returncode, marks.hidden(done.stdout)))
    return done.stdout


def good_configurations_do_not_tell(options):
    """`lockward check` shows what a configuration comes to, and --connect what a server says to a wrong password."""
    shown = Shown()
    with tempfile.TemporaryDirectory(prefix="lockward-leaks-") as folder, Server(options.server, folder) as server:
        secret_traffic.close_the_server(server)
        path = os.path.join(folder, "good.toml")
        for password in (marks.UPSTREAM_PASSWORD, marks.WRONG_PASSWORD):
            with open(path, "w") as file:
                file.write('[admin]\ntoken = "%s"\n[upstream]\nurl = "redis://lockward:%s@127.0.0.1:%d"\n' % (
                    marks.ADMIN_TOKEN, password, server.port))
            for arguments in (["check"], ["check", "--connect"]):
                done = subprocess.run([options.proxy, *arguments, "--config", path], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=20)
                shown.add(" ".join(arguments), done.stdout)
    if not re.search(r"(?i)wrong|invalid|WRONGPASS", shown.texts["check --connect"]):
        raise Wrong("a wrong password was not noticed: %s" % marks.hidden(shown.texts["check --connect"]))
    return shown.search([])


def the_search_finds(options):
    """Every kind of secret is found where it stands: a search that finds nothing proves nothing."""
    shown = Shown()
    token = "0f8fad5b-d9cb-469f-a165-70867728950e"
    for where, text in (("mark", "x %s y" % marks.LOCK_VALUE), ("token", "x %s y" % token),
                        ("token without hyphens", token.replace("-", "").upper())):
        shown.texts = {where: text}
        try:
            shown.search([])
        except Wrong:
            continue
        raise Wrong("not found: %s" % where)
    return "marks and UUIDs"


CHECKS = [("the search finds", the_search_finds),
          ("broken configurations do not tell", broken_configurations_do_not_tell),
          ("good configurations do not tell", good_configurations_do_not_tell),
          ("nothing shows, log as text", lambda options: nothing_shows(options, "text")),
          ("nothing shows, log as json", lambda options: nothing_shows(options, "json"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--only", default="", help="only checks whose name holds this text")
    options = parser.parse_args()
    if not options.server:
        sys.exit("leaks: no redis-server or valkey-server on PATH: use --server $(scripts/get-server)")
    passed = failed = 0
    for name, check in CHECKS:
        if options.only not in name:
            continue
        try:
            print("ok    %s: %s" % (name, check(options)), flush=True)
            passed += 1
        except (Wrong, OSError, RuntimeError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
            print("FAIL  %s: %s" % (name, marks.hidden(str(error) or type(error).__name__)), flush=True)
            failed += 1
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
