"""Traffic that moves every metric about locks: each kind of thing that can happen to one happens here, for real.
"""
import time
import urllib.request

from harness import marks
from harness.resp import metric_sum

RULES = """
[[locks]]
name = "jobs"
pattern = "lock:*"
owner = "connection"
default_ttl = "30s"
max_ttl = "1h"

[[locks]]
name = "watched"
pattern = "seen:*"
owner = "connection"
mode = "observe"

[[locks]]
name = "kept"
pattern = "keep:*"
owner = "connection"
renew = true
max_hold = "1s"

[[locks]]
name = "spun"
pattern = "spin:*"
owner = "connection"
contention_shield = "1s"

[[locks]]
name = "forgetful"
pattern = "brief:*"
owner = "connection"
late_release_window = "1s"
"""

# What must have been counted when it is over, with at least these labels.
MOVED = [
    ("lockward_lock_acquires_total", {"rule": "jobs", "outcome": "granted"}),
    ("lockward_lock_acquires_total", {"rule": "jobs", "outcome": "contended"}),
    ("lockward_lock_acquires_total", {"rule": "jobs", "outcome": "error"}),
    ("lockward_lock_acquires_total", {"rule": "spun", "outcome": "contended"}),
    ("lockward_lock_shielded_total", {"rule": "spun"}),
    ("lockward_lock_releases_total", {"rule": "jobs", "outcome": "released"}),
    ("lockward_lock_releases_total", {"rule": "jobs", "outcome": "late"}),
    ("lockward_lock_releases_total", {"rule": "jobs", "outcome": "foreign"}),
    ("lockward_lock_releases_total", {"rule": "jobs", "outcome": "absent"}),
    ("lockward_lock_releases_total", {"rule": "jobs", "outcome": "forced"}),
    ("lockward_lock_refusals_total", {"rule": "jobs", "reason": "late", "action": "refused"}),
    ("lockward_lock_refusals_total", {"rule": "jobs", "reason": "foreign", "action": "refused"}),
    ("lockward_lock_refusals_total", {"rule": "jobs", "operation": "extend", "action": "refused"}),
    ("lockward_lock_refusals_total", {"rule": "jobs", "operation": "overwrite", "action": "refused"}),
    ("lockward_lock_refusals_total", {"rule": "watched", "reason": "foreign", "action": "observed"}),
    ("lockward_lock_expirations_total", {"rule": "jobs"}),
    ("lockward_lock_overlaps_total", {"rule": "jobs"}),
    ("lockward_lock_hold_seconds_count", {"rule": "jobs"}),
    ("lockward_lock_wait_seconds_count", {"rule": "jobs"}),
    ("lockward_lock_overrun_seconds_count", {"rule": "jobs"}),
    ("lockward_lock_ttl_injected_total", {"rule": "jobs"}),
    ("lockward_lock_ttl_reduced_total", {"rule": "jobs"}),
    ("lockward_lock_takeovers_total", {"rule": "jobs"}),
    ("lockward_lock_renewals_total", {"rule": "kept", "outcome": "extended"}),
    ("lockward_lock_renewals_total", {"rule": "kept", "outcome": "capped"}),
    ("lockward_lock_renewals_total", {"rule": "kept", "outcome": "lost"}),
    ("lockward_lock_debts_dropped_total", {"rule": "forgetful", "reason": "window"}),
    ("lockward_locks_held", {"rule": "jobs"}),
    ("lockward_lock_waiters", {"rule": "jobs"}),
    ("lockward_locks_without_ttl", {"rule": "watched"}),
    ("lockward_lock_oldest_age_seconds", {"rule": "jobs"}),
    ("lockward_commands_total", {"command": "set", "outcome": "ok"}),
    ("lockward_commands_total", {"command": "get", "outcome": "error"}),
    ("lockward_request_seconds_count", {"class": "lock"}),
    ("lockward_request_seconds_count", {"class": "other"}),
    ("lockward_upstream_seconds_count", {"class": "lock"}),
    ("lockward_downstream_connections", {}),
    ("lockward_upstream_connections", {}),
    ("lockward_upstream_up", {}),
    ("lockward_transferred_bytes_total", {"side": "downstream", "direction": "in"}),
    ("lockward_transferred_bytes_total", {"side": "upstream", "direction": "out"}),
]


