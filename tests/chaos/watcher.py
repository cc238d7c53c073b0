#!/usr/bin/env python3
"""The watcher of a run: looks at all keys directly on the server ten times a second, and tries whether each link is quick.
Started by run.py, with what it must know as JSON; ends at SIGTERM.

    watcher.py '{"folder": PATH, "name": NAME, "server": PORT, "links": {"A": PORT, "B": PORT}, "keys": [KEY, ...]}'
"""
import json
import os
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
from harness.resp import Connection, Error, WireError, encode    # noqa: E402
from record import Book, now        # noqa: E402

EVERY = 0.1         # seconds
over = threading.Event()


def ask(port, data, replies, book, mark):
    """Goes on asking through this port; `mark` writes down what came, and from when to when it took."""
    connection = None
    while not over.is_set():
        begun = now()
        try:
            if connection is None:
                connection = Connection(port, limit=30)
            begun = now()
            connection.send(data)
            mark(begun, [connection.reply() for _ in range(replies)])
        except (OSError, WireError):
            # Nobody there: as slow as can be.
            book.write("p", begun, now(), port)
            if connection is not None:
                connection.close()
            connection = None
        over.wait(EVERY)


def main(told):
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    book = Book(told["folder"], told["name"])
    book.write("k", told["keys"])

    def looked(begun, replies):
        ended, clock = now(), time.time_ns()
        if any(isinstance(reply, Error) for reply in replies):
            book.write("p", begun, ended, told["server"])
            return
        seconds, micros = replies.pop()
        book.write("s", begun, ended, replies)
        book.write("t", begun, ended, int(seconds) * 1000000 + int(micros), clock)

    def pinged(port):
        return lambda begun, _: book.write("p", begun, now(), port)

    look = b"".join(encode("PTTL", key) for key in told["keys"]) + encode("TIME")
    threads = [threading.Thread(target=ask, args=(told["server"], look, len(told["keys"]) + 1, book, looked), daemon=True)]
    threads += [threading.Thread(target=ask, args=(port, encode("PING"), 1, book, pinged(port)), daemon=True)
                for port in told["links"].values()]
    for thread in threads:
        thread.start()
    while not over.is_set():
        over.wait(1)
    for thread in threads:
        thread.join(5)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
