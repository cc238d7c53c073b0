"""Histories written by hand, for the test of the checker: each with its fault, and what makes the same innocent.

Times are milliseconds. All happens to one lock of a rule whose owner is the client's name; where nothing else is said, the
owner is `a`, the connection its first, and a TTL 100 ms.
"""
import json

from checker import LOST, NOT_FREE, NOT_GROWN, REPLIES, TOOK_EFFECT, TTL_CHANGED, TWO_HOLDERS, UNTRUE, VANISHED, judge
from causes import MS
from history import History

KEY, SECOND, RENEWED, LEFT = "lock:name:0", "lock:name:1", "lock:renew:0", "lock:left:0"
BASE = 10 ** 6


def at(time):
    return int((BASE + time) * MS)


def op(number, start, end, spelling, reply, argument=100, owner="a", connection="1", nonce=None, key=KEY, kind="own"):
    """An operation; with `end` None its client never heard of it again."""
    lines = [["b", number, at(start), "p:" + connection, kind, spelling, "n:" + owner, key, argument]]
    if end is not None:
        lines.append(["e", number, at(end), reply] + ([nonce] if nonce else []))
    return lines


def taken(number, start, end, ttl=100, reply="+OK", **more):
    return op(number, start, end, "set", reply, ttl, **more)


def given_up(number, start, end, lease, reply=1, **more):
    return op(number, start, end, "del", reply, lease, **more)


def extended(number, start, end, ttl, lease, reply=1, **more):
    return op(number, start, end, "pexpire", reply, [ttl, lease], **more)


def token(number, start, end, lease, value, **more):
    return op(number, start, end, "fence", value, lease, **more)


def look(start, end, left, key=KEY):
    return [["k", [key]], ["s", at(start), at(end), [left]]]


def loss(start, end):
    return [["loss", at(start), at(end)]]


def fault(kind, start, end):
    return [["f", kind, at(start), at(end), None]]


def closed(time, connection="1", why="lost"):
    return [["x", "p:" + connection, at(time), why]]


def opened(time, connection="1", proxy="A"):
    return [["o", "p:" + connection, at(time), proxy, "127.0.0.1", "a"]]


def broken(time, connection="1", kind="cut"):
    """A connection that a fault has ended."""
    return fault(kind, time - 1, time) + closed(time, connection)


def clock(time, ahead, took=1):
    return [["t", at(time), at(time + took), int((BASE + time + took / 2 + ahead) * 1000), 0]]


def story(*parts):
    return [line for part in parts for line in part]


one, other = taken(1, 0, 1), dict(owner="b", connection="2")
second = dict(connection="2")       # of the same owner
late = taken(1, 0, 1, 50)


def holders():
    yield "two holders", story(one, taken(2, 50, 51, **other)), {TWO_HOLDERS}
    yield "two, but the first was giving up", story(one, given_up(3, 49, 52, 1), taken(2, 50, 51, **other)), set()
    yield "two, but nobody knows of the first", story(taken(1, 0, 1, reply="lost"), broken(1), taken(2, 50, 51, **other)), set()
    yield "two, but the first never heard", story(taken(1, 0, None), taken(2, 50, 51, **other)), set()
    yield "two, but the first had run out", story(one, taken(2, 104, 105, **other)), set()
    yield "two, though the first was extended", story(
        one, extended(3, 50, 51, 200, 1), taken(2, 140, 141, **other)), {TWO_HOLDERS}
    yield "two, but nobody knows of the extend", story(
        one, extended(3, 50, 51, 200, 1, "lost"), broken(51), taken(2, 140, 141, **other)), set()
    yield "two, but the server had lost all", story(one, loss(20, 30), taken(2, 50, 51, **other)), set()
    yield "two, but the clock was put on", story(
        one, clock(-10, 0), clock(20, 80), taken(2, 50, 51, **other)), set()
    yield "two, but the clock was put on, and looks at it were slow", story(
        one, clock(-10, 0), clock(20, 80, took=25), taken(2, 50, 51, **other)), set()


