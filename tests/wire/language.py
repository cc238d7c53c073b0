"""The .wire language: reads a scenario into steps. README.md describes it. Connects to nothing and runs nothing.

A line that is not understood is an error at once, with file and line, before anything is played.
"""
import re
from dataclasses import dataclass, field

from answers import Pattern
from text import split_outside, unescape


class ScenarioError(Exception):
    """The scenario itself is wrong."""


@dataclass
class Step:
    """One line: what to do and its arguments. `what` names the player's method."""
    line: int
    text: str
    what: str
    arguments: dict = field(default_factory=dict)


@dataclass
class Scenario:
    path: str
    rules: str          # TOML, or None for the default rule
    proxies: int
    steps: list
    uses_metrics: bool


WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')
CONNECTION = r"(?P<name>\w+)"


def command_words(text):
    """A command's words as bytes, `%%` still in them."""
    return [unescape(m.group(1)) if m.group(1) is not None else m.group(2).encode() for m in WORD.finditer(text)]


def seconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(ms|s)", text).groups()
    return float(number) / (1000 if unit == "ms" else 1)


def read_pair(match):
    """`A: CMD -> R`: one command and its answer."""
    command, *answer = split_outside(match["rest"], " -> ")
    return {"name": match["name"], "commands": [command_words(command)],
            "answers": [Pattern(answer[0] if answer else "*")]}


def read_packet(match):
    """`A: {CMD; CMD} -> {R; R}`: several commands in one packet."""
    return {"name": match["name"], "commands": [command_words(c) for c in split_outside(match["commands"], ";")],
            "answers": [Pattern(a) for a in split_outside(match["answers"], ";")]}


# The first form that fits a line decides; the last two are the commonest and the least specific.
FORMS = [
    (r"wait (?P<time>\S+)", "wait", lambda m: {"duration": seconds(m["time"])}),
    (r"open %s(?P<options>(?: (?:via|resp|from)=\S+)*)" % CONNECTION, "open",
     lambda m: {"name": m["name"], "options": dict(o.split("=", 1) for o in m["options"].split())}),
    (r"close %s" % CONNECTION, "close", lambda m: {"name": m["name"]}),
    (r"closed %s" % CONNECTION, "closed", lambda m: {"name": m["name"]}),
    (r"shut %s" % CONNECTION, "shut", lambda m: {"name": m["name"]}),
    (r"(?P<verb>kill|stop|start|pause|resume) (?P<target>redis|proxy)(?: (?P<number>\d+))?", "process",
     lambda m: {"verb": m["verb"], "target": m["target"], "number": int(m["number"] or 1)}),
    (r"metric (?P<relation>\+|>=|<=)(?P<count>\d+) (?P<selector>\S.*)", "metric",
     lambda m: {"relation": m["relation"], "count": int(m["count"]), "selector": m["selector"]}),
    (r'raw %s: "(?P<data>.*)"' % CONNECTION, "raw", lambda m: {"name": m["name"], "data": unescape(m["data"])}),
    (r'bytes %s: "(?P<data>.*)"' % CONNECTION, "bytes", lambda m: {"name": m["name"], "data": unescape(m["data"])}),
    (r"%s~ (?P<command>.*)" % CONNECTION, "send",
     lambda m: {"name": m["name"], "command": command_words(m["command"])}),
    (r"%s< (?P<answer>.*)" % CONNECTION, "read", lambda m: {"name": m["name"], "answer": Pattern(m["answer"])}),
    (r"%s: \{(?P<commands>.*)\} -> \{(?P<answers>.*)\}" % CONNECTION, "ask", read_packet),
    (r"%s: (?P<rest>.*)" % CONNECTION, "ask", read_pair),
]
FORMS = [(re.compile(form), what, read) for form, what, read in FORMS]


def read_step(number, line):
    for form, what, read in FORMS:
        match = form.fullmatch(line)
        if match:
            return Step(number, line, what, read(match))
    raise ValueError("not understood: %s" % line)


def read_scenario(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    rules, proxies, steps, config = None, 1, [], None
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if config is not None:
            if raw == "end":
                rules, config = "".join(l + "\n" for l in config), None
            else:
                config.append(raw)
        elif raw == "config:":
            config = []
        elif re.fullmatch(r"proxies: \d+", line):
            proxies = int(line.split()[1])
        elif line and not line.startswith("#"):
            try:
                steps.append(read_step(number, line))
            except (ValueError, AttributeError) as error:
                raise ScenarioError("%s:%d: %s" % (path, number, error))
    if config is not None:
        raise ScenarioError("%s: `config:` without `end`" % path)
    if not steps:
        raise ScenarioError("%s: no steps" % path)
    return Scenario(path, rules, proxies, steps, any(step.what == "metric" for step in steps))
