"""What a scenario expects as an answer, and whether a reply fits it."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness.resp import Error, Simple       # noqa: E402
from text import split_outside, unescape     # noqa: E402

COMPARE = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}


def is_integer(reply):
    return type(reply) is int       # bool is an int to isinstance, and a RESP3 boolean is none


class Pattern:
    """An expected answer. `%%` in it is filled in when it is compared."""

    def __init__(self, text):
        self.text = text.strip()
        build(self.text)            # a wrong pattern shows when the scenario is read

    def fits(self, reply, unique):
        return build(self.text.replace("%%", unique))(reply)

    def __str__(self):
        return self.text


def build(text):
    """A function that says whether a reply fits the pattern."""
    choices = split_outside(text, " | ")
    if len(choices) > 1:
        parts = [build(choice) for choice in choices]
        return lambda reply: any(part(reply) for part in parts)
    if text == "*":
        return lambda reply: True
    if text in ("nil", "true", "false"):
        constant = {"nil": None, "true": True, "false": False}[text]
        return lambda reply: reply is constant
    if text.startswith("[") and text.endswith("]"):
        items = [build(item) for item in split_outside(text[1:-1], ",")] if text[1:-1].strip() else []
        return lambda reply: (isinstance(reply, list) and len(reply) == len(items)
                              and all(item(part) for item, part in zip(items, reply)))
    if text.startswith("!/") and text.endswith("/"):
        regex = re.compile(text[2:-1])
        return lambda reply: isinstance(reply, Error) and bool(regex.search(reply))
    if text.startswith("!"):
        return lambda reply: isinstance(reply, Error) and reply.startswith(text[1:])
    if text.startswith('"') and text.endswith('"'):
        data = unescape(text[1:-1])
        return lambda reply: isinstance(reply, bytes) and reply == data
    if text.startswith("/") and text.endswith("/"):
        return text_pattern(re.compile(text[1:-1]))
    return integer_pattern(text) or (lambda reply: isinstance(reply, Simple) and reply == text)


def text_pattern(regex):
    def fits(reply):
        if isinstance(reply, bytes):
            reply = reply.decode("utf-8", "replace")
        return isinstance(reply, str) and not isinstance(reply, Error) and bool(regex.search(reply))
    return fits


def integer_pattern(text):
    span = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", text)
    if span:
        low, high = int(span[1]), int(span[2])
        return lambda reply: is_integer(reply) and low <= reply <= high
    bound = re.fullmatch(r"([<>]=?)(-?\d+)", text)
    if bound:
        compare, number = COMPARE[bound[1]], int(bound[2])
        return lambda reply: is_integer(reply) and compare(reply, number)
    if re.fullmatch(r"-?\d+", text):
        number = int(text)
        return lambda reply: is_integer(reply) and reply == number
    return None