def releases():
    yield "a foreign release", story(one, given_up(2, 50, 51, 0, **other)), {TOOK_EFFECT}
    yield "a foreign release that was refused", story(one, given_up(2, 50, 51, 0, 0, **other)), set()
    yield "a foreign release that nobody knows of", story(one, given_up(2, 50, 51, 0, "lost", **other), broken(51, "2")), set()
    yield "a late release", story(late, taken(2, 60, 61, **second), given_up(3, 70, 71, 1)), {TOOK_EFFECT}
    yield "a late release that was refused", story(late, taken(2, 60, 61, **second), given_up(3, 70, 71, 1, 0)), set()
    yield "a late release that took another's", story(
        late, taken(2, 60, 61, **other), given_up(3, 70, 71, 1)), {TOOK_EFFECT}
    yield "a late release, but perhaps before", story(late, taken(2, 60, 65, **second), given_up(3, 59, 71, 1)), set()
    yield "a late release after its connection, on that of the lease", story(
        late, broken(55), taken(2, 60, 61, **second), given_up(3, 70, 71, 1, **second)), set()
    # What was paid while another lease of the owner was held comes back in its place, as that of a closed connection.
    returned = story(taken(1, 0, 1, 50, connection="4"), taken(2, 60, 61, 50, **second), given_up(3, 70, 71, 1, 0),
                     taken(5, 130, 131), given_up(6, 140, 141, 2))
    yield "a late release on the connection of the lease", returned, {TOOK_EFFECT}
    yield "the same, but what was paid before was of a closed connection", story(returned, broken(65, "4")), set()
    yield "a late release after a loss of all", story(
        late, loss(52, 58), taken(2, 60, 61, **second), given_up(3, 70, 71, 1)), set()
    yield "a late release after the clock was put back", story(
        late, clock(52, 0), clock(57, -80), taken(2, 60, 61, **second), given_up(3, 70, 71, 1)), set()
    yield "a late release beyond the window", story(
        late, taken(2, 30000, 30001, **second), given_up(3, 30010, 30011, 1)), set()


def answers():
    yield "0 for a sure holder", story(one, given_up(2, 50, 51, 1, 0)), {UNTRUE}
    yield "0 for a holder who owes", story(
        taken(3, -100, -99, 20, reply="lost", connection="3"), broken(-99, "3"), one, given_up(2, 50, 51, 1, 0)), set()
    owing = story(taken(3, -2000, -1999, 20, reply="lost", connection="3"), broken(-1999, "3"),
                  taken(4, -60, -59, 50, connection="4"), broken(-5, "4"), taken(5, 0, 1, **second))
    yield "0 for a holder who owes, though a release was done on the connection of another lease", story(
        owing, given_up(6, 10, 11, 4, **second), given_up(7, 15, 16, 5, 0, **second),
        taken(8, 20, 21, connection="5"), given_up(9, 30, 31, 8, 0, connection="6")), set()
    yield "0 for a holder though all was paid", story(
        taken(3, -2000, -1999, 20, reply="lost", connection="3"), broken(-1999, "3"), taken(5, 0, 1, **second),
        given_up(6, 10, 11, 5, connection="4"), taken(8, 20, 21, connection="5"),
        given_up(9, 30, 31, 8, 0, connection="6")), {UNTRUE}
    unpaid = story(taken(3, -30000, -29999, 20, reply="lost", connection="3"), broken(-29999, "3"))
    yield "0 for a holder who owes for nothing within the window", story(unpaid, one, given_up(2, 50, 51, 1, 0)), {UNTRUE}
    yield "0 for a holder who owes since a late release was taken for another", story(
        unpaid, taken(4, -15000, -14999, 20, **second), given_up(5, -14900, -14899, 4, 0, **second), one,
        given_up(2, 50, 51, 1, 0)), set()
    yield "0 for a holder whose late release was long ago", story(
        taken(4, -15000, -14999, 20, **second), given_up(5, -14900, -14899, 4, 0, **second), one,
        given_up(2, 50, 51, 1, 0)), {UNTRUE}
    # A release on the lease's own connection passes over debts of closed ones, and shows that there are no others.
    passed = story(taken(3, -2000, -1999, 20, reply="lost", connection="3"), broken(-1999, "3"),
                   taken(4, -1000, -999), given_up(5, -990, -989, 4))
    yield "0 for a holder on its own connection, where no open one owes", story(
        passed, one, given_up(2, 50, 51, 1, 0)), {UNTRUE}
    yield "0 for a holder on its own connection, where a late release was taken for that of a closed one", story(
        passed, taken(6, -500, -499, 20), given_up(7, -400, -399, 6, 0), one, given_up(2, 50, 51, 1, 0)), set()
    yield "0 for a holder on another connection, where a closed one owes", story(
        passed, one, given_up(2, 50, 51, 1, 0, **second)), set()
    yield "0 for one who may have run out", story(one, given_up(2, 95, 101, 1, 0)), set()
    yield "no memory for a release", story(one, given_up(2, 50, 51, 1, "-OOM command not allowed")), {UNTRUE}
    yield "no memory for an acquire", story(taken(1, 0, 1, reply="-OOM command not allowed"), fault("oom", 0, 9)), set()
    yield "an answer of another type", story(taken(1, 0, 1, reply=1)), {UNTRUE}
    yield "0 for the holder's extend", story(one, extended(2, 50, 51, 100, 1, 0)), {UNTRUE}
    yield "the value of nobody", story(one, op(2, 50, 51, "get", "$somebody", 1)), {UNTRUE}
    yield "its own value", story(one, op(2, 50, 51, "get", "$p.1", 1)), set()


