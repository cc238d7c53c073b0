"""A RESP connection for tests: sends bytes as told, reads replies as values or as the very bytes.

It hides nothing: no retries, no reconnects, no pooling.
"""
import re
import socket
import struct

ANSWER_LIMIT = 5.0      # seconds that one answer may take


class WireError(Exception):
    """The other side closed, or sent something that is no RESP."""


class Error(str):
    """An error reply."""


class Simple(str):
    """A simple string."""


def encode(*args):
    """A command as a RESP array; text is sent as UTF-8."""
    out = [b"*%d\r\n" % len(args)]
    for arg in args:
        data = arg if isinstance(arg, bytes) else str(arg).encode()
        out.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(out)


class Connection:
    """One connection to `address`, a port on the loopback or the path of a unix socket."""

    def __init__(self, address, source=None, resp=2, limit=ANSWER_LIMIT, receive_buffer=None):
        if isinstance(address, int):
            self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            address = ("127.0.0.1", address)
            if source:
                self.sock.bind((source, 0))
        else:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(limit)
        self.limit = limit
        try:
            self.sock.connect(address)
        except OSError:
            self.sock.close()
            raise
        self.received = bytearray()
        if resp == 3:
            self.ask("HELLO", "3")

    # ---- sending

    def send(self, data):
        self.sock.sendall(data)

    def ask(self, *args):
        """Sends one command and reads its reply."""
        self.send(encode(*args))
        return self.reply()

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    # ---- receiving

    def fill(self):
        data = self.sock.recv(1 << 18)
        if not data:
            raise WireError("connection closed")
        self.received += data

    def take(self, size):
        """The next `size` bytes, whatever they are."""
        while len(self.received) < size:
            self.fill()
        data = bytes(self.received[:size])
        del self.received[:size]
        return data

    def line(self):
        """The next line, without its end."""
        while True:
            end = self.received.find(b"\r\n")
            if end >= 0:
                return self.take(end + 2)[:-2]
            self.fill()

    def frame(self):
        """The bytes of the next whole reply, exactly."""
        out, open_frames = [], 1
        while open_frames:
            line = self.line()
            out.append(line + b"\r\n")
            kind, rest = line[:1], line[1:]
            open_frames -= 1
            if not kind or kind not in b"+-:,#_($=!*~>%|":
                raise WireError("no reply begins with %r" % line[:40])
            if kind in b"$=!" and int(rest) >= 0:
                out.append(self.take(int(rest) + 2))
            elif kind in b"*~>":
                open_frames += max(int(rest), 0)
            elif kind in b"%|":
                open_frames += 2 * int(rest) + (kind == b"|")
        return b"".join(out)

    def reply(self):
        """The next reply as a value; maps become flat lists, attributes are left out."""
        line = self.line()
        kind, rest = line[:1], line[1:]
        if kind in (b"+", b"-"):
            return (Simple if kind == b"+" else Error)(rest.decode("utf-8", "replace"))
        if kind in (b":", b"("):
            return int(rest)
        if kind == b",":
            return float(rest)
        if kind == b"#":
            return rest == b"t"
        if kind == b"_":
            return None
        if kind in (b"$", b"=", b"!"):
            size = int(rest)
            if size < 0:
                return None
            body = self.take(size + 2)
            if body[-2:] != b"\r\n":
                raise WireError("a bulk ends with %r" % body[-8:])
            body = body[:-2]
            return Error(body.decode("utf-8", "replace")) if kind == b"!" else body[4:] if kind == b"=" else body
        if kind in (b"*", b"~", b">"):
            return None if rest == b"-1" else [self.reply() for _ in range(int(rest))]
        if kind == b"%":
            return [self.reply() for _ in range(2 * int(rest))]
        if kind == b"|":
            for _ in range(2 * int(rest)):
                self.reply()
            return self.reply()
        raise WireError("no reply begins with %r" % line[:40])

    def is_closed(self, limit=None):
        """Whether the other side closes without sending more; a reset counts."""
        if self.received:
            return False
        self.sock.settimeout(self.limit if limit is None else limit)
        try:
            return self.sock.recv(1) == b""
        except socket.timeout:
            return False
        except OSError:
            return True
        finally:
            self.sock.settimeout(self.limit)

    def rest(self, limit=None):
        """Everything until the other side closes, or until nothing came for `limit` seconds."""
        self.sock.settimeout(self.limit if limit is None else limit)
        try:
            while True:
                self.fill()
        except (WireError, OSError):
            pass
        finally:
            self.sock.settimeout(self.limit)
        return self.take(len(self.received))

    def pending(self):
        """Bytes that are there already though nobody read them."""
        self.sock.setblocking(False)
        try:
            while True:
                self.fill()
        except (WireError, OSError):
            pass
        finally:
            self.sock.settimeout(self.limit)
        return bytes(self.received)

    # ---- ending

    def close(self):
        self.sock.close()

    def reset(self):
        """Closes with RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def metric_sum(text, selector):
    """The sum of the series in a Prometheus text that have this name and at least these labels."""
    name, _, labels = selector.partition("{")
    want = dict(re.findall(r'(\w+)="([^"]*)"', labels))
    total = 0.0
    for line in text.splitlines():
        series = re.match(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)", line)
        if series and series.group(1) == name.strip():
            have = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', series.group(2) or ""))
            if all(have.get(label) == value for label, value in want.items()):
                total += float(series.group(3))
    return total
