"""Who may use a shared connection: nobody who could not make one himself. Part of the check sharing.py; each function takes
server, proxy and options and returns what it saw.
"""
import time

from harness import marks
from harness.resp import Error, WireError
from modelled import Wrong

PATIENCE = 5.0          # seconds for what is not immediate


def expect(what, got, wanted):
    """`wanted` may be the first word of an error."""
    fits = isinstance(got, Error) and got.startswith(wanted) if wanted.__class__ is Error else got == wanted
    if not fits:
        raise Wrong("%s: expected %r, got %r" % (what, wanted, got))


def set_user(direct, *rights):
    expect("ACL SETUSER", direct.ask("ACL", "SETUSER", "alice", *rights), "OK")


def alice(direct, proxy, count=3):
    """A user, a key that only she may read, and clients that have logged in as her, and have used it."""
    set_user(direct, "reset", "on", ">" + marks.USER_PASSWORD, "~*", "&*", "+@all")
    direct.ask("SET", "secret:alice", "hers")
    clients = [proxy.connect() for _ in range(count)]
    for client in clients:
        expect("AUTH", client.ask("AUTH", "alice", marks.USER_PASSWORD), "OK")
        expect("GET", client.ask("GET", "secret:alice"), b"hers")
    return clients


def refused(client, what):
    """It is answered with errors, or its connection is closed."""
    try:
        got = client.ask("GET", "secret:alice")
    except (WireError, OSError):
        return
    if not isinstance(got, Error):
        raise Wrong("%s: a client got %r" % (what, got))


def nothing_gained(proxy, password, what):
    """A new client that tries to log in as her with a password that is not hers any more gets the server's own refusal,
    and stays who it was."""
    with proxy.connect() as stranger:
        expect("%s: AUTH" % what, stranger.ask("AUTH", "alice", password), Error("WRONGPASS"))
        expect("%s: whoami" % what, stranger.ask("ACL", "WHOAMI"), b"default")
    with proxy.connect() as stranger:
        got = stranger.ask("HELLO", "3", "AUTH", "alice", password)
        expect("%s: HELLO" % what, got, Error("WRONGPASS"))
        expect("%s: whoami" % what, stranger.ask("ACL", "WHOAMI"), b"default")


def close(clients):
    for client in clients:
        client.close()


def deleted_user(server, proxy, options):
    """ACL DELUSER: those who are logged in as her are out, as at the server itself, and nobody comes in."""
    with server.connect() as direct:
        clients = alice(direct, proxy)
        expect("ACL DELUSER", direct.ask("ACL", "DELUSER", "alice"), 1)
        time.sleep(0.2)
        for client in clients:
            refused(client, "after ACL DELUSER")
        nothing_gained(proxy, marks.USER_PASSWORD, "after ACL DELUSER")
        # Somebody else of that name does not inherit the clients.
        set_user(direct, "reset", "on", ">" + marks.DEFAULT_PASSWORD, "~*", "&*", "+@all")
        for client in clients:
            refused(client, "after another user of that name was made")
        close(clients)
    return "%d clients" % len(clients)


def changed_password(server, proxy, options):
    """Another password: the old one opens nothing, not even a connection that was opened with it; the new one does."""
    with server.connect() as direct:
        clients = alice(direct, proxy)
        set_user(direct, "resetpass", ">" + marks.DEFAULT_PASSWORD)
        nothing_gained(proxy, marks.USER_PASSWORD, "after another password")
        # Who was in stays in, at the server too, as long as the connection lives. When that breaks, the old password is
        # no longer worth anything.
        for client in clients:
            expect("who was logged in", client.ask("GET", "secret:alice"), b"hers")
        direct.ask("CLIENT", "KILL", "USER", "alice")
        time.sleep(0.3)
        for _ in range(3):
            for client in clients:
                refused(client, "after another password and a broken connection")
        with proxy.connect() as client:
            expect("AUTH", client.ask("AUTH", "alice", marks.DEFAULT_PASSWORD), "OK")
            expect("GET", client.ask("GET", "secret:alice"), b"hers")
            # And with her in again, the old ones are still out.
            for old in clients:
                refused(old, "after somebody logged in with the new password")
        close(clients)
    return "%d clients" % len(clients)


def fewer_rights(server, proxy, options):
    """What a user may not do any more its clients may not do, from the next command on."""
    with server.connect() as direct:
        clients = alice(direct, proxy)
        set_user(direct, "resetkeys", "~open:*")
        for client in clients:
            expect("GET", client.ask("GET", "secret:alice"), Error("NOPERM"))
            expect("GET", client.ask("GET", "open:door"), None)
        set_user(direct, "-get")
        for client in clients:
            expect("GET", client.ask("GET", "open:door"), Error("NOPERM"))
        close(clients)
    return "%d clients" % len(clients)


def password_all_of_a_sudden(server, proxy, options):
    """CONFIG SET requirepass: a client that comes afterwards is asked for it, whoever came before."""
    with server.connect() as direct:
        direct.ask("SET", "secret:all", "theirs")
        early = [proxy.connect() for _ in range(3)]
        try:
            for client in early:
                expect("before", client.ask("GET", "secret:all"), b"theirs")
            expect("CONFIG SET", direct.ask("CONFIG", "SET", "requirepass", marks.DEFAULT_PASSWORD), "OK")
            # What was changed past lockward it finds out within a tenth of a second.
            time.sleep(0.15)
            for _ in range(3):
                with proxy.connect() as late:
                    expect("a late client", late.ask("GET", "secret:all"), Error("NOAUTH"))
                    expect("AUTH", late.ask("AUTH", marks.WRONG_PASSWORD), Error("WRONGPASS"))
                    expect("after that", late.ask("GET", "secret:all"), Error("NOAUTH"))
                    expect("AUTH", late.ask("AUTH", marks.DEFAULT_PASSWORD), "OK")
                    expect("with the password", late.ask("GET", "secret:all"), b"theirs")
        finally:
            direct.ask("CONFIG", "SET", "requirepass", "")
            close(early)
    return "%d clients before, 3 afterwards" % len(early)