def replies():
    yield "another's nonce", taken(1, 0, 1, nonce="$p.7"), {REPLIES}
    yield "its nonce", taken(1, 0, 1, nonce="$p.1"), set()
    yield "no reply", story(taken(1, 0, 4000, reply="lost"), closed(4000, why="silence")), {REPLIES}
    yield "no reply from a server that stood", story(
        taken(1, 0, 4000, reply="lost"), closed(4000, why="silence"), fault("server-stop", 0, 4000)), set()
    yield "no reply to an ECHO", story(taken(1, 0, 4001, nonce="lost"), closed(4001, why="silence")), {REPLIES}
    yield "no reply to an ECHO, from a server that slept", story(
        taken(1, 0, 4001, nonce="lost"), closed(4001, why="silence"), fault("server-sleep", 1, 4000)), set()
    yield "an ECHO that is lost on a connection that stands", taken(1, 0, 9, nonce="lost"), {LOST}
    yield "an ECHO that was cut", story(taken(1, 0, 9, nonce="lost"), broken(9)), set()
    yield "no reply to a name", story(opened(0), taken(1, 5000, 5001, **second), look(5010, 5011, 90)), {REPLIES}
    yield "a name that is used", story(opened(0), one, given_up(2, 50, 51, 1), look(5010, 5011, -2)), set()
    yield "a name refused by a server that loads", story(fault("server-kill", -9, -1), opened(0), [
        ["x", "p:1", at(9), "garbled", "'-LOADING Redis is loading the dataset in memory'"]]), set()
    yield "a name refused by a server that does not load", story(opened(0), [
        ["x", "p:1", at(9), "garbled", "'-LOADING Redis is loading the dataset in memory'"]]), {REPLIES}
    yield "no RESP", story(one, closed(20, why="garbled"), fault("cut", 19, 20)), {REPLIES}
    yield "a reply too many", [["u", "p:1", at(1), "1"]], {REPLIES}
    refused = [["u", "p:1", at(1), "'-UPSTREAM cannot reach the server'"]]
    yield "a word of farewell before anything was asked", story(refused, broken(2, kind="server-kill")), set()
    yield "the same later on", story(one, refused, broken(2)), {REPLIES}


def sums():
    both = story(taken(1, 0, 1), taken(2, 2, 3, key=SECOND), op(3, 50, 51, "del", 1, [1, 2], key=[KEY, SECOND]))
    yield "only one of two released", both, {UNTRUE}
    yield "only one of two released, for one had run out", story(
        taken(1, 0, 1, 48), taken(2, 2, 3, key=SECOND), op(3, 50, 51, "del", 1, [1, 2], key=[KEY, SECOND])), set()
    yield "only one of two released, for one is owed for", story(
        taken(4, -100, -99, 20, reply="lost", connection="3"), broken(-99, "3"), both), set()
    yield "more released than there can be", story(
        taken(1, 0, 1), taken(2, 2, 3, 20, key=SECOND), taken(4, 4, 5, 20, key=SECOND + "0"),
        op(3, 50, 51, "del", 2, [1, 2, 4], key=[KEY, SECOND, SECOND + "0"])), {TOOK_EFFECT}


