#!/usr/bin/env python3
"""Writes the seeds that people thought of; those that fuzzing found stand beside them. Run it in any folder."""
import os

HERE = os.path.dirname(os.path.abspath(__file__))
WHOLE, BYTEWISE = b"\x08", b"\x09\x01"      # flags: logged in; no cuts, or one byte after the other
LONG, LONG_CUT, LONG_OUT = b"\x18", b"\x19\xff", b"\x11\xfb"    # the last eight bytes of the last line 8,191 times; cut; logged out

REQUESTS = [
    b"*1\r\n$4\r\nPING\r\n", b"*3\r\n$3\r\nSET\r\n$6\r\nlock:a\r\n$0\r\n\r\n*0\r\nPING\r\n", b"*-1\r\n*1\r\n$4\r\nPING\r\n",
    b"*1\rX$4\rYPINGZZ*1\r\n$4\r\nPING\r\n", b"*1\r\n$04\r\nPING\r\n", b"*+1\r\n", b"*1\r\n$-1\r\n", b"*1\r\n:1\r\n",
    b"*2147483647\r\n$536870912\r\nabc", b"*2147483648\r\n", b"*1\r\n$536870913\r\n", b"*1\0\r\n", b"PING\0\r\n",
    b"SET lock:a \"a b\\x41\\n\" 'c\\'d' NX\r\n \r\n", b"DEL \"a\"b\r\n", b"DEL \"a\"\x0bb\r\n", b"GET \xff\r\n", b"POST / HTTP/1.1\r\n",
    b"*1\r\n$7\r\nHost:\0x\r\n", b"*11\r\n$4\r\nECHO\r\n", b"*10\r\n$16385\r\n", b"*1\r\n$1\n\r\na\r\n", b"*100000000\r\n",
]
# Lines without an end and with one, of 65,535 to 65,538 bytes when they are made long.
LINES = [b"*", b"*1\r\n$", b"*1\r\nX", b"PING ", b"PING\0", b"ECHO \"", b"*1\r\n$4\r\nPING\r\nECHO "]
ENDS = [b"", b"\n", b"\r\n"]
LONG_LINES = [(start + b"1" * (16 - len(start.split(b"\n")[-1]) + size - 65536) + end)
              for start in LINES for end in ENDS for size in (65535, 65536, 65537, 65538)]
INLINE = [b"SET lock:a 'a b' \"c\\x00\\n\\r\\t\\a\\b\\q\\\"\"", b"\"\" a", b"a\"b c\"", b"'a\\'b' x", b"\"a", b"\"a\"\x0bb", b"\x0b\x0c\t ",
          b"ECHO a\x0bb \x85\xa0", b"\"post\\x00\"", b"a\r\r", b"\"\\xff\\x4g\\x\"", b"'a'\r", b"\xff", b"a\\x41"]
