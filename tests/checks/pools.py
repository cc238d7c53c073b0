"""How many connections to the server there are while clients share them. Part of the check sharing.py; each function takes
server, proxy and options and returns what it saw.
"""
import os
import time

from harness.resp import encode
from modelled import Wrong

CLIENTS = 500
QUIET = 1.2             # seconds after which lockward takes a connection away that is not needed
SETTLING = 15.0         # seconds until connections that are not needed any more must be gone
# lockward's own, and for clients one for each worker, database, user and protocol version.
MOST = 4 + (os.cpu_count() or 1)

# State, made and given up: commands, and how many frames come back.
EPISODES = {
    "MULTI and EXEC": ([("MULTI",), ("SET", "a", "1"), ("EXEC",)], 3),
    "MULTI and DISCARD": ([("MULTI",), ("SET", "a", "1"), ("DISCARD",)], 3),
    "WATCH and UNWATCH": ([("WATCH", "a"), ("UNWATCH",)], 2),
    "SELECT and back": ([("SELECT", "1"), ("GET", "a"), ("SELECT", "0")], 3),
    "a subscription and its end": ([("SUBSCRIBE", "c"), ("UNSUBSCRIBE", "c")], 2),
    "a blocking command": ([("BLPOP", "nothing", "0.05")], 1),
    "HELLO 3 and 2": ([("HELLO", "3"), ("GET", "a"), ("HELLO", "2")], 3),
    "CLIENT REPLY OFF and ON": ([("CLIENT", "REPLY", "OFF"), ("CLIENT", "REPLY", "ON")], 1),
    "a state that RESET ends": ([("CLIENT", "TRACKING", "ON", "BCAST", "REDIRECT", "0"), ("RESET",)], 2),
}


def connections(direct):
    """How many clients the server has besides this one."""
    return len(direct.ask("CLIENT", "LIST").splitlines()) - 1


def opened(proxy):
    clients = [proxy.connect(limit=20) for _ in range(CLIENTS)]
    ask_all(clients)
    return clients


def ask_all(clients):
    """A GET of each, all under way at once."""
    for client in clients:
        client.send(encode("GET", "a"))
    for client in clients:
        client.reply()


def close_all(clients):
    for client in clients:
        client.close()


def few_connections(server, proxy, options):
    """500 clients that keep no state share few connections."""
    clients = opened(proxy)
    try:
        for _ in range(3):
            ask_all(clients)
        with server.connect() as direct:
            found = connections(direct)
    finally:
        close_all(clients)
    if found > MOST:
        raise Wrong("%d connections for %d clients, at most %d" % (found, CLIENTS, MOST))
    return "%d connections for %d clients" % (found, CLIENTS)


def few_again_after_state(server, proxy, options):
    """The same after each of them has made and given up state of each kind."""
    clients, said = opened(proxy), []
    try:
        with server.connect() as direct:
            for name, (commands, frames) in EPISODES.items():
                before = sorted(connections(direct) for _ in range(2))[0]
                for client in clients:
                    client.send(b"".join(encode(*command) for command in commands))
                for client in clients:
                    for _ in range(frames):
                        client.frame()
                most, begun = max(before, connections(direct)), time.monotonic()
                settle(direct, clients, name)
                said.append("%s: %d, few again after %.1f s" % (name, most, time.monotonic() - begun))
    finally:
        close_all(clients)
    return "; ".join(said)


def watch_behind_the_end_of_another(server, proxy, options):
    """A watch that is sent in one packet behind what ends the one before holds, also when the client was quiet since."""
    for first in ([("MULTI",), ("EXEC",)], [("MULTI",), ("DISCARD",)], [("UNWATCH",)], [("WATCH", "b"), ("UNWATCH",)]):
        with proxy.connect() as client, server.connect() as direct:
            commands = first + [("WATCH", "a")]
            client.send(b"".join(encode(*command) for command in commands))
            for _ in commands:
                client.reply()
            for _ in range(2):      # long enough for lockward to give it another connection, and to use that
                time.sleep(QUIET)
                client.ask("GET", "a")
            direct.ask("SET", "a", "2")
            got = [client.ask("MULTI"), client.ask("GET", "a"), client.ask("EXEC")]
            if got[-1] is not None:
                raise Wrong("behind %s a watch is void: EXEC gave %r" % (first, got[-1]))
    return "in 4 ways"


def settle(direct, clients, name):
    """Waits until there are few connections again, while each client asks for something now and then."""
    deadline = time.monotonic() + SETTLING
    while connections(direct) > MOST:
        if time.monotonic() > deadline:
            raise Wrong("%d connections %d s after %s, at most %d" % (connections(direct), SETTLING, name, MOST))
        time.sleep(0.5)
        ask_all(clients)
