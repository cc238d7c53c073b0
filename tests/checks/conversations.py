"""What the transparency check says to both sides: one function for each part of the protocol that a proxy can spoil.

Each takes `pair`, which opens a connection to both sides, and a seeded random generator. Nothing in here may depend on
the time of day or on who is connected: both sides must be able to answer the same bytes.
"""
import time

from harness.resp import encode
from pair import Differs

HELLO_ID = [rb"\$2\r\nid\r\n:\d+\r\n"]
TYPES = ["string", "integer", "double", "null", "array", "set", "map", "bignum", "true", "false", "verbatim",
         "attrib"]
# Nothing stands behind the fault: input that is left unread when the server closes can cost the client its last words.
BROKEN = [
    b"*1\r\n:1\r\n", b"*1\r\n$-1\r\n", b"*1\r\n$abc\r\n", b"*abc\r\n", b"*2147483648\r\n", b"*+1\r\n",
    b"*01\r\n", b"*1\r\n$04\r\n", b"*2\r\n$3\r\nGET\r\n$536870913\r\n", b"*1\r\n$ 4\r\n",
    b"SET k \"a\r\n", b"SET k 'a\r\n", b"*2\r\n$4\r\nECHO\r\n+x\r\n",
]
OVERLONG = [b"x" * 70000, b"*" + b"1" * 70000, b"*1\r\n$" + b"1" * 70000]
SURVIVED = [
    b"PING\r\n", b"PING\n", b"\r\n\r\nPING\r\n", b"*0\r\n*-1\r\n*-7\r\nPING\r\n", b"ECHO 'a\\'b'\r\n",
    b"ECHO \"a\\x41\\n\\r\\t\\a\\b\\\\\"\r\n", b"  ECHO   x  \r\n", b"eChO \"\"\r\n",
    b"PING\tx\r\n", b"ECHO \xfe\x80\r\n", b"\x00PING\r\n", b"ECHO a\x00b\r\n",
]

# Redis and Valkey split these inline lines differently, so that a lock's name could hide in them. lockward refuses them
# in the server's words for a bad line and closes: the one place where it is stricter than the server (resp/inline.rs).
AMBIGUOUS = [b"SET k \"a\"b\r\n", b"SET k 'a'b\r\n"]


def reply_types(pair, random):
    """Every kind of reply in both protocol versions, nested ones too."""
    for version in (2, 3):
        with pair() as c:
            c.forget = HELLO_ID
            c.command("HELLO", version)
            c.forget = []
            for kind in TYPES:
                c.command("DEBUG", "PROTOCOL", kind)
            c.command("EVAL", "return {1,{2,{3,{}},'x'},redis.status_reply('FINE'),false}", 0)
            c.command("EVAL", "local t={} for i=1,500 do t={t} end return t", 0)
            c.command("EVAL", "redis.setresp(3) return {map={a=1,b={double=1.5}},1}", 0)
            c.command("EVAL", "redis.setresp(3) return {double=-0.25}", 0)
            c.command("EVAL", "redis.setresp(3) return {big_number='12345678901234567890123'}", 0)
            c.command("EVAL", "redis.setresp(3) return {set={x=true}}", 0)
            c.command("DEL", "h", "s")
            for words in ("HSET h f 1", "HGETALL h", "SADD s x", "SMEMBERS s", "GET none", "LRANGE none 0 -1",
                          "BLPOP none 0.01", "ZADD z 1.5 m", "ZSCORE z m", "ZRANGE z 0 -1 WITHSCORES", "HGETALL none"):
                c.line(words)


