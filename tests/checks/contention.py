#!/usr/bin/env python3
"""64 clients fight for one lock and two hold it too long: lockward shows what they themselves measured.

    tests/checks/contention.py --proxy PATH --server PATH [--only TEXT]

Once with an enforce rule, once with an observe rule (fight.py plays it). Afterwards one scrape of /metrics must agree:
counts exactly, times within what the clients know of them. A client knows that lockward saw an event between the moment
when it sent the command and the moment when it had the answer, so each figure has a least and a greatest value that
follow from its own clock, and no tolerance is chosen. While one holds the lock and 63 wait, the API and `lockward top`
name the same holder and the same waiters as the clients.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, ".."), os.path.join(HERE, "..", "prometheus")]
from fight import CLIENTS, KEY, SLOW, Fight     # noqa: E402
from harness import marks                       # noqa: E402
from harness.processes import Proxy, Server     # noqa: E402
from promql import Exposition                   # noqa: E402

RULES = """
[[locks]]
name = "hot"
pattern = "lock:*"
owner = "client-name"
mode = "%s"
"""
# Milliseconds that are cut off where a time is the difference of two clocks that count whole ones.
CUT = 0.001
EXPIRY_LIMIT = 5.0      # seconds until the last expiration must be counted


class Wrong(Exception):
    """A figure that does not agree."""


def expect(what, got, wanted):
    if got != wanted:
        raise Wrong("%s: lockward says %r, the clients %r" % (what, got, wanted))


def expect_between(what, got, least, most):
    if not least <= got <= most:
        raise Wrong("%s: lockward says %r, the clients between %r and %r" % (what, got, least, most))


class Played:
    """One fight, what was seen while it stood still, and the scrape afterwards."""

    def __init__(self, options, server, proxy, mode):
        self.program, self.proxy, self.mode, self.still = options.proxy, proxy, mode, None
        self.fight = Fight(proxy, marks.LOCK_VALUE)
        self.fight.run(self.look)
        self.overruns = [hold for hold in self.fight.holds() if hold.overran]
        deadline = time.monotonic() + EXPIRY_LIMIT
        while True:         # a lease that ran out is looked at by lockward a little later
            self.text = proxy.metrics()
            self.metrics = Exposition(self.text)
            if self.total("lockward_lock_expirations_total") >= len(self.overruns) or time.monotonic() > deadline:
                break
            time.sleep(0.05)

    def look(self, holder, others):
        """What lockward shows at this moment, and what the clients know of it."""
        asked = time.monotonic()
        listed = self.proxy.json("/api/v1/locks")
        detail = self.proxy.json("/api/v1/locks/%s" % KEY)
        rules = self.proxy.json("/api/v1/rules")
        text = self.proxy.metrics()
        top = subprocess.run([self.program, "top", "--once", "--config", self.proxy.config], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=20)
        self.still = {"holder": holder.name, "hold": holder.holds[-1], "asked": asked, "answered": time.monotonic(),
                      "waiting": {client.name: client.waiting() for client in others}, "list": listed,
                      "detail": detail, "rules": rules, "metrics": Exposition(text), "top": top}

    def total(self, name, **labels):
        return self.metrics.total(name, rule="hot", **labels)

    def buckets(self, name):
        """(upper bound, number of observations at or under it), ascending."""
        return sorted((float(labels["le"]), self.total(name + "_bucket", le=labels["le"]))
                      for labels in self.metrics.series[name + "_bucket"] if labels["rule"] == "hot")


# ---- counts -----------------------------------------------------------------------------

def clients_saw_what_was_staged(played):
    """No use in comparing if the clients themselves saw no fight."""
    expect("overruns", 2, len(played.overruns))
    expect("overlaps", 2, played.fight.overlaps)
    refused = sum(not attempt.granted for attempt in played.fight.tries())
    if refused < 2 * CLIENTS:
        raise Wrong("only %d tries were refused" % refused)
    late = 0 if played.mode == "enforce" else 1
    expect("answers to a late DEL", [late, late], [hold.reply for hold in played.overruns])
    return "%d grants, %d tries refused, %d waits" % (
        len(played.fight.holds()), refused, len(played.fight.waits()))


def counts_agree(played):
    """Acquires, releases, refusals, expirations and overlaps: exactly."""
    tries, holds = played.fight.tries(), played.fight.holds()
    late = len(played.overruns)
    released = sum(hold.reply == 1 and not hold.overran for hold in holds)
    lost = sum(hold.reply == 0 and not hold.overran for hold in holds)    # observed: deleted by a late DEL
    expect("granted", played.total("lockward_lock_acquires_total", outcome="granted"), len(holds))
    expect("contended", played.total("lockward_lock_acquires_total", outcome="contended"),
           sum(not attempt.granted for attempt in tries))
    expect("errors", played.total("lockward_lock_acquires_total", outcome="error"), 0)
    expect("released", played.total("lockward_lock_releases_total", outcome="released"), released)
    expect("late", played.total("lockward_lock_releases_total", outcome="late"), late)
    expect("absent", played.total("lockward_lock_releases_total", outcome="absent"), lost)
    expect("all releases", played.total("lockward_lock_releases_total"), len(holds))
    action = "refused" if played.mode == "enforce" else "observed"
    expect("refusals", played.total("lockward_lock_refusals_total", operation="release", reason="late", action=action), late)
    expect("all refusals", played.total("lockward_lock_refusals_total"), late)
    expect("expirations", played.total("lockward_lock_expirations_total"), late)
    expect("overlaps", played.total("lockward_lock_overlaps_total"), played.fight.overlaps)
    expect("held at the end", played.total("lockward_locks_held"), 0)
    expect("waiting at the end", played.total("lockward_lock_waiters"), 0)
    return "%d late, %d overlaps" % (late, played.fight.overlaps)


def totals_of_the_rule_agree(played):
    """/api/v1/rules says the same as /metrics."""
    (rule,) = [rule for rule in played.proxy.json("/api/v1/rules") if rule["name"] == "hot"]
    for name, wanted in (("granted", ("acquires_total", {"outcome": "granted"})),
                         ("contended", ("acquires_total", {"outcome": "contended"})),
                         ("released", ("releases_total", {"outcome": "released"})),
                         ("late", ("releases_total", {"outcome": "late"})),
                         ("foreign", ("releases_total", {"outcome": "foreign"})),
                         ("expired", ("expirations_total", {})), ("overlaps", ("overlaps_total", {})),
                         ("refused", ("refusals_total", {"action": "refused"})),
                         ("would_refuse", ("refusals_total", {"action": "observed"}))):
        expect("totals.%s" % name, rule["totals"][name], played.total("lockward_lock_" + wanted[0], **wanted[1]))
    return "%d granted" % rule["totals"]["granted"]


# ---- times ------------------------------------------------------------------------------

def spread_agrees(played, name, bounds):
    """A histogram against (least, greatest) of each thing measured: how many, every bucket, and the sum."""
    expect("%s_count" % name, played.total(name + "_count"), len(bounds))
    for upper, counted in played.buckets(name):
        expect_between("%s at most %g s" % (name, upper), counted, sum(most <= upper for _, most in bounds),
                       sum(least <= upper for least, _ in bounds))
    # What was recorded is at least 0, and its sum is kept in whole microseconds.
    expect_between("%s_sum" % name, played.total(name + "_sum"), sum(max(least, 0) for least, _ in bounds) - 1e-6 * len(bounds),
                   sum(most for _, most in bounds) + 1e-6 * len(bounds))


def quantile(values, share):
    """The least value that at least this share of the values does not exceed."""
    return sorted(values)[max(0, -int(-share * len(values) // 1) - 1)]


def bucket_of(buckets, value):
    return next(number for number, (upper, _) in enumerate(buckets) if value <= upper)


def waits_agree(played):
    """From the first refused try to the grant; and the bucket in which the 95th of 100 lies."""
    waits = played.fight.waits()
    spread_agrees(played, "lockward_lock_wait_seconds", waits)
    buckets = played.buckets("lockward_lock_wait_seconds")
    shown = next(number for number, (_, counted) in enumerate(buckets) if counted >= 0.95 * len(waits))
    least, most = (quantile([wait[end] for wait in waits], 0.95) for end in (0, 1))
    expect_between("the bucket of the 95th of 100 waits", shown, bucket_of(buckets, least), bucket_of(buckets, most))
    return "95 of 100 waited at most %.0f ms by the clients' clocks, in the bucket up to %g s" % (
        1000 * most, buckets[shown][0])


def holds_agree(played):
    """From the grant to the end of the lease, which for the slow ones came by their TTL."""
    bounds = []
    for hold in played.fight.holds():
        if hold.overran:
            bounds.append((hold.ttl - 2 * CUT, hold.ttl + 2 * CUT))
        elif hold.reply == 1:
            bounds.append((hold.sent - hold.acquire.answered - CUT, hold.answered - hold.acquire.sent + CUT))
    spread_agrees(played, "lockward_lock_hold_seconds", bounds)
    return "%d holds, %.2f s in all" % (len(bounds), played.total("lockward_lock_hold_seconds_sum"))


def overruns_agree(played):
    """From the expiry to the late release."""
    bounds = [(hold.sent - hold.acquire.answered - hold.ttl - 2 * CUT, hold.answered - hold.acquire.sent - hold.ttl + 2 * CUT)
              for hold in played.overruns]
    spread_agrees(played, "lockward_lock_overrun_seconds", bounds)
    return "%.0f ms in all" % (1000 * played.total("lockward_lock_overrun_seconds_sum"))


# ---- the moment when one holds and 63 wait -------------------------------------------------

def check_holder(played, lock):
    still = played.still
    expect("the holder", (lock["owner"], lock["client_name"], lock["connected"]),
           ("client-name=" + still["holder"], still["holder"], True))
    expect("the key, its rule and mode", (lock["key"], lock["rule"], lock["mode"]), (KEY, "hot", played.mode))
    expect("how many wait", lock["waiting"], len(still["waiting"]))
    acquire = still["hold"].acquire
    expect_between("held_ms", lock["held_ms"], 1000 * (still["asked"] - acquire.answered) - 1,
                   1000 * (still["answered"] - acquire.sent) + 1)


def check_waiters(played, waiters):
    """Each of them: since when it waits, and how often it tried."""
    still = played.still
    for waiter in waiters:
        first, tries = still["waiting"][waiter["client_name"]]
        expect("the owner", waiter["owner"], "client-name=" + waiter["client_name"])
        expect("tries of %s" % waiter["client_name"], waiter["tries"], tries)
        expect_between("waited_ms of %s" % waiter["client_name"], waiter["waited_ms"],
                       1000 * (still["asked"] - first.answered) - 1, 1000 * (still["answered"] - first.sent) + 1)


def the_list_shows_holder_and_waiters(played):
    """/api/v1/locks: one lock, and the 16 that have waited longest."""
    listed = played.still["list"]
    expect("locks", (listed["total"], listed["matched"], len(listed["locks"])), (1, 1, 1))
    check_holder(played, listed["locks"][0])
    waiters = listed["locks"][0]["waiters"]
    expect("waiters in a list", len(waiters), 16)
    check_waiters(played, waiters)
    # Two first tries may have overlapped, so who is the longest is known up to that.
    latest = max(played.still["waiting"][waiter["client_name"]][0].sent for waiter in waiters)
    named = {waiter["client_name"] for waiter in waiters}
    earlier = [name for name, (first, _) in played.still["waiting"].items()
               if first.answered < latest and name not in named]
    if earlier:
        raise Wrong("not listed, though they wait longer: %s" % ", ".join(earlier))
    return "held by %s" % listed["locks"][0]["client_name"]


def the_detail_shows_all_waiters(played):
    """/api/v1/locks/{key}: the same holder, and each of the 63."""
    known = played.still["detail"]["known"]
    check_holder(played, known["lease"])
    expect("who waits", sorted(waiter["client_name"] for waiter in known["waiters"]), sorted(played.still["waiting"]))
    check_waiters(played, known["waiters"])
    order = [waiter["first_ms"] for waiter in known["waiters"]]
    expect("the longest first", order, sorted(order))
    if played.mode == "enforce":
        expect("the holder in the server", played.still["detail"]["owner"], "client-name=" + played.still["holder"])
    return "%d waiters" % len(known["waiters"])


def gauges_show_the_moment(played):
    """/metrics and /api/v1/rules at that moment."""
    expect("held", played.still["metrics"].total("lockward_locks_held", rule="hot"), 1)
    expect("waiters", played.still["metrics"].total("lockward_lock_waiters", rule="hot"), CLIENTS - 1)
    (rule,) = [rule for rule in played.still["rules"] if rule["name"] == "hot"]
    expect("held and waiters of the rule", (rule["held"], rule["waiters"]), (1, CLIENTS - 1))
    return "1 held, %d wait" % (CLIENTS - 1)


def top_shows_the_moment(played):
    """`lockward top --once`: a line with the key, the holder's name and the number of waiters."""
    top = played.still["top"]
    expect("its exit code", top.returncode, 0)
    lines = [line.split() for line in top.stdout.splitlines() if KEY in line.split()]
    if len(lines) != 1:
        raise Wrong("lines with %s: %d in\n%s" % (KEY, len(lines), top.stdout))
    words = " ".join(lines[0])
    if played.still["holder"] not in words or str(CLIENTS - 1) not in lines[0]:
        raise Wrong("neither holder nor number of waiters in %r" % words)
    return words


CHECKS = [clients_saw_what_was_staged, counts_agree, totals_of_the_rule_agree, waits_agree, holds_agree, overruns_agree,
          the_list_shows_holder_and_waiters, the_detail_shows_all_waiters, gauges_show_the_moment, top_shows_the_moment]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--only", default="", help="only checks whose name holds this text")
    options = parser.parse_args()
    if not options.server:
        sys.exit("contention: no redis-server or valkey-server on PATH: use --server $(scripts/get-server)")
    passed = failed = 0
    for mode in ("enforce", "observe"):
        with tempfile.TemporaryDirectory(prefix="lockward-contention-") as folder, \
                Server(options.server, folder) as server, Proxy(options.proxy, server, RULES % mode, folder) as proxy:
            played = Played(options, server, proxy, mode)
            for check in CHECKS:
                name = "%s, %s" % (mode, check.__name__.replace("_", " "))
                if options.only not in name:
                    continue
                try:
                    print("ok    %s: %s" % (name, check(played)), flush=True)
                    passed += 1
                except (Wrong, OSError, KeyError, ValueError, StopIteration) as error:
                    print("FAIL  %s: %s" % (name, error or type(error).__name__), flush=True)
                    failed += 1
            played.fight.close()
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
