"""A client's connection under asyncio: raw RESP2, pipelined, each reply to the request that is due.

It repairs nothing: what it cannot pair it reports, and a connection that ended stays so.
"""
import asyncio
import re

from harness.resp import encode
from record import now

PATIENCE = 4.0      # seconds until a client gives a reply up, and its connection with it


class Lost(Exception):
    """The connection ended, so nobody knows what became of what was sent."""


class Wire(asyncio.Protocol):
    """Use `connect`."""

    def __init__(self, book, name, proxy):
        self.book, self.name, self.proxy = book, name, proxy
        self.transport, self.received, self.due, self.open = None, b"", [], False

    # ---- what asyncio calls

    def connection_made(self, transport):
        self.transport, self.open = transport, True

    def data_received(self, data):
        data = self.received + data if self.received else data
        at = 0
        while at < len(data) and self.open:
            try:
                frame, end = parsed(data, at)
            except ValueError:
                self.end("garbled", repr(data[at:at + 100]))
                return
            if end < 0:
                break
            at = end
            self.deliver(frame)
        self.received = data[at:]

    def deliver(self, frame):
        if not self.due:
            self.book.write("u", self.name, now(), repr(frame)[:200])
            return
        waiting = self.due[0]
        waiting.replies.append(frame)
        if len(waiting.replies) == waiting.wanted:
            self.due.pop(0)
            if not waiting.future.done():
                waiting.future.set_result(waiting.replies)

    def connection_lost(self, error):
        self.end("lost")

    # ---- what actors call

    def end(self, why, *what):
        """Closes it, whoever wants that; all that is due is lost."""
        if not self.open:
            return
        self.open = False
        self.book.write("x", self.name, now(), why, *what)
        self.transport.abort() if why == "silence" else self.transport.close()
        due, self.due = self.due, []
        for waiting in due:
            if not waiting.future.done():
                waiting.future.set_exception(Lost(why))
                waiting.future.exception()

    def call(self, data, wanted):
        """A future of so many replies to these bytes."""
        future = asyncio.get_running_loop().create_future()
        if not self.open:
            future.set_exception(Lost("closed"))
            return future
        self.due.append(Waiting(future, wanted, asyncio.get_running_loop().time()))
        self.transport.write(data)
        return future

    def mind(self, time):
        """Gives up what was not answered for too long."""
        if self.due and time - self.due[0].since > PATIENCE:
            self.end("silence")


class Waiting:
    __slots__ = ("future", "wanted", "since", "replies")

    def __init__(self, future, wanted, since):
        self.future, self.wanted, self.since, self.replies = future, wanted, since, []


class Simple(str):
    """Written down as `+text` or `-text`."""


NUMBER = re.compile(rb"-?(0|[1-9]\d{0,18})")
LONGEST = 4096      # bytes of a line; nothing that is answered here has a longer one


def parsed(data, at):
    """The frame that begins there, and where it ends; -1 if it is not whole yet. What is no RESP2 raises ValueError."""
    stop = data.find(b"\r\n", at)
    kind = data[at:at + 1]
    if kind not in (b":", b"$", b"+", b"-", b"*") or (stop if stop >= 0 else len(data)) - at > LONGEST:
        raise ValueError("no frame")
    if stop < 0:
        return None, -1
    rest, end = data[at + 1:stop], stop + 2
    if kind in b"+-":
        return Simple(data[at:stop].decode("latin-1")), end
    if not NUMBER.fullmatch(rest):
        raise ValueError("no number")
    number = int(rest)
    if kind == b":":
        return number, end
    if number < -1:
        raise ValueError("no size")
    if number == -1:
        return None, end
    if kind == b"$":
        close = end + number
        if len(data) < close + 2:
            return None, -1
        if data[close:close + 2] != b"\r\n":
            raise ValueError("no end")
        return data[end:close], close + 2
    parts = []
    for _ in range(number):
        # What the next part is may not be there yet.
        part, end = parsed(data, end) if end < len(data) else (None, -1)
        if end < 0:
            return None, -1
        parts.append(part)
    return parts, end


async def connect(book, name, proxy, port, source, client_name):
    """An open connection whose client has its name; raises OSError or Lost."""
    loop = asyncio.get_running_loop()
    _, wire = await asyncio.wait_for(loop.create_connection(
        lambda: Wire(book, name, proxy), "127.0.0.1", port, local_addr=(source, 0)), PATIENCE)
    book.write("o", name, now(), proxy, source, client_name)
    (said,) = await wire.call(encode("CLIENT", "SETNAME", client_name), 1)
    if said != "+OK":
        # Who comes while the server cannot be reached is told so and sent away.
        if str(said).startswith("-UPSTREAM "):
            wire.end("refused")
        else:
            wire.end("garbled", repr(said)[:100])
        raise Lost(str(said))
    return wire
