#!/usr/bin/env python3
"""A running lockward takes other settings: by SIGHUP and by POST /-/reload, all or nothing, under load, without a client
noticing but by what the new rules do.

    tests/checks/reload.py --proxy PATH --server PATH [--mode MODE]
"""
import argparse
import os
import shutil
import signal
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]
from harness.checking import Check              # noqa: E402
from harness.processes import Proxy, Server     # noqa: E402
from harness.resp import WireError              # noqa: E402

LIMIT = 20.0            # seconds until something must be so
# Owners are connections here: all clients of this check come from one address.
RULE = '[[locks]]\nname = "%s"\npattern = "%s:*"\nmode = "%s"\nowner = "connection"\n'
FIRST = RULE % ("jobs", "job", "observe") + RULE % ("locks", "lock", "enforce")
SECOND = RULE % ("locks", "lock", "enforce") + RULE % ("jobs", "job", "enforce") + RULE % ("new", "new", "enforce")


class Reloaded(Proxy):
    """A lockward whose file can be changed."""

    def write(self, rules, log="info", more=""):
        """The file with other rules; what stands before them stays."""
        with open(self.config) as file:
            text = file.read()
        head, upstream = text[:text.index("[[locks]]")], text[text.index("\n[upstream]"):]
        head = head.split("[log]")[0].rstrip("\n") + '\n\n[log]\nlevel = "%s"\n\n' % log
        with open(self.config, "w") as file:
            file.write(head + rules + more + upstream)

    def reloads(self, outcome):
        return self.metric('lockward_config_reload_total{outcome="%s"}' % outcome)

    def metric(self, name):
        return next((float(line.split(" ")[-1]) for line in self.metrics().splitlines()
                     if line.startswith(name + " ")), None)

    def of_rule(self, name, rule, outcome):
        return self.metric('lockward_lock_%s_total{outcome="%s",rule="%s"}' % (name, outcome, rule))


class Traffic(threading.Thread):
    """Requests one after the other on one connection, until told to stop: how many, and what was answered wrongly."""

    def __init__(self, proxy, number):
        super().__init__(daemon=True)
        self.proxy, self.number, self.over, self.count, self.faults = proxy, number, threading.Event(), 0, []

    def run(self):
        try:
            with self.proxy.connect() as client:
                while not self.over.is_set():
                    key = "lock:traffic:%d" % self.number
                    for words, wanted in ((("SET", key, "1", "NX", "PX", "30000"), "OK"), (("DEL", key), 1),
                                          (("INCR", "count:%d" % self.number), None)):
                        answer = client.ask(*words)
                        self.count += 1
                        if wanted is not None and answer != wanted:
                            self.faults.append((words, answer))
        except (WireError, OSError) as error:
            self.faults.append(error or type(error).__name__)


def rules_change(check, proxy):
    """What open connections do with keys whose rules change."""
    with proxy.connect() as holder, proxy.connect() as other:
        check("observed: acquire", holder.ask("SET", "job:1", "1", "NX", "EX", "60"), "OK")
        check("observed: another's DEL", other.ask("DEL", "job:1"), 1)
        check("enforced: acquire", holder.ask("SET", "lock:1", "1", "NX", "EX", "60"), "OK")
        check("no rule: SET", other.ask("SET", "new:1", "1"), "OK")
        other.ask("DEL", "new:1")

        proxy.write(SECOND)
        proxy.signal(signal.SIGHUP)
        check.until("SIGHUP is done", lambda: proxy.reloads("ok"), 1.0)
        check("the log says it", proxy.said('rule "jobs", mode: observe -> enforce'), True)
        check("the new rule is said", proxy.said('rule "new" is new: new:*, enforce'), True)
        check("now enforced: acquire", holder.ask("SET", "job:1", "1", "NX", "EX", "60"), "OK")
        check("now enforced: another's DEL", other.ask("DEL", "job:1"), 0)
        check("its own DEL", holder.ask("DEL", "job:1"), 1)
        check("a lease of before: another's DEL", other.ask("DEL", "lock:1"), 0)
        check("a lease of before: its own DEL", holder.ask("DEL", "lock:1"), 1)
        check("the new rule: acquire", holder.ask("SET", "new:1", "1", "NX", "EX", "60"), "OK")
        check("the new rule: another's DEL", other.ask("DEL", "new:1"), 0)
        check("rules in order", [rule["name"] for rule in proxy.json("/api/v1/rules")], ["locks", "jobs", "new"])
        check("the table", [lock["key"] for lock in proxy.json("/api/v1/locks")["locks"]], ["new:1"])

        proxy.write(RULE % ("jobs", "job", "off") + RULE % ("locks", "lock", "enforce"))
        check("POST", proxy.post("/-/reload"), (200, {"applied": [
            'rule "jobs", mode: enforce -> off', 'rule "new" is gone', "the order of the rules"], "needs_restart": []}))
        check("the rule that is gone: another's DEL", other.ask("DEL", "new:1"), 1)
        check("nothing is held by it", proxy.json("/api/v1/locks")["locks"], [])
        # Its series goes on when it comes again.
        proxy.write(SECOND)
        check("again", proxy.post("/-/reload")[0], 200)
        check("acquires of both times", holder.ask("SET", "new:1", "1", "NX"), "OK")
        check("are counted together", proxy.of_rule("acquires", "new", "granted"), 2.0)
        check("DEL", holder.ask("DEL", "new:1"), 1)