def errors(pair, random):
    """Error replies in the server's own words, whatever bytes they hold."""
    with pair() as c:
        for words in ("NOSUCH a b", "GET", "SET k", "MSET a 1 b", "CONFIG GET", "CONFIG NOSUCH", "CLIENT NOSUCH",
                      "EXPIRE k soon", "SET k v NX XX", "OBJECT HELP x", "AUTH x", "AUTH a b", "EVALSHA x 0",
                      "FCALL none 0", "EXEC", "DISCARD", "XREAD STREAMS a", "HELLO 9", "SELECT 99", "SELECT x"):
            c.line(words)
        c.command(b"NO\xff\xfe\r\nSUCH", b"\x00")
        c.command("LPUSH", "list", "x")
        c.command("INCR", "list")
        c.command("EVAL", "return redis.error_reply('FOO')", 0)
        c.command("EVAL", "return redis.error_reply('MY own text')", 0)
        c.command("EVAL", "return {err='X y', 1}", 0)
        c.command("PING")
        c.quiet()


def inline(pair, random):
    """Inline commands, and what the server forgives in requests."""
    for data in SURVIVED:
        with pair() as c:
            c.send(data + b"ECHO end\r\n")
            c.half_close()
            c.same_rest()
    with pair() as c:       # Redis takes any two bytes for the end of a bulk; Valkey 9.1 refuses them and closes
        c.send(b"*1\r\n$4\r\nPINGxx", split=False)
        c.same_rest()


def broken(pair, random):
    """Requests that are none: the same error, then the same end; a good command in front is still answered."""
    for data in BROKEN:
        with pair() as c:
            c.try_to_send(b"PING\r\n" + data)
            c.same_rest(1)
            c.same_end()
    for data in OVERLONG:
        with pair() as c:
            c.try_to_send(data)
            c.same_unless_reset()
            c.same_end()


def ambiguous(pair, random):
    """Inline lines that servers read differently are refused by lockward, whatever the server would do."""
    for data in AMBIGUOUS:
        with pair() as c:
            c.send(data)
            said = c.sides[1].rest(1)
            if said != b"-ERR Protocol error: unbalanced quotes in request\r\n" or not c.sides[1].is_closed(1):
                raise Differs("lockward answered %r with %r" % (data, said))


def pipelines(pair, random):
    """Ten thousand commands in one go, with errors among them."""
    with pair() as c:
        c.command("SET", "text", "x")
        count = 10000
        c.send(b"".join(encode("ECHO", i) if i % 7 else encode("INCR", "text") for i in range(count)))
        c.same(count)
        c.quiet()


def large(pair, random):
    """Large values, many arguments, large replies."""
    with pair() as c:
        value = bytes(random.getrandbits(8) for _ in range(4096)) * 2048
        c.command("SET", "big", value)
        c.command("GET", "big")
        c.command("RPUSH", "long", *range(20000))
        c.command("LRANGE", "long", 0, -1)
        c.command("MGET", *["big"] * 5)
        c.command("DEL", "big", "long")


def binary(pair, random):
    """Keys and values of any bytes, the empty ones too."""
    with pair() as c:
        for key in (b"", b"\r\n", b"\x00\xff", b"$-1\r\n", b"*1\r\n$4\r\nPING\r\n", "ключ".encode(), b"{", b"}{"):
            for value in (b"", b"\r\n+OK\r\n", b"\x00" * 10):
                c.command("SET", key, value)
                c.command("GET", key)
                c.command("SET", key, value, "NX")
            c.command("DEL", key)


def transactions(pair, random):
    """MULTI with everything that can happen to it."""
    with pair() as c, pair() as d:
        for words in ("MULTI", "SET m 1", "INCR m", "LPUSH m x", "GET m", "EXEC", "MULTI", "NOSUCH", "EXEC", "MULTI",
                      "SET m 5", "DISCARD", "GET m", "WATCH m", "MULTI", "GET m", "EXEC", "MULTI", "EXEC", "WATCH m"):
            c.line(words)
        d.line("SET m changed")
        for words in ("MULTI", "GET m", "EXEC", "WATCH m", "UNWATCH", "MULTI", "WATCH m", "MULTI", "SELECT 1",
                      "SET n 1", "SELECT 0", "PING", "EXEC", "RESET", "PING"):
            c.line(words)
        c.send(b"".join(encode(*words.split()) for words in ("MULTI", "HSET hm a 1", "HGETALL hm", "EXEC")))
        c.same(4)
        c.quiet()


