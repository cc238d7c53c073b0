#!/usr/bin/env python3
"""Clients that share connections to the server see nothing of each other.

    tests/checks/sharing.py --proxy PATH --server PATH [--mode shared|dedicated] [--seed N] [--runs N] [--only TEXT]

With `mode = "shared"`, which is the default here: a hundred runs with random interleaving, in which every client has a
model of what it must see (modelled.py, meetings.py); slow readers beside quick ones; connections to the server that are
killed, and a server that is killed, under load; how many connections there are; users that are deleted, get another
password or fewer rights, and a server that asks for a password all of a sudden. Most of it holds for dedicated connections
too, and can be checked there. A failure prints the seed to repeat it with.
"""
import argparse
import os
import random
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import pools                                    # noqa: E402
import rights                                   # noqa: E402
import trouble                                  # noqa: E402
from harness import marks                       # noqa: E402
from harness.processes import DEFAULT_RULES, Proxy, Server      # noqa: E402
from harness.resp import WireError              # noqa: E402
from limits import allow_many_files             # noqa: E402
from meetings import Run, make_users            # noqa: E402
from modelled import Wrong                      # noqa: E402


PAUSING = 8             # one run in so many has pauses, which take most of the time


def random_interleaving(server, proxy, options):
    """Many clients, each with a model of what it must see."""
    with server.connect(limit=20) as direct:
        make_users(direct, marks.USER_PASSWORD)
    for number in range(options.runs):
        seed = options.seed + number
        with server.connect(limit=20) as direct:
            try:
                Run(proxy, direct, seed, pauses=seed % PAUSING == 0).play()
            except (Wrong, WireError, OSError) as error:
                raise Wrong("--seed %d --runs 1: %s" % (seed, error or type(error).__name__))
    return "%d runs from seed %d on" % (options.runs, options.seed)


CHECKS = [random_interleaving, trouble.slow_readers, trouble.killed_connections, trouble.killed_server,
          pools.watch_behind_the_end_of_another, pools.few_connections, pools.few_again_after_state,
          rights.deleted_user, rights.changed_password, rights.fewer_rights, rights.password_all_of_a_sudden]
# What says how many connections there are, or what becomes of a client whose connection broke.
ONLY_SHARED = [trouble.killed_connections, trouble.killed_server, pools.few_connections, pools.few_again_after_state]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--mode", choices=["shared", "dedicated"], default="shared")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--only", default="", help="only checks whose name holds this text")
    options = parser.parse_args()
    if not options.server:
        sys.exit("sharing: no redis-server or valkey-server on PATH: use --server $(scripts/get-server)")
    allow_many_files()
    passed = failed = 0
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        if options.only not in name or options.mode != "shared" and check in ONLY_SHARED:
            continue
        with tempfile.TemporaryDirectory(prefix="lockward-sharing-") as folder:
            try:
                # Every write is on the disk before its answer: a server that was killed comes back with what it said.
                with Server(options.server, folder, arguments=["--appendonly", "yes", "--appendfsync", "always"]
                            if check is trouble.killed_server else []) as server, \
                        Proxy(options.proxy, server, DEFAULT_RULES, folder, mode=options.mode) as proxy:
                    said = check(server, proxy, options)
                    if not proxy.is_running():
                        raise Wrong("the proxy ended; its last words: %s" % proxy.last_words())
                passed += 1
                print("ok    %s: %s" % (name, said), flush=True)
            except (Wrong, WireError, OSError, RuntimeError) as error:
                failed += 1
                print("FAIL  %s: %s" % (name, marks.hidden(str(error) or type(error).__name__)), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
