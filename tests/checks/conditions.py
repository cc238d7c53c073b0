#!/usr/bin/env python3
"""A server in trouble: restarted empty, loading, a replica, full, without enough replicas. Clients hear its own words;
readiness, metrics and log tell the story; when it is well again, all is.

    tests/checks/conditions.py --proxy PATH --server PATH [--mode MODE]
"""
import argparse
import os
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]
from harness.checking import Check     # noqa: E402
from harness.processes import DEFAULT_RULES, Proxy, Server     # noqa: E402
from harness.resp import WireError      # noqa: E402

KEYS, DELAY_US = 300, 10_000    # keys of the server that loads slowly, and how long it takes for each


class Slow(Server):
    """A server that keeps its data, and loads it slowly when it is started again."""

    def command(self):
        return super().command() + ["--key-load-delay", str(DELAY_US), "--loading-process-events-interval-bytes", "1024"]


def code(answer):
    """The first word of an answer."""
    return str(answer).split(" ")[0]


def asked(proxy, *words):
    """The first word of the answer to a command on a new connection."""
    try:
        with proxy.connect() as client:
            return code(client.ask(*words))
    except (WireError, OSError):
        return "closed"


def restarted(check, options, server, proxy):
    """It comes back empty: the lock is free, and nobody is told otherwise."""
    with proxy.connect() as holder:
        check("acquire", holder.ask("SET", "lock:r", "1", "NX", "EX", "300"), "OK")
    check.until("the server is known", lambda: proxy.said("the server is reachable"), True)
    time.sleep(1.5)     # it has been asked who it is
    server.kill()
    check.until("not ready", lambda: proxy.readiness() != "ok", True)
    check("the metric", proxy.has("lockward_upstream_up 0"), True)
    check.until("clients are told", lambda: asked(proxy, "PING"), "UPSTREAM")
    server.start()
    check.until("ready again", proxy.readiness, "ok")
    check.until("the log tells", lambda: proxy.said("the server was restarted, or is another one"), True)
    check.until("the metric counts", lambda: proxy.has("lockward_upstream_changes_total 1"), True)
    check.until("somebody else gets the lock", lambda: asked(proxy, "SET", "lock:r", "2", "NX", "EX", "300"), "OK")
    check("and can release it", asked(proxy, "DEL", "lock:r"), "1")
    check.until("nothing is held", lambda: proxy.json("/api/v1/locks")["total"], 0)


def loading(check, options, folder):
    """It loads its data: its own word goes to the clients, and lockward is not ready until it is done."""
    with Slow(options.server, folder) as server:
        with server.connect() as direct:
            for number in range(KEYS):
                direct.ask("SET", "key:%d" % number, "x")
            check("saved", direct.ask("SAVE"), "OK")
        with Proxy(options.proxy, server, DEFAULT_RULES, folder, mode=options.mode) as proxy:
            check.until("ready", proxy.readiness, "ok")
            server.kill()
            server.start()
            check.until("clients hear it", lambda: asked(proxy, "SET", "lock:l", "1", "NX"), "LOADING")
            check.until("not ready: LOADING", lambda: "LOADING" in proxy.readiness(), True)
            check.until("ready again", proxy.readiness, "ok")
            check.until("acquire", lambda: asked(proxy, "SET", "lock:l", "1", "NX"), "OK")
        os.remove(os.path.join(folder, "dump.rdb"))


def replica(check, options, server, proxy, folder):
    """It became a replica."""
    with Server(options.server, folder) as master, proxy.connect() as holder, server.connect() as direct:
        check("acquire", holder.ask("SET", "lock:m", "1", "NX", "EX", "300"), "OK")
        direct.ask("REPLICAOF", "127.0.0.1", str(master.port))
        check.until("not ready", proxy.readiness, "the server is a replica and refuses writes")
        check("the metric", proxy.has('lockward_upstream_condition{condition="replica"} 1'), True)
        check("the log", proxy.said("the server is a replica"), True)
        check.until("acquire", lambda: asked(proxy, "SET", "lock:n", "1", "NX"), "READONLY")
        check("reads go on", asked(proxy, "EXISTS", "none") in ("0", "MASTERDOWN"), True)
        direct.ask("REPLICAOF", "NO", "ONE")
        check.until("ready again", proxy.readiness, "ok")
        check("the log again", proxy.said("the server is a master again"), True)
        check.until("acquire again", lambda: asked(proxy, "SET", "lock:n", "1", "NX"), "OK")
        check("release", asked(proxy, "DEL", "lock:n"), "1")


def full(check, server, proxy):
    """Its memory is full: no acquires, but releases and extends."""
    with proxy.connect() as holder, server.connect() as direct:
        check("acquire", holder.ask("SET", "lock:f", "1", "NX", "EX", "300"), "OK")
        direct.ask("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1")
        check("no acquire", code(holder.ask("SET", "lock:g", "1", "NX")), "OOM")
        check.until("the metric", lambda: proxy.has('lockward_upstream_condition{condition="full"} 1'), True)
        check("the log", proxy.said("the server's memory is full"), True)
        check("still ready", proxy.readiness(), "ok")
        check("extend", holder.ask("EXPIRE", "lock:f", "600"), 1)
        check("release", holder.ask("DEL", "lock:f"), 1)
        check("errors are counted", proxy.has('lockward_lock_acquires_total{outcome="error",rule="lock:*"} 0'), False)
        direct.ask("CONFIG", "SET", "maxmemory", "0")
        check.until("the metric again", lambda: proxy.has('lockward_upstream_condition{condition="full"} 0'), True)
        check("acquire again", holder.ask("SET", "lock:g", "1", "NX"), "OK")
        check("release again", holder.ask("DEL", "lock:g"), 1)
        direct.ask("CONFIG", "SET", "min-replicas-to-write", "1")
        check("no replicas", code(holder.ask("SET", "lock:g", "1", "NX")), "NOREPLICAS")
        direct.ask("CONFIG", "SET", "min-replicas-to-write", "0")
        check("acquire at last", holder.ask("SET", "lock:g", "1", "NX"), "OK")
        check("release at last", holder.ask("DEL", "lock:g"), 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--mode", default="dedicated")
    options = parser.parse_args()
    check = Check("conditions")
    with tempfile.TemporaryDirectory(prefix="lockward-conditions-") as folder:
        try:
            with Server(options.server, folder) as server, \
                    Proxy(options.proxy, server, DEFAULT_RULES, folder, mode=options.mode) as proxy:
                restarted(check, options, server, proxy)
                replica(check, options, server, proxy, folder)
                full(check, server, proxy)
            loading(check, options, folder)
        except (WireError, OSError, RuntimeError) as error:
            check("no accident", error or type(error).__name__, None)
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
