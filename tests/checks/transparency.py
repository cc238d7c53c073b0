#!/usr/bin/env python3
"""lockward changes no byte that is none of its business.

    tests/checks/transparency.py --proxy PATH --server PATH [--mode shared] [--seed N] [--only TEXT]

Holds the same conversations with a server and, through lockward, with a second one, cut into random packets, and
compares the answers byte for byte (conversations.py, pair.py). Three times: with a rule that matches nothing, with an
enforce rule for lock:*, and with an observe rule for *, where the theft of a lock must look the same too. At the end
of the first and the last, both servers must hold the same keys: lockward has written none of its own.
A failure prints the seed to repeat it with.
"""
import argparse
import os
import random
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import conversations                            # noqa: E402
from harness.processes import Proxy, Server     # noqa: E402
from pair import Differs, Pair                  # noqa: E402

MODES = [
    ("no rule matches", '[[locks]]\npattern = "nothing-at-all:*"\n', True),
    ("enforce lock:*", '[[locks]]\npattern = "lock:*"\n', False),
    ("observe *", '[[locks]]\npattern = "*"\nmode = "observe"\n', True),
]


def same_keys(direct, proxied):
    """Whether both servers hold the same keys, in every database."""
    for database in range(16):
        found = []
        for server in (direct, proxied):
            with server.connect() as connection:
                connection.ask("SELECT", database)
                found.append(sorted(connection.ask("KEYS", "*")))
        if found[0] != found[1]:
            only = [sorted(set(found[i]) - set(found[1 - i]))[:5] for i in (0, 1)]
            raise Differs("database %d: only directly %r, only through lockward %r" % (database, *only))


class Check:
    """Counts and prints."""

    def __init__(self, only):
        self.only, self.passed, self.failed = only, 0, 0

    def __call__(self, name, seed, action):
        if self.only not in name:
            return
        try:
            action(random.Random(seed))
            self.passed += 1
            print("ok    %s" % name, flush=True)
        except (Differs, OSError, ValueError, RuntimeError) as error:
            self.failed += 1
            print("FAIL  %s (--seed %d): %s" % (name, seed, error or type(error).__name__), flush=True)


def play(mode, rules, other_keys_too, options, check, folder):
    with Server(options.server, folder) as direct, Server(options.server, folder) as behind, \
            Proxy(options.proxy, behind, rules, folder, mode=options.mode) as proxy:
        talks = list(conversations.ALWAYS)
        if other_keys_too:
            talks.append(conversations.stolen_locks)
        for talk in talks:
            def action(generator, talk=talk):
                opened = []

                def pair(**connection):
                    opened.append(Pair(direct, proxy, generator, **connection))
                    return opened[-1]
                try:
                    talk(pair, generator)
                finally:
                    for each in opened:
                        each.close()
                if not proxy.is_running():
                    raise Differs("the proxy ended; its last words: %s" % proxy.last_words())
            check("%s: %s" % (mode, talk.__name__.replace("_", " ")), options.seed, action)
        if other_keys_too:
            check("%s: no key that no client wrote" % mode, options.seed, lambda _: same_keys(direct, behind))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--mode", choices=["dedicated", "shared"], help="of the connections to the server")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--only", default="", help="only checks whose name holds this text")
    options = parser.parse_args()
    if not options.server:
        sys.exit("transparency: no redis-server or valkey-server on PATH: use --server $(scripts/get-server)")
    check = Check(options.only)
    for mode, rules, other_keys_too in MODES:
        with tempfile.TemporaryDirectory(prefix="lockward-transparency-") as folder:
            play(mode, rules, other_keys_too, options, check, folder)
    print("%d passed, %d failed" % (check.passed, check.failed))
    return 1 if check.failed or not check.passed else 0


if __name__ == "__main__":
    sys.exit(main())
