"""The same conversation held twice: directly with one server, and through lockward with another. Both get the same
bytes, each cut into other random packets, and what comes back must be the same bytes.
"""
import re
import time

from harness.resp import WireError, encode


class Differs(Exception):
    """The two sides did not send the same bytes."""


def excerpt(one, two):
    """The two byte strings around the first place where they differ."""
    place = next((i for i, (a, b) in enumerate(zip(one, two)) if a != b), min(len(one), len(two)))
    begin = max(0, place - 40)
    return "at byte %d: directly %r, through lockward %r" % (place, one[begin:place + 60], two[begin:place + 60])


class Pair:
    """One connection to each side. `forget` is a list of patterns for what may differ (client ids, clock, ports)."""

    def __init__(self, direct, proxied, random, source=None):
        # Only towards lockward: a server in protected mode turns loopback addresses other than 127.0.0.1 away.
        self.sides = [direct.connect(), proxied.connect(source=source)]
        self.random = random
        self.forget = []

    def send(self, data, split=True):
        """The same bytes to both, in packets of random sizes (`split=False`: in one, as far as the system does it)."""
        for side in self.sides:
            self.send_to(side, data, split)

    def try_to_send(self, data):
        """As send, where either side may close before it has read everything."""
        for side in self.sides:
            try:
                self.send_to(side, data, True)
            except OSError:
                pass

    def send_to(self, side, data, split):
        largest = len(data)
        if split:
            largest = self.random.choice([1, 7, 64, 1460, 1 << 20] if len(data) < 2000 else [1460, 16384, 1 << 20])
        start = 0
        while start < len(data):
            size = self.random.randint(1, largest) if split else largest
            side.send(data[start:start + size])
            start += size
            if split and self.random.random() < 0.02:
                time.sleep(0.001)

    def command(self, *words, replies=1):
        """Sends a command and compares its replies, to the byte."""
        self.send(encode(*words))
        return self.same(replies)

    def line(self, text, replies=1):
        """The same for a command given as words in one text."""
        return self.command(*text.split(), replies=replies)

    def same(self, replies=1):
        """The next replies of both sides; the last one is returned."""
        frame = b""
        for _ in range(replies):
            frame = self.agree(*[self.read(side) for side in self.sides])
        return frame

    def read(self, side):
        try:
            return side.frame()
        except WireError as error:
            return b"<%s>" % str(error).encode()
        except OSError as error:
            return b"<%s>" % type(error).__name__.encode()

    def agree(self, one, two):
        for pattern in self.forget:
            one, two = re.sub(pattern, b"", one), re.sub(pattern, b"", two)
        if one != two:
            raise Differs(excerpt(one, two))
        return one

    def same_rest(self, limit=0.5):
        """Everything that still comes, until the connection ends or is silent for `limit` seconds."""
        return self.agree(*[side.rest(limit) for side in self.sides])

    def same_unless_reset(self, limit=1):
        """As same_rest, for input that the server ends without having read it all: its last words may get lost."""
        one, two = [side.rest(limit) for side in self.sides]
        if one and two:
            self.agree(one, two)

    def same_end(self):
        """Both sides send nothing more and close."""
        self.agree(*[b"closed" if side.is_closed(3) else b"open" for side in self.sides])
        if not self.sides[0].is_closed(0.1):
            raise Differs("both sides were expected to close")

    def quiet(self):
        """Nothing comes that nobody asked for."""
        time.sleep(0.02)
        self.agree(*[side.pending() for side in self.sides])

    def half_close(self):
        for side in self.sides:
            side.half_close()

    def close(self):
        for side in self.sides:
            side.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
