"""Traffic with marked secrets in every place where a client can put one: passwords, values, script arguments, commands
that are wrong. leaks.py looks where they went. Here only the answers that show that something did happen are checked.
"""
import time

from harness import marks
from harness.processes import Server
from harness.resp import Error, WireError, encode

RIGHTS = ["~*", "&*", "+@all"]


def close_the_server(server: Server):
    """From here on it asks for passwords."""
    with server.connect() as direct:
        for command in (("ACL", "SETUSER", "lockward", "on", ">" + marks.UPSTREAM_PASSWORD, *RIGHTS),
                        ("ACL", "SETUSER", "app", "on", ">" + marks.USER_PASSWORD, *RIGHTS),
                        ("CONFIG", "SET", "requirepass", marks.DEFAULT_PASSWORD)):
            say(direct, "OK", *command)


def monitor_request():
    return encode("AUTH", marks.DEFAULT_PASSWORD) + encode("MONITOR")


def say(connection, wanted, *command):
    """Sends a command; the answer must be as expected: `Error` stands for any error."""
    reply = connection.ask(*command)
    good = isinstance(reply, Error) if wanted is Error else reply == wanted
    if not good:
        raise RuntimeError("%s: expected %r, got %s" % (command[0], wanted, marks.hidden(repr(reply))))


def open_client(proxy, name, limit=10):
    client = proxy.connect(limit=limit)
    say(client, "OK", "AUTH", marks.DEFAULT_PASSWORD)
    say(client, "OK", "CLIENT", "SETNAME", name)
    return client


def play(server, proxy):
    """Returns clients that hold locks; the caller closes them."""
    logins(proxy)
    first, second = open_client(proxy, "first"), open_client(proxy, "second")
    plain(first)
    locks(server, first, second)
    observed(first, second)
    scripts(first)
    transactions(first)
    nonsense(proxy)
    settings(proxy)
    kept = crash(proxy)
    say(first, "OK", "SET", "lock:held", marks.LOCK_VALUE, "NX", "EX", "100")
    say(second, None, "SET", "lock:held", marks.LOCK_VALUE, "NX", "EX", "100")
    return [first, second, kept]


def logins(proxy):
    with proxy.connect() as client:
        say(client, Error, "GET", marks.ODD_ARGUMENT)
        say(client, Error, "SET", "lock:early", marks.LOCK_VALUE, "NX", "EX", "9")
        say(client, Error, "AUTH", marks.WRONG_PASSWORD)
        say(client, Error, "AUTH", "app", marks.WRONG_PASSWORD)
        say(client, Error, "AUTH", "app", marks.USER_PASSWORD, marks.ODD_ARGUMENT)
        say(client, Error, "HELLO", "3", "AUTH", "app", marks.WRONG_PASSWORD)
        say(client, "OK", "AUTH", "app", marks.USER_PASSWORD)
    with proxy.connect() as client:
        client.ask("HELLO", "3", "AUTH", "app", marks.USER_PASSWORD, "SETNAME", "third")
        say(client, "OK", "SET", "seen:user", marks.LOCK_VALUE, "NX", "EX", "60")
    with proxy.connect() as client:
        client.send(b"AUTH app %s\r\n" % marks.WRONG_PASSWORD.encode())
        client.reply()
        client.send(b'AUTH "app" "%s"\r\n' % marks.USER_PASSWORD.encode())
        if client.reply() != "OK":
            raise RuntimeError("an inline AUTH was refused")


def plain(client):
    say(client, "OK", "SET", "data:x", marks.STORED_VALUE)
    say(client, marks.STORED_VALUE.encode(), "GET", "data:x")
    client.ask("MSET", "data:y", marks.STORED_VALUE, "data:z", marks.STORED_VALUE)
    client.ask("LPUSH", "data:list", marks.STORED_VALUE)
    client.ask("ECHO", marks.STORED_VALUE)
    say(client, Error, "INCR", "data:x")
    client.ask("PUBLISH", "channel", marks.STORED_VALUE)


def locks(server, first, second):
    """Grants and every kind of refusal."""
    value = marks.LOCK_VALUE
    say(first, "OK", "SET", "lock:a", value, "NX", "EX", "60")
    say(second, None, "SET", "lock:a", value, "NX", "EX", "60")
    say(second, 0, "SETNX", "lock:a", value)
    say(second, 0, "DEL", "lock:a")
    say(second, 0, "EXPIRE", "lock:a", "5")
    say(second, Error, "SET", "lock:a", value)
    say(second, Error, "SETEX", "lock:a", "5", value)
    say(second, Error, "MSET", "lock:a", value, "data:x", value)
    say(first, value.encode(), "GET", "lock:a")
    first.ask("GETEX", "lock:a", "EX", "60")
    first.ask("LOCKWARD", "FENCE", "lock:a")
    first.ask("LOCKWARD", "WHOAMI")
    first.ask("LOCKWARD", marks.ODD_ARGUMENT)
    first.ask("HGETALL", "lockward:{lock:a}")
    first.ask("SET", "lockward:{lock:a}", marks.STORED_VALUE)
    say(first, 1, "DEL", "lock:a")
    say(first, 1, "SETNX", "lock:b", value)
    second.ask("GETSET", "lock:b", value)
    first.ask("SET", "lock:c", value, "NX", "GET")
    first.ask("SET", "lock:c", value, "IFEQ", value)
    first.ask("DELIFEQ", "lock:c", value)
    first.ask("DELEX", "lock:c", "IFEQ", value)
    first.ask("APPEND", "lock:c", value)
    say(first, "OK", "SET", "lock:late", value, "NX", "PX", "30")
    with server.connect() as direct:
        say(direct, "OK", "AUTH", marks.DEFAULT_PASSWORD)
        while direct.ask("EXISTS", "lock:late"):
            time.sleep(0.01)
    say(second, "OK", "SET", "lock:late", value, "NX", "EX", "60")
    say(first, 0, "DEL", "lock:late")
    for bad in (("EX", marks.ODD_ARGUMENT), (marks.ODD_ARGUMENT,), ("EX", "-1"), ("EX",)):
        say(first, Error, "SET", "lock:d", value, "NX", *bad)
    say(first, Error, "EXPIRE", "lock:late", marks.ODD_ARGUMENT)


