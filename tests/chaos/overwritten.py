"""Histories written by hand, with overwrites in them, as those of written.py are."""
from checker import NOT_FREE, NOT_GROWN, OVERWRITTEN, TOOK_EFFECT, TTL_CHANGED, TWO_HOLDERS, UNTRUE, VANISHED
from written import broken, fault, given_up, late, look, one, op, other, second, story, taken, token

HELD = "-LOCKHELD lock 'lock:name:0' is held by another client"


def overwritten(number, start, end, ttl, lease, reply="+OK", **more):
    return op(number, start, end, "overwrite", reply, [ttl, lease], **more)


def read(number, start, end, value, **more):
    return op(number, start, end, "get", value, 0, **more)


done = story(one, overwritten(2, 40, 41, 200, 1))


def callers():
    both = {OVERWRITTEN, TWO_HOLDERS}
    yield "another's overwrite", story(one, overwritten(2, 50, 51, 100, 0, **other)), both
    yield "another's overwrite that was refused", story(one, overwritten(2, 50, 51, 100, 0, HELD, **other)), set()
    yield "another's overwrite, but the lock was given up", story(
        one, given_up(3, 49, 52, 1), overwritten(2, 50, 51, 100, 0, **other)), set()
    unheard = story(one, overwritten(2, 50, 51, 100, 0, "lost", **other), broken(51, "2"))
    yield "another's overwrite that nobody knows of, and that was done", story(unheard, look(60, 61, 90)), {TTL_CHANGED}
    yield "another's overwrite that nobody knows of", story(unheard, look(60, 61, 40), look(110, 111, 40)), set()
    kept = story(late, taken(2, 60, 61, **other))
    yield "an overwrite of who had the lock before", story(kept, overwritten(3, 70, 71, 100, 1)), both
    yield "an overwrite of who had the lock before, refused", story(kept, overwritten(3, 70, 71, 100, 1, HELD)), set()
    yield "another's overwrite of a lock that was overwritten", story(
        one, overwritten(2, 50, 51, 100, 1), overwritten(3, 120, 121, 100, 0, **other)), both
    yield "another's overwrite of a lock that was overwritten with a shorter TTL", story(
        one, overwritten(2, 50, 51, 20, 1), overwritten(3, 80, 81, 100, 0, **other)), set()


def answers():
    yield "an overwrite refused to the holder", story(one, overwritten(2, 50, 51, 100, 1, HELD)), {UNTRUE}
    yield "an overwrite refused to one who may have run out", story(one, overwritten(2, 95, 101, 100, 1, HELD)), set()
    yield "an overwrite refused on the owner's other connection", story(
        one, overwritten(2, 50, 51, 100, 1, HELD, **second), given_up(3, 60, 61, 1)), {UNTRUE}
    owing = story(taken(3, -60, -59, 20, reply="lost", **second), broken(-59, "2"))
    yield "an overwrite refused on the owner's other connection, which owes", story(
        owing, one, overwritten(2, 50, 51, 100, 1, HELD, **second), given_up(3, 60, 61, 1, 0)), set()
    yield "an overwrite refused on the holder's connection, though the owner owes", story(
        owing, one, overwritten(2, 50, 51, 100, 1, HELD)), {UNTRUE}
    yield "an overwrite refused though the lock is free", overwritten(1, 0, 1, 100, 0, HELD), {NOT_FREE}
    yield "an overwrite refused, for somebody was not told that he has the lock", story(
        taken(2, -10, -9, reply="lost", **other), broken(-9, "2"), overwritten(1, 0, 1, 100, 0, HELD)), set()
    yield "an overwrite answered nil", story(one, overwritten(2, 50, 51, 100, 1, None)), {UNTRUE}
    yield "no memory for an overwrite", story(
        one, overwritten(2, 50, 51, 100, 1, "-OOM command not allowed"), fault("oom", 40, 60), look(60, 61, 40)), set()
    yield "an overwrite for which there was no memory, done", story(
        one, overwritten(2, 50, 51, 300, 1, "-OOM command not allowed"), fault("oom", 40, 60), look(60, 61, 290)), {TTL_CHANGED}


