"""The secrets that tests use. All begin with one word that stands nowhere else, so that a search through everything that
was printed, logged, shown or served finds each of them.

Whoever needs a token, a password or a value that lockward must never show takes it from here; the tests in Rust and the
wire scenarios spell theirs with the same word.
"""
import re

MARK = "marked-secret-"

ADMIN_TOKEN = MARK + "admin-token"
WRONG_TOKEN = MARK + "wrong-token"
UPSTREAM_PASSWORD = MARK + "upstream-password"
USER_PASSWORD = MARK + "user-password"
WRONG_PASSWORD = MARK + "wrong-password"
DEFAULT_PASSWORD = MARK + "default-password"
LOCK_VALUE = MARK + "lock-value"
STORED_VALUE = MARK + "stored-value"
SCRIPT_ARGUMENT = MARK + "script-argument"
ODD_ARGUMENT = MARK + "odd-argument"

# An owner token is a random UUID. lockward shows nothing else of that shape.
UUID = re.compile(r"(?i)\b[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}\b")


def found(text, also=()):
    """The lines in which a secret stands, or anything of `also`, with what is secret in them left out."""
    words = [MARK] + [word for word in also if word]
    lines = (line for line in text.splitlines() if any(word in line for word in words))
    return [hidden(line, also)[:300] for line in lines]


def hidden(line, also=()):
    line = re.sub(re.escape(MARK) + r"[a-z-]*", lambda m: "<" + m.group(0)[len(MARK):].upper() + ">", line)
    for word in also:
        line = line.replace(word, "<OWNER TOKEN>")
    return line
