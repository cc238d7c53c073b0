"""Promises that the shim breaks on purpose, so that the checker can be seen to find it. Used by planted.py only.

Each is a function of (side, first side of the pair, bytes) that returns the bytes to carry on instead; each breaks its
promise a limited number of times, on links in front of lockward.
"""


def make(what, count, shim):
    return {"retry": Retry, "swap": Swap, "double": Double, "drop": Drop, "claim": Claim, "end": End, "away": Away,
            "few": Few, "deaf": Deaf, "full": Full, "refuse": Refuse, "pretend": Pretend, "idle": Idle}[what](count, shim)


class Plant:
    def __init__(self, count, shim):
        self.left, self.shim = count, shim

    def __call__(self, side, first, data):
        if self.left <= 0 or side.link not in self.shim.front:
            return data
        return getattr(self, side.way)(first, data)

    def up(self, first, data):
        return data

    def down(self, first, data):
        return data

    def done(self):
        self.left -= 1
        self.shim.count("planted")


class Retry(Plant):
    """Sends an acquire again, as clients with retries do, and shows the client the second answer only."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.swallow = set()

    def up(self, first, data):
        if data.startswith(b"*6\r\n$3\r\nSET\r\n") and data.count(b"\r\n") == 13:
            self.swallow.add(first)
            return data + data
        return data

    def down(self, first, data):
        if first not in self.swallow:
            return data
        if data.startswith(b"+OK"):
            self.done()
        end = data.find(b"\r\n") + 2
        self.swallow.discard(first)
        return data[end:]


class Swap(Plant):
    """The second of two answers first."""

    def down(self, first, data):
        end = data.find(b"\r\n") + 2
        if data[:1] not in b":+" or data[end:end + 1] != b"$" or data[end:end + 2] == b"$-":
            return data
        self.done()
        return data[end:] + data[:end]


class Double(Plant):
    """An answer comes twice."""

    def down(self, first, data):
        if data == b":1\r\n":
            self.done()
            return data + data
        return data


class Instead(Plant):
    """Where an answer begins with `said` and is to a command that was sent alone and begins with `asked`, another comes."""
    asked, said, instead = b"*2\r\n$3\r\nDEL\r\n", b":0\r\n", b""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.waiting = set()

    def up(self, first, data):
        # Each argument is two lines, and the first line says how many there are.
        alone = data.startswith(self.asked) and data.count(b"\r\n") == 1 + 2 * int(data[1:2])
        (self.waiting.add if alone else self.waiting.discard)(first)
        return data

    def down(self, first, data):
        # Only that answer, and no other behind it.
        lines = max(1, self.said.count(b"\r\n"))
        if first not in self.waiting or not data.startswith(self.said) or data.count(b"\r\n") != lines:
            return data
        self.done()
        return self.instead


class Drop(Instead):
    """An answer does not come."""
    said = b":1\r\n"


class Claim(Instead):
    """A release that was refused is said to have been done."""
    instead = b":1\r\n"


class Away(Instead):
    """Instead of an answer it says that the server cannot be reached."""
    instead = b"-UPSTREAM cannot reach the server\r\n"


class Full(Instead):
    """Instead of a refusal it says that the server's memory is full."""
    instead = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"


class Overwrites(Instead):
    """SET without NX."""
    asked = b"*5\r\n$3\r\nSET\r\n"


class Refuse(Overwrites):
    """An overwrite that was done is said to be refused."""
    said, instead = b"+OK\r\n", b"-LOCKHELD lock 'lock:name:0' is held by another client\r\n"


class Pretend(Overwrites):
    """An overwrite that was refused is said to have been done."""
    said, instead = b"-LOCKHELD ", b"+OK\r\n"


class Idle(Overwrites):
    """An overwrite does nothing, and is said to have been done."""
    said, instead = b"$2\r\nOK\r\n", b"+OK\r\n"

    def up(self, first, data):
        data = super().up(first, data)
        return b"*2\r\n$4\r\nECHO\r\n$2\r\nOK\r\n" if first in self.waiting else data


class End(Plant):
    """A connection ends behind an answer, for no reason."""

    def down(self, first, data):
        if data != b":1\r\n":
            return data
        self.done()
        first.end(False)
        return b""


class Few(Plant):
    """Of two or three locks that were given up at once it counts one less."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.asked = set()

    def up(self, first, data):
        several = data[:2] in (b"*3", b"*4") and data[4:].startswith(b"$3\r\nDEL\r\n") and b"ECHO" not in data
        (self.asked.add if several else self.asked.discard)(first)
        return data

    def down(self, first, data):
        if first not in self.asked or data not in (b":2\r\n", b":3\r\n"):
            return data
        self.done()
        return b":%d\r\n" % (data[1] - 49)


class Deaf(Plant):
    """An ECHO that was sent by itself is not answered."""

    def up(self, first, data):
        if not data.startswith(b"*2\r\n$4\r\nECHO\r\n"):
            return data
        self.done()
        return b""