REPLIES = [
    b"+OK\r\n-ERR x\r\n:1\r\n", b"$3\r\nabc\r\n$-1\r\n$0\r\n\r\n", b"*2\r\n*1\r\n+a\r\n*0\r\n*-1\r\n", b"%1\r\n+k\r\n~2\r\n:1\r\n:2\r\n",
    b"|1\r\n+k\r\n+v\r\n*1\r\n#t\r\n", b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nab\r\n", b"=7\r\ntxt:abc\r\n!5\r\nERR x\r\n", b"_\r\n,1.5\r\n(123\r\n",
    b"*9223372036854775807\r\n%9223372036854775807\r\n*9223372036854775807\r\n", b"$9223372036854775807\r\nab", b"+a\rb\n\r\n", b"$-2\r\n",
    b"*1\n\r\n", b"*" + b"1" * 40, b"*1\r\n" * 12 + b":1\r\n", b"*+1\r\n", b"x", b"*01\r\n+a\r\n", b"%-1\r\n",
]
GLOBS = [(b"lock:*", b"lock:*", b"lock:a"), (b"[^a-c]?*", b"", b"dxyz"), (b"[a-", b"a", b"-"), (b"[a-]x", b"", b"]"), (b"\\*a\\", b"*", b"*a\\"),
         (b"*a*b*c*", b"*", b"aabbcc"), (b"", b"", b""), (b"*", b"a*", b""), (b"[]a]", b"", b"a"), (b"[\\]a]", b"", b"]"), (b"[z-a]", b"", b"\xff"),
         (b"[\x80-a]", b"", b"\xff"), (b"*" * 30 + b"a", b"", b"aaaaaaaaaab"), (b"[^", b"", b"x"), (b"a*", b"a*b", b"ab"), (b"?*?", b"", b"a"), (b"**", b"*", b"")]
RULES = [b"\0lock:*\nlock:a", b"\0lock:a*,b*\n\1lock:*\n\2*\nlock:ab", b"\2*\n\0lock:*\nlock:a", b"\0*\nlockward:{a}", b"\0[ab]*\n\1?\n\0a\na",
         b"\1\n\0*\n", b"\0\\a\n\1a\na", b"\0lock:*\n\0lock:*\n\2lock:x\nlock:x", b"\0[^a]\n\1b\nb"]
PROXY = [b"PROXY TCP4 192.0.2.1 192.0.2.9 40000 6379\r\n*1\r\n", b"PROXY TCP6 ::1 2001:db8::1 1 0\r\n", b"PROXY UNKNOWN\r\n", b"PROXY UNKNOWN x y\r\n",
         b"PROXY TCP4 1.2.3.4 1.2.3.4 01 1\r\n", b"PROXY TCP4 1.2.3.4 1.2.3.4 1 1\n", b"PROXY TCP4 ::1 ::1 1 1\r\n", b"PROXY " + b"U" * 110]
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
PROXY += [SIGNATURE + rest for rest in (
    b"\x20\x00\x00\x00", b"\x21\x11\x00\x0c" + bytes(range(12)), b"\x21\x21\x00\x24" + bytes(range(36)), b"\x21\x31\x00\xd8" + b"/" * 216,
    b"\x21\x11\x00\x0b" + bytes(11), b"\x21\x00\x00\x03abc", b"\x22\x11\x00\x0c" + bytes(12), b"\x21\x11\xff\xff", b"\x21\x11\x00\x10" + bytes(16) + b"*")]
CONFIG = [
    b"", b"[listen]\naddress = \"0.0.0.0:1\"\n", b"[[locks]]\nname = \"a\"\npattern = [\"lock:*\", \"x\"]\nmode = \"observe\"\nowner = [\"user\", \"address\"]\n",
    b"[upstream]\nurl = \"rediss://u:p@h:1/2\"\nmode = \"shared\"\n", b"[[locks]]\npatern = 1\n", b"[listen\n", b"[log]\nlevel = \"x\"\n[log]\n",
    b"[[locks]]\npattern = \"a\"\ndefault_ttl = \"30s\"\nmax_ttl = \"1h30m\"\nrenew = true\nrelease_on_disconnect = true\ncontention_shield = \"5ms\"\n",
    b"[[listeners]]\nname = \"b\"\nunix = \"/run/x\"\nmode = \"0660\"\nlocks = [{ pattern = \"*\" }]\n", b"[records]\nprefix = \"{\"\n",
    b"\0LISTEN__ADDRESS=h:1\0LOCKS__0__PATTERN=['a', 'b']\0LOCKS__1__OWNER=any", b"\0LOCKS__7__PATTERN=a\0NOSUCH__X=1\0LISTEN__TLS__CERT=/a",
    b"[listen]\ntls = { cert = \"/c\", key = \"/k\", client_ca = \"/a\" }\nproxy_protocol = [\"10.0.0.0/8\"]\nmax_buffered = \"1GB\"\n",
    b"[upstream]\nurl = \"redis+sentinel://a:1,b:2/m\"\nsentinel = { password = \"x\" }\n", b"[admin]\ntoken = \"t\"\nhosts = [\"a.b\"]\n",
]


def write(target, seeds):
    os.makedirs(os.path.join(HERE, target), exist_ok=True)
    for index, seed in enumerate(seeds):
        with open(os.path.join(HERE, target, "thought-of-%02d" % index), "wb") as file:
            file.write(seed)


def main():
    write("request", [WHOLE + seed for seed in REQUESTS] + [BYTEWISE + seed for seed in REQUESTS] + [b"\0" + REQUESTS[-4], b"\0" + REQUESTS[-3]] +
          [(LONG, LONG_CUT, LONG_OUT)[index % 3] + line for index, line in enumerate(LONG_LINES)])
    write("inline", [BYTEWISE + seed for seed in INLINE])
    write("reply", [WHOLE + seed for seed in REPLIES] + [BYTEWISE + seed for seed in REPLIES])
    write("glob", [bytes([len(p), len(o)]) + p + o + key for p, o, key in GLOBS] +
          [bytes([len(p) | 0x80, len(o) | 0x80]) + p + o + key for p, o, key in GLOBS[5:13]])
    write("rules", RULES)
    write("announced", PROXY)
    write("config", CONFIG)


if __name__ == "__main__":
    main()