def published(pair, random):
    """Subscriptions of all kinds in both protocol versions, and what is allowed meanwhile."""
    for version in (2, 3):
        with pair() as c, pair() as d:
            c.forget = HELLO_ID
            c.command("HELLO", version)
            c.command("SUBSCRIBE", "a", "b", "a", replies=3)
            c.command("PSUBSCRIBE", "p*", replies=1)
            c.command("SSUBSCRIBE", "shard")
            d.line("PUBLISH a one")
            c.same()
            d.line("PUBLISH pp two")
            c.same()
            d.line("SPUBLISH shard three")
            c.same()
            c.command("PING")
            c.command("PING", "text")
            c.command("GET", "x")
            c.command("UNSUBSCRIBE", "none")
            c.command("SUBSCRIBE")
            c.command("SUNSUBSCRIBE")
            c.command("PUNSUBSCRIBE")
            c.command("UNSUBSCRIBE", "a")       # all at once come in the order of a hash table
            c.command("UNSUBSCRIBE")
            c.command("UNSUBSCRIBE")
            c.send(encode("SUBSCRIBE", "x") + encode("PING") + encode("UNSUBSCRIBE", "x") + encode("ECHO", "end"))
            c.same(4)
            c.command("RESET")
            c.command("PING")
            c.quiet()


def blocking(pair, random):
    """Commands that wait: woken, timed out, with others behind them, and left by a half-close."""
    with pair() as c, pair() as d:
        c.line("BLPOP q 0.05")
        c.send(encode("BLPOP", "q", "5") + encode("ECHO", "behind"))
        time.sleep(0.05)
        d.line("RPUSH q x y")
        c.same(2)
        for words in ("BLMOVE q r LEFT RIGHT 1", "BRPOP none 0.02", "BZPOPMIN none 0.02", "XREAD BLOCK 20 STREAMS st $",
                      "WAIT 0 0", "BLMPOP 0.02 1 none LEFT"):
            c.line(words)
        c.line("MULTI")
        c.line("BLPOP none 0")
        c.line("EXEC")
        c.send(encode("BLPOP", "left", "0"))
        time.sleep(0.05)
        c.half_close()
        c.same_rest(1)
        d.line("RPUSH left x")
        d.line("LLEN left")


def replies_off(pair, random):
    """CLIENT REPLY OFF, SKIP and ON, with errors and with commands that are not answered once."""
    with pair() as c:
        c.send(encode("CLIENT", "REPLY", "OFF") + encode("SET", "ro", "1") + encode("NOSUCH") + encode("PING")
               + encode("CLIENT", "REPLY", "ON") + encode("GET", "ro"))
        c.same(2)
        c.send(encode("CLIENT", "REPLY", "SKIP") + encode("GET", "ro") + encode("ECHO", "x"))
        c.same()
        c.send(encode("CLIENT", "REPLY", "SKIP") + encode("CLIENT", "REPLY", "SKIP") + encode("ECHO", "a")
               + encode("ECHO", "b"))
        c.same_rest(0.2)
        c.command("CLIENT", "REPLY", "NONSENSE")
        c.send(encode("MULTI") + encode("CLIENT", "REPLY", "OFF") + encode("PING") + encode("EXEC")
               + encode("CLIENT", "REPLY", "ON") + encode("PING"))
        c.same_rest(0.2)


