"""The history of a run: what a process writes down while it works, one JSON line for each thing, one file for each process.

A line is written before the thing is done (so that what was begun is known even when the process is killed) and another
when it has ended. It goes to the system at once, so nothing written is lost with the process. Times are CLOCK_MONOTONIC in
nanoseconds, which is one clock for all processes of the machine. It judges nothing.

    b  id time connection kind spelling owner keys argument     an operation begins
    e  id time reply [nonce]                                    it has ended; the nonce is what the ECHO behind it answered,
                                                                or "lost" if no answer to it came
    o  connection time proxy owner-address name                 a connection is open
    x  connection time why [what]                               it is not any more; `garbled`, and what came
    u  connection time frame                                    something came for which nobody asked
    s  time time [pttl ...]     p  time time link               the watcher's: a look at all keys; a ping through a link
    t  time time server-us clock-ns                             the watcher's: the clock of the server, and of the machine
    m  mode                                                     the harness': of both lockwards
    f  kind time time detail                                    the harness': a fault, from before it until it was over;
                                                                `fault-without-effect`: [kind, detail]
    loss time time    jump time time ms    dead process time    what of it changes what the server knows and says
"""
import json
import os
import time

now = time.monotonic_ns


def plain(reply):
    """A reply as JSON can hold it, with its type: `+OK`, `-ERR ...`, 1, `$value`, None, [...]."""
    if isinstance(reply, (bytes, bytearray)):
        return "$" + reply.decode("latin-1")
    if isinstance(reply, list):
        return [plain(part) for part in reply]
    return reply


class Book:
    """One process' file."""

    def __init__(self, folder, name):
        self.name, self.count = name, 0
        self.file = os.open(os.path.join(folder, name + ".history"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, *what):
        os.write(self.file, (json.dumps(what, separators=(",", ":")) + "\n").encode())

    def begin(self, connection, kind, spelling, owner, keys, argument):
        """An operation that is about to be sent; its number. An acquire writes `value(number)` into the lock."""
        self.count += 1
        self.write("b", self.count, now(), connection, kind, spelling, owner, keys, argument)
        return self.count

    def end(self, number, reply, nonce=None):
        if nonce is None:
            self.write("e", number, now(), plain(reply))
        else:
            self.write("e", number, now(), plain(reply), plain(nonce))

    def value(self, number):
        """A text that no other operation of any process has."""
        return "%s.%d" % (self.name, number)