def connections():
    lost = taken(1, 0, 9, reply="lost")
    yield "a connection that ends", story(one, closed(20)), {LOST}
    yield "a connection that its client ends", story(one, closed(20, why="thrown away")), set()
    yield "a connection that was cut", story(one, fault("cut", 10, 19), closed(20)), set()
    yield "a connection that ends long after a cut", story(one, fault("cut", 10, 19), closed(300)), {LOST}
    yield "a connection that ends before a cut", story(one, closed(20), fault("cut", 21, 22)), {LOST}
    for kind in ("reload", "oom", "script-flush", "clock-jump", "client-stop", "server-stop"):
        yield "a connection that ends at %s" % kind, story(one, fault(kind, 10, 20), closed(20)), {LOST}
    yield "a connection through the other lockward", story(
        opened(-5, proxy="B"), one, [["f", "cut", at(10), at(19), "SA"]], closed(20)), {LOST}
    yield "a connection through that lockward", story(
        opened(-5, proxy="A"), one, [["f", "cut", at(10), at(19), "SA"]], closed(20)), set()
    through, cycle = [["m", "dedicated"]], fault("cut-bytes", 10, 19)
    yield "a connection that ends while others' cycles are cut", story(through, opened(-5), one, cycle, closed(20)), {LOST}
    yield "the same, where connections to the server are shared", story(
        [["m", "shared"]], opened(-5), one, cycle, closed(20)), set()
    cutter = [[*line[:4], "cutter", *line[5:]] if line[0] == "b" else line for line in one]
    yield "the same of a cycle that is cut", story(through, opened(-5), cutter, cycle, closed(20)), set()
    yield "a connection that could not begin", story(opened(0), closed(1, why="refused")), {LOST}
    yield "a connection that could not begin, for the server had just come back", story(
        fault("server-kill", -500, -400), opened(0), closed(1, why="refused")), set()
    yield "an answer lost on a connection that stands", lost, {LOST}
    away = "-UPSTREAM cannot reach the server"
    yield "the server is away", taken(1, 0, 9, reply=away), {LOST}
    yield "the server is away, for it is killed", story(taken(1, 0, 9, reply=away), fault("server-kill", 5, 8)), set()
    yield "the server is away, for it reads its data", story(
        fault("server-kill", -2000, -1950), taken(1, 0, 9, reply=away), look(20, 21, -2)), set()
    yield "the server is away though it serves again", story(
        fault("server-kill", -2000, -1950), look(-1900, -1899, -2), taken(1, 0, 9, reply=away)), {LOST}
    yield "the server is away in an upgrade", story(taken(1, 0, 9, reply=away), fault("upgrade", 5, 8)), {LOST}
    yield "sent away in an upgrade", story(lost, closed(9), fault("upgrade", -900, -800)), set()
    yield "sent away in an upgrade long after it had asked", story(
        taken(1, 0, 400, reply="lost"), closed(400), fault("upgrade", -900, -800)), {LOST}
    yield "sent away in an upgrade while lockward was slow", story(
        taken(1, 0, 400, reply="lost"), closed(400), fault("upgrade", -900, -800), [["p", at(10), at(390), 1]]), set()
    yield "sent away in an upgrade on a connection of many", story(
        taken(1, 0, 400, reply="lost", kind="pool"), closed(400), fault("upgrade", -900, -800)), set()
    yield "carried out though it was sent away", story(
        lost, closed(9), fault("upgrade", -900, -800), look(20, 21, 80)), {NOT_FREE}
    yield "never sent, for the connection was over", story(
        broken(-1), taken(1, 0, 1, reply="lost"), taken(2, 2, 3, **other), look(20, 21, 80)), set()
    yield "carried out though it was never sent", story(broken(-1), taken(1, 0, 1, reply="lost"), look(20, 21, 80)), {NOT_FREE}


def refusals():
    yield "no memory, but there was enough", taken(1, 0, 1, reply="-OOM command not allowed"), {UNTRUE}
    yield "no memory for a read", story(
        one, op(2, 50, 51, "get", "-OOM command not allowed", 1), fault("oom", 40, 60)), {UNTRUE}
    yield "a replica's answer", taken(1, 0, 1, reply="-READONLY You can't write"), {UNTRUE}
    yield "no server loads", taken(1, 0, 1, reply="-LOADING"), {UNTRUE}
    loading = "-LOADING Redis is loading the dataset in memory"
    yield "a server that loads", story(fault("server-kill", -100, -50), taken(1, 0, 1, reply=loading)), set()
    yield "a transaction that WATCH broke", taken(1, 0, 1, reply=["exec", None, ["+OK", "+QUEUED"], True]), set()
    yield "a transaction that nothing broke", taken(1, 0, 1, reply=["exec", None, ["+OK", "+QUEUED"], False]), {UNTRUE}
    yield "a transaction given up without a reason", taken(
        1, 0, 1, reply=["exec", "-EXECABORT Transaction discarded", ["+OK", "+QUEUED"], False]), {UNTRUE}