def session(pair, random):
    """HELLO, AUTH, SELECT, SETNAME, RESET and QUIT, pipelined too."""
    with pair() as c:
        c.forget = HELLO_ID
        c.send(b"".join(encode(*words.split()) for words in (
            "HELLO 3", "HGETALL none", "HELLO 2", "HGETALL none", "HELLO 3 SETNAME me", "CLIENT GETNAME", "RESET",
            "CLIENT GETNAME", "GET none", "SELECT 2", "SET db two", "SELECT 0", "GET db", "HELLO", "HELLO 4", "HELLO x",
            "CLIENT SETNAME bad\x01name", "AUTH wrong", "AUTH default x", "CLIENT SETINFO lib-name x", "ACL WHOAMI")))
        c.same(21)
        c.quiet()
        c.send(encode("QUIT") + encode("SET", "after", "quit"), split=False)
        c.same()
        c.same_end()
    with pair() as c:
        c.line("EXISTS after")
        c.send(encode("PING") * 1000)
        c.half_close()
        c.same(1000)
        c.same_end()


def scripts(pair, random):
    """The client's own scripts and functions."""
    with pair() as c:
        c.command("EVALSHA", "0" * 40, 0)
        loaded = c.command("SCRIPT", "LOAD", "return {KEYS[1],ARGV[1]}")
        digest = loaded.split(b"\r\n")[1]
        c.command("EVALSHA", digest, 1, "k", "v")
        c.command("EVALSHA", digest.upper(), 1, "k", "v")
        c.command("SCRIPT", "EXISTS", digest, "f" * 40)
        c.send(encode("SCRIPT", "FLUSH") + encode("EVALSHA", digest, 1, "k", "v") + encode("PING"))
        c.same(3)
        c.command("EVAL", "return redis.call('set',KEYS[1],ARGV[1])", 1, "k", "v")
        c.command("EVAL_RO", "return redis.call('get',KEYS[1])", 1, "k")
        c.command("EVAL", "return 1", -1)
        c.command("EVAL", "return 1", 5, "k")
        c.command("EVAL", "syntax error", 0)


def tracking(pair, random):
    """Invalidations of CLIENT TRACKING."""
    with pair() as c, pair() as d:
        c.forget = HELLO_ID
        c.command("HELLO", 3)
        c.command("CLIENT", "TRACKING", "ON")
        c.command("MGET", "t1", "t2")
        d.command("MSET", "t1", 1, "t2", 2)
        c.same(2)
        c.command("GET", "t1")
        d.command("DEL", "t1")
        c.same()
        c.command("CLIENT", "TRACKING", "OFF")
        c.command("PING")
        c.quiet()


def monitored(pair, random):
    """MONITOR's stream: the lines that name our keys."""
    with pair() as c, pair() as d:
        c.command("MONITOR")
        for words in ("SET seen:1 x", "GET seen:1", "DEL seen:1 seen:2"):
            d.line(words)
        lines = []
        for side in c.sides:
            mine = []
            while len(mine) < 3:
                line = side.line()
                if b"seen:" in line:
                    mine.append(line[line.index(b"]") + 1:])
            lines.append(mine)
        if lines[0] != lines[1]:
            raise Differs("directly %r, through lockward %r" % tuple(lines))
        c.send(encode("PING"))
        c.close()


