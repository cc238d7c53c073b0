"""Judges what came on connections, whatever it says of locks: one reply for each request, in order; none lost, and no
connection ended, without a fault that does that.

What the client ends itself is no loss: "done", "thrown away". Where it ends one on which nothing came ("silence"), the time
in which nothing was stopped or slow decides. What is said without an answer that nobody waited for any more, it does not see.
"""
from causes import MS

REPLIES = "a reply lost, doubled or swapped"
LOST = "a connection or an answer lost without cause"
UPSTREAM = "-UPSTREAM "
PATIENCE = 4000 * MS        # that of wire.py: so long at least nothing came when a client says "silence"
UNANSWERED = 2000 * MS      # nothing may take so long while nothing is stopped or slow


def judge(history):
    """Adds to `history.wrong`."""
    used = {op.connection for op in history.ops}
    ends(history)
    for op in history.ops:
        asked(history, op)
    unasked(history)
    unnamed(history, used)


def ends(history):
    """Each connection that ended has a cause."""
    causes = history.causes
    for connection, (time, why, *what) in history.ends.items():
        proxy = history.proxies.get(connection)
        if why == "garbled":
            if not (what and what[0].startswith("'-LOADING ") and causes.refused(what[0][1:], time, time)):
                history.wrong.append((REPLIES, "%s got what nobody says at %.3f ms: %s" % (connection, time / MS, what)))
        elif why == "silence":
            if history.quiet(time - PATIENCE, time) > UNANSWERED:
                history.wrong.append((REPLIES, "no reply came on %s until %.3f ms" % (connection, time / MS)))
        elif why in ("lost", "refused") and not causes.broke(proxy, time, time):
            # A lockward that gives way to another refuses nobody.
            if why == "refused" or not causes.sent_away(proxy, time):
                history.wrong.append((LOST, "%s through %s: %s at %.3f ms" % (connection, proxy, why, time / MS)))


def asked(history, op):
    """One operation's answer, and the nonce behind it."""
    broke = history.causes.broke
    proxy, end, nonce = history.proxies.get(op.connection), op.end, op.nonce
    if end is None:
        return      # Its client died, or was at its end.
    if op.reply == "lost" or nonce == "lost":
        if op.connection not in history.ends:
            history.wrong.append((LOST, "the connection stands, the answer is lost: %r" % op))
    elif UPSTREAM in str(op.reply)[:2000] and says(op.reply) and not broke(proxy, op.start, end):
        history.wrong.append((LOST, "%r" % op))
    if nonce is None or nonce == "lost":
        return
    history.nonces += 1
    if nonce == "$%s.%d" % (op.process, op.number):
        return
    if not (str(nonce).startswith(UPSTREAM) and broke(proxy, op.start, end)
            or str(nonce).startswith("-LOADING ") and history.causes.refused(nonce, op.start, end)):
        history.wrong.append((REPLIES, "instead of its nonce %r came to %r" % (nonce, op)))


def says(reply):
    """Whether this answer, or one inside it, is that of a lockward that could not reach the server."""
    if isinstance(reply, list):
        return any(says(part) for part in reply)
    return isinstance(reply, str) and reply.startswith(UPSTREAM)


def unasked(history):
    """Who comes while the server cannot be reached is told so and sent away, before it has asked anything. All else for
    which nobody asked is a reply too many."""
    used = {op.connection for op in history.ops if op.answered()} if history.unasked else ()
    for connection, frame in history.unasked:
        if not frame.startswith("'" + UPSTREAM) or connection in used or connection not in history.ends:
            history.wrong.append((REPLIES, "%s got %s unasked" % (connection, frame)))


def unnamed(history, used):
    """Each connection is used at once, if the name that its client gives it first is answered."""
    for connection, (since, process) in history.opened.items():
        if connection in history.ends or connection in used:
            continue
        until = history.deaths.get(process, (history.last,))[0]
        if history.quiet(since, until) > UNANSWERED:
            history.wrong.append((REPLIES, "no reply to the name of %s from %.3f to %.3f ms" % (
                connection, since / MS, until / MS)))