def silent_clients(check, proxy):
    """Connections that send nothing go by the new rules too: they count for their owner, and who was only carried ends."""
    leaving = ('[[locks]]\nname = "left"\npattern = "left:*"\nmode = "%s"\nowner = "address"\n'
               'release_on_disconnect = true\ndisconnect_grace = "300ms"\n')
    proxy.write(leaving % "observe")
    check("only observed", proxy.post("/-/reload")[0], 200)
    with proxy.connect() as idle, proxy.connect() as carried, proxy.connect() as other:
        check("idle", idle.ask("PING"), "PONG")
        carried.send(b"CLIENT REPLY SKIP\r\nECHO unheard\r\nPING\r\n")
        check("carried", carried.reply(), "PONG")
        proxy.write(leaving % "enforce")
        check("enforced", proxy.post("/-/reload")[0], 200)
        check("who was carried past the rules is closed", carried.is_closed(LIMIT), True)
        holder = proxy.connect()
        check("acquire", holder.ask("SET", "left:1", "1", "NX", "EX", "60"), "OK")
        holder.close()
        # As long as anything could happen to it, and longer.
        time.sleep(1.5)
        check("its owner is still here", other.ask("EXISTS", "left:1"), 1)
        check("and releases it", other.ask("DEL", "left:1"), 1)
    proxy.write(SECOND)
    check("the rules of before", proxy.post("/-/reload")[0], 200)


def faults_change_nothing(check, proxy):
    """A faulty file, a wrong token, and what waits for a restart."""
    done = proxy.reloads("ok")
    proxy.write(SECOND, log="loud")
    proxy.signal(signal.SIGHUP)
    check.until("a faulty file is found", lambda: proxy.reloads("error"), 1.0)
    check("the log says where", proxy.said("%s:" % proxy.config) and proxy.said("log.level"), True)
    status, body = proxy.post("/-/reload")
    check("by HTTP", (status, "log.level" in body["error"] and proxy.config in body["error"]), (422, True))
    check("the metric says so", proxy.metric("lockward_config_reload_successful"), 0.0)
    with proxy.connect() as holder, proxy.connect() as other:
        check("still enforced: acquire", holder.ask("SET", "new:2", "1", "NX"), "OK")
        check("still enforced: another's DEL", other.ask("DEL", "new:2"), 0)
        check("DEL", holder.ask("DEL", "new:2"), 1)
    proxy.write(SECOND)
    with open(proxy.config) as file:
        whole = file.read()
    with open(proxy.config, "w") as file:
        file.write(whole[:whole.index("[[locks]]")])
    status, body = proxy.post("/-/reload")
    check("a file that was cut off", (status, "no [[locks]]" in body["error"]), (422, True))
    with open(proxy.config, "w") as file:
        file.write(whole)
    os.rename(proxy.config, proxy.config + ".away")
    check("no file", proxy.post("/-/reload")[0], 422)
    os.rename(proxy.config + ".away", proxy.config)
    check("a wrong token", proxy.post("/-/reload", token="wrong")[0], 401)
    check("none of these was one", proxy.reloads("ok"), done)
    proxy.write(SECOND, log="debug", more='\n[records]\nprefix = "other:"\n')
    check("what waits for a restart", proxy.post("/-/reload"), (
        200, {"applied": ["log.level: info -> debug"], "needs_restart": ["records.prefix"]}))
    with proxy.connect() as client:
        client.ask("PING")
    check.until("the level is in force", lambda: proxy.said("DEBUG"), True)
    check("the metric is well again", proxy.metric("lockward_config_reload_successful"), 1.0)
    proxy.write(SECOND)
    proxy.post("/-/reload")


def under_load(check, proxy):
    """Fifty reloads while eight clients work."""
    clients = [Traffic(proxy, number) for number in range(8)]
    for client in clients:
        client.start()
    check.until("traffic flows", lambda: all(client.count > 10 for client in clients), True)
    for turn in range(50):
        proxy.write(FIRST if turn % 2 else SECOND)
        check("reload %d" % turn, proxy.post("/-/reload")[0], 200)
    for client in clients:
        client.over.set()
    for client in clients:
        client.join(LIMIT)
    check("wrong answers under load", [fault for client in clients for fault in client.faults], [])
    check.until("nothing is held any more", lambda: proxy.json("/api/v1/locks")["total"], 0)
    granted = proxy.of_rule("acquires", "locks", "granted")
    released = proxy.of_rule("releases", "locks", "released")
    check("every grant has its release", granted == released and granted > 100, True)


def limit_changes(check, proxy):
    """Fewer clients."""
    with open(proxy.config) as file:
        text = file.read()
    with open(proxy.config, "w") as file:
        file.write(text.replace("[listen]\n", "[listen]\nmax_connections = 2\n", 1))
    check("a lower limit", proxy.post("/-/reload"), (
        200, {"applied": ["listen.max_connections: 10000 -> 2"], "needs_restart": []}))
    check.until("the clients of before have left", lambda: proxy.metric("lockward_downstream_connections"), 0.0)
    with proxy.connect() as first, proxy.connect() as second, proxy.connect() as third:
        check("the first", first.ask("PING"), "PONG")
        check("the second", second.ask("PING"), "PONG")
        check("the third", str(third.reply()), "ERR max number of clients reached")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--mode", default="dedicated")
    options = parser.parse_args()
    check = Check("reload", LIMIT)
    with tempfile.TemporaryDirectory(prefix="lockward-reload-") as folder:
        try:
            with Server(options.server, folder) as server, \
                    Reloaded(options.proxy, server, FIRST, folder, mode=options.mode) as proxy:
                for part in (rules_change, silent_clients, faults_change_nothing, under_load, limit_changes):
                    part(check, proxy)
        except (WireError, OSError, RuntimeError) as error:
            check("no accident", error or type(error).__name__, None)
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
