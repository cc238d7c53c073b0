"""What passes for a sentinel and is none."""
import contextlib
import socketserver
import threading
import time


def bulks(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in (str(w).encode() for w in words))


class Fake(socketserver.ThreadingTCPServer):
    """`says` maps the second word of a command to the bytes that it answers, `delay` seconds later."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, says):
        self.says, self.asked, self.delay, self.listeners = says, 0, 0, []
        super().__init__(("127.0.0.1", 0), Fake.Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.port = self.server_address[1]

    def names(self, port, epoch):
        """Whom it names from now on."""
        self.says = {b"SUBSCRIBE": 2 * bulks("subscribe", "+channel", 1),
                     b"GET-MASTER-ADDR-BY-NAME": bulks("127.0.0.1", port), b"MASTER": bulks(
            "config-epoch", epoch, "quorum", 2, "num-slaves", 2, "num-other-sentinels", 2, "flags", "master")}

    def announce(self, name):
        """To all that listen, so that they ask."""
        for listener in list(self.listeners):
            with contextlib.suppress(OSError, ValueError):
                listener.write(bulks("message", "+switch-master", name + " h 1 h 2"))

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            with contextlib.suppress(OSError, ValueError):
                while line := self.rfile.readline():
                    words = [self.rfile.read(int(self.rfile.readline()[1:]) + 2)[:-2] for _ in range(int(line[1:]))]
                    word = words[1].upper() if words[0].upper() == b"SENTINEL" else words[0].upper()
                    time.sleep(self.server.delay)
                    self.server.asked += word == b"MASTER"
                    self.wfile.write(self.server.says.get(word, b"+OK\r\n"))
                    if word == b"SUBSCRIBE":
                        self.server.listeners.append(self.wfile)


def naming(port, epoch=0):
    """One that names the server at this port; with epoch 0 it knows of no failover since the beginning."""
    fake = Fake({})
    fake.names(port, epoch)
    return fake
