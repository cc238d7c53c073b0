#!/usr/bin/env python3
"""Plays random pipelines of commands with state (transactions, subscriptions, CLIENT REPLY, HELLO, RESET, locks) to a
server and to a proxy in front of it, cut into random packets, and compares all that comes back, byte for byte.

    differential.py SERVER_PORT PROXY_PORT [COUNT [SEED]]

Flushes the server: give it a throw-away one, with nobody else on it. Looks away from one difference: scripts' reads
make the server track lock keys, so invalidations of them come. Starts nothing, and knows no answer itself.
"""
import random
import re
import socket
import sys
import time

COMMANDS = """PING|ECHO a|GET k|SET k 1|INCR n|MULTI|MULTI|EXEC|EXEC|EXEC|DISCARD|EXEC foo|DISCARD foo|MULTI x|WATCH k
WATCH lock:k|UNWATCH|SELECT 1|SELECT 0|SELECT 99|SELECT x|CLIENT REPLY OFF|CLIENT REPLY SKIP|CLIENT REPLY ON
CLIENT REPLY ON|CLIENT REPLY X|CLIENT SETNAME a|CLIENT SETNAME|CLIENT GETNAME||*0|RESET|HELLO 3|HELLO 2|HELLO 9
HELLO 3 SETNAME b|AUTH a b|AUTH default x|SUBSCRIBE a|SUBSCRIBE a b|PSUBSCRIBE p*|SSUBSCRIBE s t|UNSUBSCRIBE
UNSUBSCRIBE a|PUNSUBSCRIBE|SUNSUBSCRIBE|SUBSCRIBE|BLPOP l 0.01|RPUSH l x|LRANGE l 0 -1|KEYS lock:*|NOSUCH x
REPLCONF ACK 1|REPLCONF ACK|REPLCONF|REPLCONF listening-port x getack 1|EVAL "return {1,{2,3},false}" 0
EVAL "return redis.error_reply('X y')" 0|EVAL "return 1" 1 lock:k|CLIENT TRACKING ON|CLIENT TRACKING OFF|FLUSHDB
SWAPDB 0 1|LOLWUT x|GETDEL k|DEL k|LPUSH|WAIT 0 1|SET lock:k 1 NX|SET lock:k 1 NX PX 50000|SETNX lock:k 1
SET lock:k 2|DEL lock:k|DEL lock:k|DEL lock:k x|EXPIRE lock:k 100|GET lock:k|MSET lock:k 1 k 2"""
COMMANDS = COMMANDS.replace("\n", "|").split("|")
# Back to a plain state from any other, and a mark that tells the end.
MARK = "end-of-play"
LAST = ["DISCARD", "RESET", "CLIENT REPLY ON", "RESET", f"ECHO {MARK}"]


def connect(port):
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def flush(port):
    with connect(port) as sock:
        sock.sendall(b"FLUSHALL\r\n")
        sock.recv(10)


def play(port, data, cuts):
    """Sends `data` in packets that end at `cuts`; what came back, without what differs between two connections."""
    heard, start = b"", 0
    with connect(port) as sock:
        try:
            for cut in cuts + [len(data)]:
                sock.sendall(data[start:cut])
                start = cut
                time.sleep(0.001)
            sock.settimeout(1.5)
            while piece := sock.recv(65536):
                heard += piece
                if MARK.encode() + b"\r\n" in heard:
                    sock.settimeout(0.02)
            heard += b"<closed>"
        except socket.timeout:
            pass
        except OSError:
            heard += b"<reset>"
    heard = heard.replace(b">2\r\n$10\r\ninvalidate\r\n*1\r\n$6\r\nlock:k\r\n", b"")
    return re.sub(rb"id\r\n:\d+", b"id", heard)


def main():
    server, proxy = int(sys.argv[1]), int(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 500
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 32)
    chance, differ = random.Random(seed), 0
    for number in range(count):
        lines = [chance.choice(COMMANDS) for _ in range(chance.randint(2, 14))] + LAST
        data = "".join(line + "\r\n" for line in lines).encode()
        cuts = sorted(chance.sample(range(1, len(data)), chance.randint(0, 6)))
        heard = []
        # The server twice: what is not the same then is not the proxy's doing.
        for port in (server, proxy, server):
            flush(server)
            heard.append(play(port, data, cuts))
        if heard[0] == heard[2] != heard[1]:
            differ += 1
            print(f"seed {seed}, number {number}: {lines}\n  server {heard[0]}\n  proxy  {heard[1]}")
    print(f"seed {seed}: {count} pipelines, {differ} differ")
    sys.exit(differ > 0)


if __name__ == "__main__":
    main()