def until(what, condition, limit=10.0):
    """Waits for a condition; what it gave at last is handed on."""
    deadline = time.monotonic() + limit
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise RuntimeError("not within %d s: %s" % (limit, what))
        time.sleep(0.02)


def gone(server, key):
    with server.connect() as direct:
        until("%s expires" % key, lambda: direct.ask("EXISTS", key) == 0)


def play(server, proxy):
    """Leaves two clients connected, who hold locks; the caller closes them."""
    first, second = proxy.connect(), proxy.connect()
    for prefix in ("lock:", "seen:"):
        overrun(server, first, second, prefix)
    policies(first, second)
    errors(server, first)
    renewal(server, proxy, first)
    spin(first, second)
    forget_a_debt(server, first)
    first.ask("SET", "lock:forced", marks.LOCK_VALUE, "NX", "EX", "60")
    force(proxy, "lock:forced")
    first.ask("SET", "seen:for-ever", "1", "NX")
    first.ask("SET", "lock:end", "1", "NX", "EX", "60")
    second.ask("SET", "lock:end", "1", "NX", "EX", "60")
    return first, second


def overrun(server, first, second, prefix):
    """The founding bug, then a foreign release, a wait, and a release of a free lock."""
    key = prefix + "a"
    first.ask("SET", key, "1", "NX", "PX", "40")
    gone(server, key)
    second.ask("SET", key, "1", "NX", "EX", "60")
    first.ask("DEL", key)
    second.ask("SET", key, "1", "NX", "EX", "60")       # granted again where the rule only observes
    first.ask("DEL", key)
    second.ask("SET", key, "1", "NX", "EX", "60")
    first.ask("SET", key, "1", "NX", "EX", "60")
    first.ask("EXPIRE", key, "5")
    first.ask("SET", key, "2")
    second.ask("SET", key, "1")
    second.ask("DEL", key)
    first.ask("SET", key, "1", "NX", "EX", "60")
    first.ask("DEL", key)
    first.ask("DEL", key)


def policies(first, second):
    first.ask("SETNX", "lock:b", "1")
    first.ask("SET", "lock:c", "1", "NX", "EX", "999999")
    second.ask("GETSET", "lock:b", "2")


def errors(server, first):
    first.ask("LPUSH", "list", "x")
    first.ask("GET", "list")
    with server.connect() as direct:
        direct.ask("CONFIG", "SET", "maxmemory", "1")
        first.ask("SET", "lock:no-memory", "1", "NX", "EX", "60")
        direct.ask("CONFIG", "SET", "maxmemory", "0")


def renewal(server, proxy, first):
    """One lease is renewed up to max_hold; another is deleted past lockward while it is renewed."""
    def renewed(outcome):
        return metric_sum(proxy.metrics(), 'lockward_lock_renewals_total{rule="kept",outcome="%s"}' % outcome)

    first.ask("SET", "keep:x", "1", "NX", "PX", "600")
    until("a renewal", lambda: renewed("extended"))
    until("the end of renewal at max_hold", lambda: renewed("capped"))
    first.ask("SET", "keep:y", "1", "NX", "PX", "600")
    with server.connect() as direct:
        direct.ask("DEL", "keep:y")
    until("a lost lease", lambda: renewed("lost"))


def spin(first, second):
    """The second of these tries is asked of the server, since its connection is new to it; some of the rest are not."""
    first.ask("SET", "spin:a", "1", "NX", "EX", "60")
    for _ in range(5):
        second.ask("SET", "spin:a", "1", "NX", "EX", "60")


def forget_a_debt(server, first):
    """Two leases expire; by the second expiry the first one's debt is older than late_release_window, and the third
    acquire drops it."""
    for ttl in ("20", "1200"):
        first.ask("SET", "brief:1", "1", "NX", "PX", ttl)
        gone(server, "brief:1")
    first.ask("SET", "brief:1", "1", "NX", "EX", "60")


def force(proxy, key):
    url = "http://127.0.0.1:%d/api/v1/locks/%s?reason=scene" % (proxy.admin_port, key)
    request = urllib.request.Request(url, method="DELETE", headers={"Authorization": "Bearer " + marks.ADMIN_TOKEN})
    with urllib.request.urlopen(request, timeout=5) as answer:
        answer.read()
