#!/usr/bin/env python3
"""The checker is tested: it finds each fault that is planted, and finds none where there is none.

    tests/chaos/planted.py --proxy PATH --server PATH [--written] [--only TEXT]

First histories written by hand, each with its fault and once more with what makes it innocent. Then real runs with a fault
in them: clients directly on the server, a shim that breaks promises, somebody who changes locks past lockward.
"""
import argparse
import glob
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import checker                          # noqa: E402
import layout                           # noqa: E402
import overwritten                      # noqa: E402
import written                          # noqa: E402
from harness.checking import Check      # noqa: E402
from history import History             # noqa: E402
from keeper import end_orderly          # noqa: E402
from scene import Scene                 # noqa: E402

DROPPED = 5.5       # until a client has given up the reply that does not come
BESIDE = 3          # runs at the same time
PACE = 2.0          # so that a lease is long beside what an operation takes, also on a busy machine
TRAFFIC = 700_000   # bytes of history that clients write in the meantime, at least
LIMIT = 20.0        # seconds until a fault must have been planted


def real(options, act, direct=False, cast="chaos"):
    """The kinds of faults that the checker finds in a run while `act(scene)` plants one."""
    told = SimpleNamespace(proxy=options.proxy, server=options.server, mode=options.mode, seed=options.seed, pace=PACE,
                           faketime=None)
    with tempfile.TemporaryDirectory(prefix="lockward-planted-") as folder:
        with Scene(told, folder, direct=direct, cast=cast) as scene:
            scene.begin()
            traffic(scene, TRAFFIC // 10)
            act(scene)
            traffic(scene, TRAFFIC)
            time.sleep(DROPPED if act in SILENT else 0)
            scene.stop_clients()
        return {what for what, _, _ in checker.judge(History().read(scene.history)).found}


def traffic(scene, size):
    """Waits until so much more has happened."""
    def written_by_clients():
        return sum(os.path.getsize(path) for path in glob.glob(os.path.join(scene.history, "c*.history")))

    wanted, deadline = written_by_clients() + size, time.monotonic() + 3 * LIMIT
    while written_by_clients() < wanted:
        if time.monotonic() > deadline:
            raise RuntimeError("hardly anything happens")
        time.sleep(0.05)


def nothing(scene):
    """What all others are compared with."""


def plant(what, count=3, waited=None):
    """So many times, of which it waits for all or for the first `waited`."""
    def act(scene):
        scene.tell(do="plant", what=what, count=count)
        deadline = time.monotonic() + LIMIT
        while scene.tell(do="count")["counts"].get("planted", 0) < (waited or count):
            if time.monotonic() > deadline:
                raise RuntimeError("%s came to nothing" % what)
            time.sleep(0.05)
    return act


def past_lockward(*words):
    """Somebody changes locks directly on the server, as often as one is there."""
    def act(scene):
        done, deadline = 0, time.monotonic() + LIMIT
        with scene.server.connect() as direct:
            while done < 20 and time.monotonic() < deadline:
                key = "lock:addr:%d" % (done % 3)
                done += direct.ask(*[key if word == "KEY" else word for word in words]) in (1, "OK")
                time.sleep(0.005)
        if not done:
            raise RuntimeError("no lock was there to change")
    return act


def renewed_after_expiry(scene):
    """Somebody who keeps locks beyond their TTL, whosever they were."""
    done, deadline = 0, time.monotonic() + LIMIT
    with scene.server.connect() as direct:
        while done < 20 and time.monotonic() < deadline:
            for number in range(3):
                if 0 < direct.ask("PTTL", "lock:addr:%d" % number) < 100:
                    done += direct.ask("PEXPIRE", "lock:addr:%d" % number, 400)
            time.sleep(0.005)
    if not done:
        raise RuntimeError("no lock was there to renew")


def configured(old, new):
    """The rules of both proxies say something else from here on."""
    def act(scene):
        for proxy in scene.proxies.values():
            with open(proxy.config) as file:
                text = file.read()
            if old not in text:
                raise RuntimeError("no rule says %s" % old)
            with open(proxy.config, "w") as file:
                file.write(text.replace(old, new))
            os.kill(proxy.pid(), signal.SIGHUP)
    return act


def held_for_ever(scene):
    """Renewal does not end, and no client gives anything up for a while."""
    configured('max_hold = "2000ms"', 'max_hold = "60s"')(scene)
    time.sleep(1.0)
    held, deadline = 0, time.monotonic() + LIMIT
    with scene.server.connect() as direct:
        while not held and time.monotonic() < deadline:
            clients_told(scene, signal.SIGCONT)
            time.sleep(0.1)
            clients_told(scene, signal.SIGSTOP)
            # What was on its way has come by then.
            time.sleep(0.2)
            held = direct.ask("EXISTS", *[key for key in layout.all_keys("chaos") if key.startswith("lock:renew:")])
    time.sleep(3.5)
    clients_told(scene, signal.SIGCONT)
    if not held:
        raise RuntimeError("no lock was held that is renewed")


def clients_told(scene, number):
    for client in scene.clients.values():
        os.kill(client.child.pid, number)


def token_put_back(scene):
    """The tokens of all locks were far ahead, and are not any more."""
    with scene.server.connect() as direct:
        clocks = [key for key in direct.ask("KEYS", "lockward:*") if key.endswith(b"=")]
        if not clocks:
            raise RuntimeError("there is no fence key")
        for value in (b"9000000000000000", b"1"):
            for key in clocks:
                direct.ask("SET", key, value)
            time.sleep(1.0)


DROP, DEAF = plant("drop"), plant("deaf")
SILENT = (DROP, DEAF)
REAL = (
    ("nothing planted", nothing, "through", None),
    ("plain DEL: the founding bug", nothing, "directly", checker.TOOK_EFFECT),
    ("plain DEL: two holders", nothing, "directly", checker.TWO_HOLDERS),
    ("EXPIRE by a loser", nothing, "directly", checker.TTL_CHANGED),
    ("plain SET: another's lock overwritten", nothing, "directly", checker.OVERWRITTEN),
    ("debts that nobody remembers", nothing, "forgetful", checker.TOOK_EFFECT),
    ("an acquire that is sent again", plant("retry"), "through", checker.NOT_FREE),
    ("two replies swapped", plant("swap"), "through", checker.REPLIES),
    ("a reply doubled", plant("double"), "through", checker.REPLIES),
    ("a reply dropped", DROP, "through", checker.REPLIES),
    ("an ECHO that is not answered", DEAF, "through", checker.REPLIES),
    ("a connection that ends", plant("end"), "through", checker.LOST),
    ("a server said to be away", plant("away"), "through", checker.LOST),
    ("memory said to be full", plant("full"), "through", checker.UNTRUE),
    ("a sum too small", plant("few"), "through", checker.UNTRUE),
    ("a refused release said to be done", plant("claim"), "through", checker.TOOK_EFFECT),
    ("an overwrite said to be refused", plant("refuse", 12), "through", checker.UNTRUE),
    ("a refused overwrite said to be done", plant("pretend", 1000, 20), "through", checker.OVERWRITTEN),
    ("an overwrite that does nothing", plant("idle", 20), "through", checker.VANISHED),
    ("renewal after expiry", renewed_after_expiry, "through", checker.NOT_FREE),
    ("renewal that does not come", configured("renew = true", "renew = false"), "through", checker.VANISHED),
    ("renewal that does not end", held_for_ever, "through", checker.NOT_FREE),
    ("a fencing token that falls", token_put_back, "through", checker.NOT_GROWN),
    ("a lock that stays", past_lockward("SET", "KEY", "somebody", "PX", "3000", "NX"), "through", checker.NOT_FREE),
    ("a TTL taken off", past_lockward("PERSIST", "KEY"), "through", checker.TTL_CHANGED),
    ("a lock deleted past lockward", past_lockward("DEL", "KEY"), "through", checker.VANISHED),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--mode", default="dedicated")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--written", action="store_true", help="only the histories written by hand")
    parser.add_argument("--only", default="", help="only those whose name holds this text")
    options = parser.parse_args()
    end_orderly()
    check = Check("planted, seed %d" % options.seed)
    for name, lines, wanted in [*written.cases(), *overwritten.cases()]:
        if options.only in name:
            check(name, written.found(lines), wanted)
    chosen = [case for case in REAL if options.only in case[0] and not options.written]
    # Runs that differ in nothing are one.
    runs = {(act, how): None for _, act, how, _ in chosen}
    with ThreadPoolExecutor(BESIDE) as pool:
        for run in runs:
            runs[run] = pool.submit(real, options, run[0], run[1] == "directly",
                                    "forgetful" if run[1] == "forgetful" else "chaos")
        for name, act, how, wanted in chosen:
            kinds = runs[act, how].result()
            check(name, kinds if wanted is None else wanted in kinds or kinds, set() if wanted is None else True)
            print("      %s: %s" % (name, ", ".join(sorted(kinds)) or "nothing found"), flush=True)
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