def observed(first, second):
    value = marks.LOCK_VALUE
    say(first, "OK", "SET", "seen:a", value, "NX", "EX", "60")
    second.ask("SET", "seen:a", value, "NX", "EX", "60")
    second.ask("SET", "seen:a", value)
    second.ask("DEL", "seen:a")
    first.ask("DEL", "seen:a")
    first.ask("SET", "unmatched:lock:1", value, "NX", "EX", "60")
    first.ask("DEL", "unmatched:lock:1")


def scripts(client):
    argument = marks.SCRIPT_ARGUMENT
    say(client, argument.encode(), "EVAL", "return ARGV[1]", "1", "lock:script", argument)
    say(client, Error, "EVAL", "return redis.error_reply(ARGV[1])", "1", "lock:script", argument)
    say(client, Error, "EVAL", "this is no lua '%s'" % argument, "1", "lock:script", argument)
    say(client, Error, "EVALSHA", "0" * 40, "1", "lock:script", argument)
    client.ask("SCRIPT", "LOAD", "return '%s'" % argument)
    client.ask("FCALL", "no_such_function", "1", "lock:script", argument)
    say(client, "OK", "SET", "lock:script", marks.LOCK_VALUE, "NX", "EX", "60")
    client.ask("EVAL", "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0", "1",
               "lock:script", marks.LOCK_VALUE)


def transactions(client):
    for last in ("EXEC", "DISCARD"):
        client.ask("WATCH", "lock:m")
        client.ask("MULTI")
        client.ask("SET", "lock:m", marks.LOCK_VALUE, "NX", "EX", "60")
        client.ask("SET", "data:m", marks.STORED_VALUE)
        client.ask("AUTH", marks.DEFAULT_PASSWORD)
        client.ask("SET", "lock:m", marks.LOCK_VALUE, marks.ODD_ARGUMENT)
        client.ask(last)
    client.ask("MULTI")
    client.ask("SET", "lock:m", marks.LOCK_VALUE, "NX", "EX", "60")
    client.ask("DEL", "lock:m")
    client.ask("EXEC")
    client.send(encode("SET", "lock:p", marks.LOCK_VALUE, "NX", "EX", "60") + encode("DEL", "lock:p")
                + encode("SET", "lock:p", marks.LOCK_VALUE, "NX", "EX", marks.ODD_ARGUMENT))
    for _ in range(3):
        client.reply()


def nonsense(proxy):
    """What is no command, and what is no RESP."""
    odd = marks.ODD_ARGUMENT.encode()
    with open_client(proxy, "odd") as client:
        client.ask(marks.ODD_ARGUMENT)
        client.ask("FROBNICATE", marks.STORED_VALUE)
        client.ask("CLIENT", "SETINFO", "LIB-NAME", marks.ODD_ARGUMENT)
        client.ask("CLIENT", "SETNAME", "with " + marks.ODD_ARGUMENT)
    for data in (b"*1\r\n:%s\r\n" % odd, b"*%s\r\n" % odd, b"*1\r\n$%s\r\n" % odd, b'SET lock:x "%s\r\n' % odd,
                 b'SET lock:x "%s"tail\r\n' % odd, b"*2\r\n$3\r\nGET\r\n$-5\r\n%s" % odd, b"\0%s\0\r\n" % odd):
        with open_client(proxy, "odd", limit=1) as client:
            client.send(data)
            try:
                client.reply()
            except (WireError, OSError):
                pass            # closed, or waiting for more: right too


def settings(proxy):
    with open_client(proxy, "admin") as client:
        client.ask("ACL", "SETUSER", "other", "on", ">" + marks.USER_PASSWORD, "#" + "0" * 64, *RIGHTS)
        client.ask("ACL", "SETUSER", "other", ">" + marks.USER_PASSWORD, "+" + marks.ODD_ARGUMENT)
        client.ask("CONFIG", "SET", "requirepass", marks.DEFAULT_PASSWORD)
        client.ask("CONFIG", "SET", "masterauth", marks.USER_PASSWORD)
        client.ask("CONFIG", "GET", "requirepass")
        client.ask("MIGRATE", "127.0.0.1", "1", "lock:a", "0", "10", "AUTH", marks.USER_PASSWORD)
        client.ask("MIGRATE", "127.0.0.1", "1", "data:x", "0", "10", "AUTH2", "u", marks.USER_PASSWORD)


def crash(proxy):
    """One client breaks off in the middle of a value, one with its lease held, one closes and comes back."""
    client = open_client(proxy, "broken")
    client.send(b"*3\r\n$3\r\nSET\r\n$6\r\nlock:q\r\n$100\r\n%s" % marks.LOCK_VALUE.encode())
    client.reset()
    client = open_client(proxy, "holder")
    say(client, "OK", "SET", "keep:a", marks.LOCK_VALUE, "NX", "PX", "600")
    time.sleep(0.5)             # a renewal
    client.reset()
    client = open_client(proxy, "keeper")
    say(client, "OK", "SET", "keep:b", marks.LOCK_VALUE, "NX", "EX", "60")
    return client