def looks():
    yield "a lease that vanished", story(one, look(50, 51, -2)), {VANISHED}
    yield "a lease that was lost", story(one, loss(40, 45), look(50, 51, -2)), set()
    yield "a lease that is not sure any more", story(one, look(99, 105, -2)), set()
    yield "a TTL that was changed", story(one, look(50, 51, 5000)), {TTL_CHANGED}
    yield "a TTL that was cut", story(one, look(20, 21, 10)), {TTL_CHANGED}
    yield "a TTL as it is due", story(one, look(50, 51, 50)), set()
    yield "a TTL that its holder changed", story(one, extended(2, 40, 41, 5000, 1), look(50, 51, 4990)), set()
    yield "no TTL", story(one, look(50, 51, -1)), {TTL_CHANGED}
    yield "a loser's extend", story(one, extended(2, 50, 51, 50, 0, **other)), {TTL_CHANGED}
    yield "a loser's extend that was refused", story(one, extended(2, 50, 51, 50, 0, 0, **other)), set()
    yield "a lock that stays", story(one, look(110, 111, 20)), {NOT_FREE}
    yield "a lock that is there after its release", story(one, given_up(2, 50, 51, 1), look(60, 61, 40)), {NOT_FREE}
    yield "a lock that stays, and refuses", story(one, taken(2, 110, 111, reply=None, **other)), {NOT_FREE}
    yield "a lock of somebody who was not told", story(
        one, taken(2, 105, 106, reply="lost", **other), broken(106, "2"), look(110, 111, 94)), set()
    yield "a lock whose release was lost", story(one, given_up(2, 50, 51, 1, "lost"), broken(51), look(60, 61, 40)), set()
    yield "renewal after expiry", story(taken(1, 0, 1, 50), look(30, 31, 20), look(70, 71, 100)), {NOT_FREE}


def renewal():
    kept = taken(1, 0, 1, 300, key=RENEWED)
    gone = look(600, 601, -2, RENEWED)
    yield "a lease that is not renewed", story(kept, gone), {VANISHED}
    yield "a lease that is renewed", story(kept, look(600, 601, 250, RENEWED), given_up(2, 700, 701, 1, key=RENEWED)), set()
    yield "a lease whose client went away", story(kept, closed(590, why="thrown away"), gone), set()
    yield "a lease whose client went away later", story(kept, closed(610, why="thrown away"), gone), {VANISHED}
    yield "a lease that a lockward could not renew", story(kept, fault("proxy-stop", 500, 700), gone), set()
    yield "a lease that a lockward could renew again", story(fault("proxy-stop", -2000, -1100), kept, gone), set()
    yield "a lease that a lockward could renew long before", story(fault("proxy-stop", -3000, -2000), kept, gone), {VANISHED}
    yield "a lease that was not renewed while memory was full", story(kept, fault("oom", 100, 590), gone), {VANISHED}
    yield "a lease that was not renewed while links were cut", story(kept, fault("cut-bytes", 100, 590), gone), set()
    yield "a lease that is renewed for too long", story(kept, look(2560, 2561, 100, RENEWED)), {NOT_FREE}
    yield "a lease that was renewed to the last", story(kept, look(2540, 2541, 10, RENEWED)), set()
    left = taken(1, 0, 1, key=LEFT)
    yield "a lease that its client's end has freed", story(left, closed(40, why="thrown away"), look(50, 51, -2, LEFT)), set()
    yield "a lease that was freed before its client's end", story(
        left, look(30, 31, -2, LEFT), closed(40, why="thrown away")), {VANISHED}
    yield "a lease that a cut has freed", story(left, fault("cut", 20, 40), look(30, 31, -2, LEFT), closed(40)), set()
    yield "a lease that no cut can have freed", story(left, fault("cut", 20, 40), look(30, 31, -2, LEFT)), {VANISHED}


def fencing():
    again = taken(3, 60, 61, **other)
    fenced = story(one, token(4, 10, 11, 1, 5), given_up(2, 50, 51, 1), again)
    yield "a token that stands still", story(fenced, token(5, 70, 71, 3, 5, **other)), {NOT_GROWN}
    yield "a token that grows", story(fenced, token(5, 70, 71, 3, 6, **other)), set()
    yield "two tokens of one lease", story(one, token(4, 10, 11, 1, 5), token(5, 20, 21, 1, 6)), {NOT_GROWN}
    yield "somebody else's token", story(one, token(4, 10, 11, 0, 5, **other)), {UNTRUE}


def cases():
    """(name, lines, the kinds of faults that are in it)."""
    yield "a cycle", story(one, given_up(2, 50, 51, 1)), set()
    for part in (holders, releases, answers, replies, sums, connections, refusals, looks, renewal, fencing):
        yield from part()


def found(lines):
    """The kinds of faults that the checker finds in it."""
    history = History()
    history.take("p", [json.dumps(line).encode() + b"\n" for line in lines])
    history.complete()
    return {what for what, _, _ in judge(history).found}
