"""Quotes, escapes and separators of the .wire language."""
import re

ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|\(\d+ [^)]+\)|.)", re.S)
LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def unescape(text):
    """The bytes of a quoted text: \\r \\n \\t \\xHH, \\(5 ab) for `ab` five times, and any other character after a
    backslash as itself."""
    def one(match):
        code = match.group(1)
        if code.startswith(b"("):
            times, what = code[1:-1].split(b" ", 1)
            return ESCAPE.sub(one, what) * int(times)
        return bytes([int(code[1:], 16)]) if len(code) == 3 else LETTERS.get(code, code)
    return ESCAPE.sub(one, text.encode("utf-8"))


def split_outside(text, separator):
    """Splits at a separator that stands in no quotes and in no brackets or braces."""
    parts, depth, quoted, start, i = [], 0, False, 0, 0
    while i < len(text):
        letter = text[i]
        if quoted:
            i += letter == "\\"
            quoted = letter != '"'
        elif letter == '"':
            quoted = True
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
        elif depth == 0 and text.startswith(separator, i):
            parts.append(text[start:i])
            start = i = i + len(separator)
            continue
        i += 1
    return [part.strip() for part in parts + [text[start:]]]