def effects():
    refused = story(one, overwritten(2, 40, 41, 200, 0, HELD, **other))
    yield "an overwrite that left the TTL", story(done, look(50, 51, 50)), {TTL_CHANGED}
    yield "an overwrite that gave its TTL", story(done, look(50, 51, 190)), set()
    yield "an overwrite that left the value", story(done, read(3, 50, 51, "$p.1")), {UNTRUE}
    yield "an overwrite that left its value", story(done, read(3, 50, 51, "$p.2")), set()
    yield "the old value while it is overwritten", story(
        one, overwritten(2, 40, 60, 200, 1), read(3, 50, 51, "$p.1", **other)), set()
    yield "a refused overwrite that changed the TTL", story(refused, look(50, 51, 190)), {TTL_CHANGED}
    yield "a refused overwrite that left the TTL", story(refused, look(50, 51, 50)), set()
    yield "a refused overwrite that changed the value", story(refused, read(3, 50, 51, "$p.2")), {UNTRUE}
    yield "a refused overwrite that left the value", story(refused, read(3, 50, 51, "$p.1")), set()
    unknown = story(one, overwritten(2, 40, 41, 200, 1, "lost"), broken(41))
    yield "either value after an overwrite that nobody knows of", story(unknown, read(3, 50, 51, "$p.1", **second), read(
        4, 52, 53, "$p.2", **second), look(55, 56, 185), look(130, 131, 109)), set()
    yield "nothing after an overwrite that nobody knows of", story(unknown, look(99, 105, -2)), set()
    yield "a third value after an overwrite that nobody knows of", story(unknown, read(3, 50, 51, "$p.7", **second)), {UNTRUE}


def ends():
    yield "two, though the first was overwritten", story(done, taken(3, 140, 141, **other)), {TWO_HOLDERS}
    yield "two, but the first was overwritten with a shorter TTL", story(
        one, overwritten(2, 40, 41, 20, 1), taken(3, 70, 71, **other)), set()
    yield "a lock that stays after it was overwritten with a shorter TTL", story(
        one, overwritten(2, 40, 41, 20, 1), look(70, 71, 30)), {NOT_FREE}
    yield "0 for the holder of an overwritten lock", story(done, given_up(3, 150, 151, 1, 0)), {UNTRUE}
    yield "1 for the holder of an overwritten lock", story(done, given_up(3, 150, 151, 1), look(160, 161, -2)), set()
    yield "0 for the holder of a lock that may be overwritten or taken anew", story(
        taken(1, 0, 1, 50), overwritten(2, 45, 55, 100, 1), given_up(3, 70, 71, 1, 0)), set()
    yield "1 for the holder of a lock that may be overwritten or taken anew", story(
        taken(1, 0, 1, 50), overwritten(2, 45, 55, 100, 1), given_up(3, 70, 71, 1)), set()


def unsure():
    """It may be one lease all the time, or the second a new one."""
    twice = story(taken(1, 0, 1, 50), overwritten(2, 45, 55, 200, 1), overwritten(3, 140, 141, 100, 1))
    yield "1 for the holder of a lock that may be taken anew, overwritten twice", story(twice, given_up(4, 150, 151, 1)), set()
    yield "0 for the holder of a lock that may be taken anew, overwritten twice", story(twice, given_up(4, 150, 151, 1, 0)), set()
    yield "another's release of a lock that may be taken anew", story(twice, given_up(4, 150, 151, 0, **other)), {TOOK_EFFECT}


def leases():
    """Leases that begin by an overwrite: the release for the one before is late."""
    anew = story(late, overwritten(2, 60, 61, 100, 1))
    yield "a late release of a lock taken by an overwrite", story(anew, given_up(3, 70, 71, 1)), {TOOK_EFFECT}
    yield "a late release of a lock taken by an overwrite, refused", story(anew, given_up(3, 70, 71, 1, 0)), set()
    yield "a lock taken by an overwrite vanishes", story(anew, look(70, 71, -2)), {VANISHED}
    yield "a lock taken by an overwrite is there", story(anew, given_up(3, 70, 71, 1, 0), look(90, 91, 70)), set()
    yield "0 for who owes for a lock taken by an overwrite", story(
        anew, given_up(3, 70, 71, 1, 0), taken(4, 170, 171), given_up(5, 180, 181, 4, 0)), set()
    yield "0 for who took no lock by an overwrite", story(
        late, overwritten(2, 40, 41, 100, 1), given_up(3, 70, 71, 1), taken(4, 170, 171),
        given_up(5, 180, 181, 4, 0)), {UNTRUE}


def tokens():
    yield "another token after an overwrite", story(done, token(3, 10, 11, 1, 5), token(4, 50, 51, 1, 6)), {NOT_GROWN}
    yield "the same token after an overwrite", story(done, token(3, 10, 11, 1, 5), token(4, 50, 51, 1, 5)), set()


def cases():
    """(name, lines, the kinds of faults that are in it)."""
    for part in (callers, answers, effects, ends, unsure, leases, tokens):
        yield from part()
