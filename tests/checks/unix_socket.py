#!/usr/bin/env python3
"""lockward on unix sockets, on both sides, and owner = "process": two connections of one process are one owner,
another process is somebody else.

    tests/checks/unix_socket.py --proxy PATH --server PATH

A scenario cannot say this: in the .wire language every connection is made by the runner's one process.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]
from harness.processes import Proxy, Server     # noqa: E402
from harness.resp import Connection, WireError  # noqa: E402

RULES = '[[locks]]\nname = "process"\npattern = "lock:*"\nowner = "process"\n'


def in_another_process(path, *command):
    """The reply to one command, sent by a process of its own."""
    done = subprocess.run([sys.executable, os.path.abspath(__file__), "--ask", path, *command],
                          stdout=subprocess.PIPE, text=True, timeout=20)
    return done.stdout.strip()


def talk(proxy):
    """Yields what was asked, the answer, and the answer expected."""
    path = proxy.unix
    with proxy.connect() as first, proxy.connect() as second:
        yield "PING", first.ask("PING"), "PONG"
        yield "acquire", first.ask("SET", "lock:u", "1", "NX", "EX", "30"), "OK"
        yield "another process's DEL", in_another_process(path, "DEL", "lock:u"), "0"
        yield "another process's EXPIRE", in_another_process(path, "EXPIRE", "lock:u", "600"), "0"
        yield "a second connection's EXPIRE", second.ask("EXPIRE", "lock:u", "60"), 1
        yield "a second connection's DEL", second.ask("DEL", "lock:u"), 1
        yield "another process acquires", in_another_process(path, "SET", "lock:u", "1", "NX", "EX", "30"), "OK"
        yield "DEL of its lock", first.ask("DEL", "lock:u"), 0


def main():
    if sys.argv[1:2] == ["--ask"]:
        with Connection(sys.argv[2]) as connection:
            print(connection.ask(*sys.argv[3:]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    options = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="lockward-unix-") as folder:
        try:
            with Server(options.server, folder, unix=os.path.join(folder, "server.sock")) as server, \
                    Proxy(options.proxy, server, RULES, folder, unix=os.path.join(folder, "proxy.sock")) as proxy:
                for what, got, wanted in talk(proxy):
                    if got == wanted:
                        passed += 1
                    else:
                        failed += 1
                        print("FAIL  unix socket: %s: expected %r, got %r" % (what, wanted, got))
        except (WireError, OSError, RuntimeError) as error:
            failed += 1
            print("FAIL  unix socket: %s" % (error or type(error).__name__))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
