"""Who takes part in a run: the rules of the proxies, the keys, and the programs of each client process.

Nothing here is left to chance but what each program draws from its own seed.
"""
from random import Random

import actors

CLIENTS = 4                 # processes
WINDOW = 20.0               # seconds, of all rules
MAX_HOLD = actors.RENEWED   # seconds, where leases are renewed
TTLS = (80, 150, 300)       # milliseconds
# The rules by name: how an owner is told, how many keys, and what else.
RULES = {
    "conn": ("connection", 6, ""),
    "addr": ("address", 24, ""),
    "name": ("client-name", 16, "fencing = true\n"),
    "setnx": ("client-name", 3, 'default_ttl = "800ms"\n'),
    "several": ("client-name", 4, ""),
    "renew": ("client-name", 2, 'renew = true\nmax_hold = "%dms"\n' % (1000 * MAX_HOLD)),
    "left": ("client-name", 2, 'release_on_disconnect = true\ndisconnect_grace = "100ms"\n'),
    "cut": ("client-name", 3, ""),
}


# The cast of the baseline: every rule as it is by default, on one pattern.
LEGACY_RULES = '[[locks]]\npattern = "lock:*"\n'
LEGACY_KEYS = ["lock:job:%d" % number for number in range(10)]


def rules(cast="chaos"):
    """The rules as lockward reads them. A cast that is `forgetful` has them remember no debts, against what is promised."""
    if cast == "legacy":
        return LEGACY_RULES
    window = 0 if cast == "forgetful" else WINDOW
    return "".join('[[locks]]\nname = "%s"\npattern = "lock:%s:*"\nowner = "%s"\nlate_release_window = "%ds"\n%s\n' % (
        name, name, owner, window, more) for name, (owner, _, more) in RULES.items())


def keys(rule):
    return ["lock:%s:%d" % (rule, number) for number in range(RULES[rule][1])]


def all_keys(cast="chaos"):
    if cast == "legacy":
        return LEGACY_KEYS
    return [key for rule in RULES for key in keys(rule)]


# For each process, so that some twentieth of all operations are overwrites.
OVERWRITERS = 3
# Programs of each process that have no pool: class, rule, how many.
ALONE = (
    (actors.Actor, "conn", 1), (actors.Loser, "conn", 1), (actors.Beat, "conn", 1), (actors.Multi, "conn", 1),
    (actors.Actor, "addr", 1), (actors.Actor, "name", 1), (actors.Other, "name", 3), (actors.Beat, "name", 1),
    (actors.Loser, "name", 1), (actors.Multi, "name", 1), (actors.Setnx, "setnx", 1), (actors.Several, "several", 1),
    (actors.Kept, "renew", 1), (actors.Actor, "left", 1), (actors.Cutter, "cut", 1), (actors.Over, "name", OVERWRITERS),
)


def legacy(place, process, random):
    """Programs of the baseline: on hosts of their own, and in one pool for each process, which is a host too."""
    def draw():
        return Random(random.getrandbits(64))

    found = [actors.Actor(place, draw(), LEGACY_KEYS, TTLS, "address", "127.0.%d.%d" % (2 + process, 1 + number),
                          "host-%d-%d" % (process, number), "AB"[number % 2]) for number in range(6)]
    source, name = "127.0.1.%d" % (1 + process), "web-%d" % process
    pool = actors.Pool(place, draw(), source, name, 4)
    return found + [actors.Pooled(pool, place, draw(), LEGACY_KEYS, TTLS, "address", source, name, "A") for _ in range(6)]


def programs(place, process, random, cast="chaos"):
    """The programs of the process with that number (from 0). Names and addresses stay when it is killed and another takes
    its place, as those of a service do."""
    if cast == "legacy":
        return legacy(place, process, random)
    found = []

    def draw():
        return Random(random.getrandbits(64))

    for kind, rule, count in ALONE:
        for _ in range(count):
            number = len(found)
            found.append(kind(place, draw(), keys(rule), TTLS, RULES[rule][0], "127.0.%d.%d" % (2 + process, 1 + number),
                              "alone-%d-%d" % (process, number), "AB"[number % 2]))
    # One pool for each process by address, and one by name for each two.
    for rule, tasks, source, name in (("addr", 12, "127.0.1.%d" % (1 + process), "web-%d" % process),
                                      ("name", 8, "127.0.1.%d" % (11 + process), "pool-%d" % (process // 2))):
        pool = actors.Pool(place, draw(), source, name, 5)
        for _ in range(tasks):
            found.append(actors.Pooled(pool, place, draw(), keys(rule), TTLS, RULES[rule][0], source, name, "A"))
    return found