DATA = [
    "SET {k} {v}", "GET {k}", "INCR {k}", "APPEND {k} {v}", "DEL {k}", "DEL {k} {l}", "EXISTS {k} {l}",
    "MSET {k} {v} {l} {v}", "MGET {k} {l}", "LPUSH {k} {v}", "LRANGE {k} 0 -1", "HSET {k} f {v}", "HGETALL {k}",
    "SADD {k} {v}", "TYPE {k}", "SCARD {k}", "EXPIRE {k} 1000", "PERSIST {k}", "RENAME {k} {l}", "GETRANGE {k} 0 3",
    "NOSUCH {k}", "ECHO {v}", "GETSET {k} {v}", "SETNX {k} {v}", "STRLEN {k}", "OBJECT ENCODING {k}", "COPY {k} {l}",
    "PING",
]
LOCKS = [
    "SET {k} {v} NX", "SET {k} {v} NX EX 1000", "SET {k} {v} PX 900000 NX", "SETNX {k} {v}", "SET {k} {v}",
    "SET {k} {v} XX", "SET {k} {v} KEEPTTL", "SET {k} {v} GET", "SET {k} {v} NX GET", "SETEX {k} 1000 {v}",
    "GETSET {k} {v}", "DEL {k}", "DEL {k} {l}", "UNLINK {k}", "DEL {k} {d} {k}", "GETDEL {k}", "EXPIRE {k} 2000",
    "EXPIRE {k} {later} GT", "EXPIRE {k} 100 GT", "EXPIRE {k} 500 NX", "EXPIRE {k} 3000 XX", "EXPIRE {k} 0",
    "PEXPIREAT {k} 1000", "PERSIST {k}", "GETEX {k} EX 700", "GETEX {k} PERSIST", "MSET {k} {v} {d} {v}",
    "MSETNX {k} {v} {l} {v}", "RENAME {k} {d}", "RENAMENX {k} {l}", "GET {k}", "EXISTS {k} {l}", "INCR {k}",
    "APPEND {k} {v}", "SET {k}", "SET {k} {v} NX XX", "EXPIRE {k} soon", "SETEX {k} 0 {v}", "HSET {k} f {v}",
    "SET {k} {v} NX EX 0", "TYPE {k}", "DEL", "GETDEL", "COPY {d} {k}",
]


def generated(pair, random, commands, prefix, count):
    """Random commands on three connections of one host, alone, in pipelines and in transactions."""
    seconds = iter(range(5000, 10 ** 9, 100))   # each GT far from the TTL before it: the sides are not of one clock

    def words():
        text = random.choice(commands)
        keys = ["%s%d" % (prefix, random.randrange(5)) for _ in range(2)]
        return text.format(k=keys[0], l=keys[1], d="data:%d" % random.randrange(3), v=random.choice("abc123"),
                           later=next(seconds)).split()

    with pair() as a, pair() as b, pair() as c:
        for _ in range(count):
            connection = random.choice([a, b, c])
            shape = random.random()
            batch = [words() for _ in range(random.randint(1, 8))]
            if shape < 0.5:
                connection.command(*batch[0])
            elif shape < 0.8:
                connection.send(b"".join(encode(*w) for w in batch))
                connection.same(len(batch))
            else:
                batch = [["MULTI"]] + batch + [["DISCARD" if shape > 0.97 else "EXEC"]]
                connection.send(b"".join(encode(*w) for w in batch))
                connection.same(len(batch))
        for connection in (a, b, c):
            connection.quiet()


def generated_data(pair, random):
    """Random commands on plain keys."""
    generated(pair, random, DATA, "data:", 300)


def generated_locks(pair, random):
    """Random lock commands of one owner whose leases do not expire: he is answered as without a proxy."""
    generated(pair, random, LOCKS, "lock:", 600)


def stolen_locks(pair, random):
    """Late and foreign releases and heartbeats: what enforce mode is there to refuse."""
    with pair(source="127.0.0.21") as a, pair(source="127.0.0.22") as b:
        a.line("SET lock:s 1 NX PX 60")
        a.line("SETNX lock:t 1")
        time.sleep(0.12)
        for who, words in (
                (b, "SET lock:s 1 NX EX 100"), (a, "DEL lock:s"), (b, "EXPIRE lock:t 100"), (b, "SET lock:t 2"),
                (b, "GETSET lock:t 3"), (b, "DEL lock:t"), (b, "SET lock:s 1 NX EX 100"), (a, "GETDEL lock:s"),
                (a, "SETNX lock:t 1"), (b, "RENAME lock:t lock:u"), (b, "DEL lock:u")):
            who.line(words)
        a.send(b"".join(encode(*w.split()) for w in ("MULTI", "SET lock:s 1 NX EX 100", "DEL lock:s", "EXEC")))
        a.same(4)


ALWAYS = [reply_types, errors, inline, broken, ambiguous, pipelines, large, binary, transactions, published, blocking,
          replies_off, session, scripts, tracking, monitored, generated_data, generated_locks]
