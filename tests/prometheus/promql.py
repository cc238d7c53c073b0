"""Which series a PromQL expression reads: names, labels and the values asked for. Reads by pattern, not by grammar: that
the expressions are good PromQL is what promtool says.
"""
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
WORDS = {"and", "or", "unless", "bool", "offset", "inf", "nan"}
LISTS = {"by", "without", "on", "ignoring", "group_left", "group_right"}
# What the scraper adds to every series, and what a histogram's buckets have beside the labels of the metric.
TARGET_LABELS = {"job", "instance"}


class Selector:
    """One metric that is read, and the labels by which its series are chosen: (name, operator, value)."""

    def __init__(self, name, matchers):
        self.name, self.matchers = name, matchers

    def __repr__(self):
        return "%s{%s}" % (self.name, ",".join("%s%s%r" % m for m in self.matchers))


def selectors(expression):
    """Every metric that the expression reads."""
    text = re.sub(r"\[[^\]]*\]", "", expression)
    text = re.sub(r"\b(?:%s)\s*\([^)]*\)" % "|".join(LISTS), "", text)
    found = []
    for match in re.finditer(r"(?<![\w:.$])(%s)\s*(\{[^}]*\}|\(|)" % NAME, text):
        name, behind = match.groups()
        if behind == "(" or name.lower() in WORDS | LISTS or inside_braces(text, match.start()):
            continue
        found.append(Selector(name, re.findall(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"', behind)))
    return found


def inside_braces(text, position):
    return text.rfind("{", 0, position) > text.rfind("}", 0, position)


def grouped(expression):
    """The labels after by, without, on and ignoring."""
    lists = re.findall(r"\b(?:%s)\s*\(([^)]*)\)" % "|".join(LISTS), expression)
    return {label.strip() for labels in lists for label in labels.split(",") if label.strip()}


class Exposition:
    """The text of /metrics: for each metric its kind and its series."""

    def __init__(self, text):
        self.kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
        self.series, self.values = {}, {}
        for line in text.splitlines():
            match = re.match(r"(%s)(?:\{(.*)\})? (\S+)$" % NAME, line)
            if match and not line.startswith("#"):
                name, labels, value = match.groups()
                labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))
                self.series.setdefault(name, []).append(labels)
                self.values[(name, tuple(sorted(labels.items())))] = float(value)

    def family(self, name):
        """The metric that a series belongs to: a histogram has three kinds of series."""
        for suffix in ("_bucket", "_sum", "_count"):
            if name.endswith(suffix) and self.kinds.get(name[:-len(suffix)]) == "histogram":
                return name[:-len(suffix)]
        return name if self.kinds.get(name) not in (None, "histogram") else None

    def total(self, name, **wanted):
        """The sum of the series with at least these labels."""
        return sum(value for (series, labels), value in self.values.items()
                   if series == name and all(item in labels for item in wanted.items()))

    def faults(self, selector):
        """Why a selector would find nothing here."""
        if self.family(selector.name) is None:
            return ["there is no series %s" % selector.name]
        series, faults = self.series[selector.name], []
        for label, operator, value in selector.matchers:
            have = {labels[label] for labels in series if label in labels}
            if label in TARGET_LABELS:
                continue
            if not have:
                faults.append("%s has no label %s" % (selector.name, label))
            elif "$" not in value and operator in ("=", "=~"):
                wanted = value.split("|") if operator == "=~" else [value]
                faults += ["%s has no series with %s=%s" % (selector.name, label, word)
                           for word in wanted if word not in have]
        return faults

    def labels(self, name):
        return {label for labels in self.series.get(name, []) for label in labels}
