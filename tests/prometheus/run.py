#!/usr/bin/env python3
"""What Prometheus and Grafana are given: the metrics, the alert rules and the dashboard, held against each other.

    tests/prometheus/run.py --proxy PATH --server PATH [--promtool PATH] [--only TEXT]

A real lockward with traffic that moves every metric; promtool says whether its /metrics, the rules and their unit tests
are clean; and everything that the dashboard and the alerts read must be there, by name, label and value. The dashboard
itself is looked at as Grafana's importer does: no Grafana is started.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import scene                                    # noqa: E402
from harness.processes import Proxy, Server     # noqa: E402
from promql import TARGET_LABELS, Exposition, grouped, selectors    # noqa: E402

ALERTS = os.path.join(TOP, "deploy", "prometheus", "alerts.yml")
ALERTS_TEST = os.path.join(TOP, "deploy", "prometheus", "alerts_test.yml")
DASHBOARD = os.path.join(TOP, "deploy", "grafana", "lockward.json")

# Metrics that the dashboard does not show, and why.
NOT_SHOWN = {
    "lockward_connections_refused_total": "port scans and the like; the log tells of them",
    "lockward_config_reload_total": "whether the last one succeeded is shown",
    "lockward_config_reload_success_timestamp_seconds": "whether it succeeded is shown",
    "lockward_paused": "for as long as an operator has asked for; readiness says it, and LockwardPaused",
    "lockward_upstream_condition": "0 as long as all is well; LockwardUpstreamReadOnly, Down and AcquireErrors tell",
    "lockward_upstream_changes_total": "the log tells each one",
    "lockward_upstream_switches_total": "the log tells each one",
    "lockward_sentinels": "0 silent as long as all is well; LockwardSentinelSilent tells",
    "process_start_time_seconds": "lockward_start_time_seconds is shown",
    "process_threads": "fixed by the number of cores",
    "process_virtual_memory_bytes": "says little; resident memory is shown",
}
PANEL_KEYS = {"id", "type", "title", "description", "datasource", "fieldConfig", "options", "targets", "gridPos"}


class Wrong(Exception):
    """Something that does not fit."""


class Given:
    """What the checks look at."""

    def __init__(self, options, proxy, metrics):
        self.promtool, self.program, self.proxy = options.promtool, options.proxy, proxy
        self.text, self.metrics = metrics, Exposition(metrics)
        with open(ALERTS) as file:
            self.alerts = file.read()
        with open(ALERTS_TEST) as file:
            self.tests = file.read()
        with open(DASHBOARD) as file:
            self.dashboard = json.load(file)

    def panels(self):
        return [panel for panel in self.dashboard["panels"] if panel["type"] != "row"]

    def queries(self):
        """(panel, target) for each query of the dashboard."""
        return [(panel, target) for panel in self.panels() for target in panel["targets"]]

    def rules(self):
        """(name, expression) of each rule in alerts.yml, recording rules too."""
        found = re.findall(r"- (alert|record): (\S+)\n(?:\s+#.*\n)*\s+expr: (?:\|\n((?:(?: {10}.*)?\n)+)|(.+)\n)", self.alerts)
        names = re.findall(r"- (?:alert|record): (\S+)", self.alerts)
        if len(found) != len(names):
            raise Wrong("the expressions of alerts.yml could not be read: %d of %d" % (len(found), len(names)))
        return [(kind, name, (block or line).strip()) for kind, name, block, line in found]


def promtool(given, *arguments, text=None):
    """Runs promtool; it must like what it is shown. Returns its output."""
    done = subprocess.run([given.promtool, *arguments], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60)
    if done.returncode != 0:
        raise Wrong("promtool %s: %s" % (" ".join(arguments[:2]), done.stdout.strip()))
    return done.stdout


# ---- promtool ---------------------------------------------------------------------------

def metrics_are_clean(given):
    """promtool check metrics has nothing to say of /metrics."""
    said = promtool(given, "check", "metrics", text=given.text).strip()
    if said:
        raise Wrong(said)
    return "%d metrics, %d series" % (len(given.metrics.kinds), len(given.metrics.values))


def alert_rules_are_clean(given):
    """promtool check rules."""
    return re.search(r"\d+ rules found", promtool(given, "check", "rules", "--lint-fatal", ALERTS)).group(0)


def alert_rules_do_what_they_say(given):
    """promtool test rules."""
    promtool(given, "test", "rules", ALERTS_TEST)
    return "%d moments" % given.tests.count("eval_time:")


def dashboard_queries_are_promql(given):
    """Each query of the dashboard, with its variables filled in, made a rule and shown to promtool."""
    lines = ["groups:", "- name: dashboard", "  rules:"]
    for number, (_, target) in enumerate(given.queries()):
        expression = target["expr"].replace("$__rate_interval", "5m").replace("$__range", "3h")
        expression = re.sub(r"\$(job|instance|rule)\b", ".*", expression)
        lines += ["  - record: dashboard:query:%d" % number, "    expr: %s" % json.dumps(expression)]
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        promtool(given, "check", "rules", file.name)
    return "%d queries" % len(given.queries())


# ---- what is read is there, what is there is read ----------------------------------------

def every_metric_moves(given):
    """The traffic of this test has moved every kind of series: what follows is no comparison of zeros."""
    still = ["%s %r" % (name, labels) for name, labels in scene.MOVED if not given.metrics.total(name, **labels)]
    if still:
        raise Wrong("not moved: " + ", ".join(still))
    return "%d figures" % len(scene.MOVED)


def check_expression(given, where, expression, recorded=()):
    """The names that it reads. Every one must exist, with the labels that are asked for and grouped by."""
    read = selectors(expression)
    if not read:
        raise Wrong("%s reads nothing: %s" % (where, expression))
    labels, names = set(TARGET_LABELS), set()
    for selector in read:
        if selector.name in recorded:
            labels.add("rule")
            continue
        faults = given.metrics.faults(selector)
        if faults:
            raise Wrong("%s: %s" % (where, "; ".join(faults)))
        labels |= given.metrics.labels(selector.name)
        names.add(given.metrics.family(selector.name))
    strange = grouped(expression) - labels
    if strange:
        raise Wrong("%s groups by labels that its series do not have: %s" % (where, ", ".join(sorted(strange))))
    return names


def dashboard_reads_what_exists(given):
    """By name, label and value; and what its legends name is what it groups by."""
    names = set()
    for panel, target in given.queries():
        names |= check_expression(given, panel["title"], target["expr"])
        legend = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        if not legend <= grouped(target["expr"]):
            raise Wrong("%s: the legend names labels that are not grouped by: %s" % (panel["title"], legend))
    for variable in given.dashboard["templating"]["list"][1:]:
        found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"])
        check_expression(given, "$" + variable["name"], "%s by (%s)" % found.groups())
    return "%d metrics" % len(names)


def alerts_read_what_exists(given):
    """By name, label and value, recording rules among them."""
    rules = given.rules()
    recorded = {name for kind, name, _ in rules if kind == "record"}
    for _, name, expression in rules:
        check_expression(given, name, expression, recorded)
    return "%d rules" % len(rules)


def what_exists_is_shown(given):
    """Every metric stands on the dashboard, but for those that are left out on purpose."""
    shown = set()
    for panel, target in given.queries():
        shown |= check_expression(given, panel["title"], target["expr"])
    absent = set(given.metrics.kinds) - shown - set(NOT_SHOWN)
    if absent:
        raise Wrong("on no panel and not in NOT_SHOWN: " + ", ".join(sorted(absent)))
    stale = [name for name in NOT_SHOWN if name in shown or name not in given.metrics.kinds]
    if stale:
        raise Wrong("in NOT_SHOWN for nothing: " + ", ".join(stale))
    return "%d shown, %d not" % (len(shown), len(NOT_SHOWN))


# ---- alerts for people -------------------------------------------------------------------

def every_alert_is_tested_both_ways(given):
    """For each alert: a moment at which it fires, with its text, and one at which it does not."""
    for kind, name, _ in given.rules():
        if kind == "record":
            if name not in given.tests:
                raise Wrong("%s is not tested" % name)
            continue
        moments = re.findall(r"alertname: %s\n\s+exp_alerts:(.*)\n" % name, given.tests)
        if not any("[]" in moment for moment in moments) or not any(moment == "" for moment in moments):
            raise Wrong("%s must be tested firing and not firing" % name)
    return "%d alerts" % given.alerts.count("- alert:")


def every_alert_says_what_to_do(given):
    """A severity, a summary that names the proxy, a description; and the commands and paths in there exist."""
    blocks = re.split(r"- alert: ", given.alerts)[1:]
    for block in blocks:
        name = block.split("\n")[0]
        if not re.search(r"severity: (warning|critical)\n", block):
            raise Wrong("%s has no severity" % name)
        if "summary: " not in block or "description: >-" not in block or "$labels.instance" not in block:
            raise Wrong("%s lacks a summary, a description or the instance" % name)
    text = re.sub(r"\s+", " ", given.alerts + json.dumps(given.dashboard))
    commands = sorted(set(re.findall(r"`lockward ([a-z]+)((?: --[a-z-]+)*)", text)))
    for command, flags in commands:
        help_text = subprocess.run([given.program, command, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, timeout=20)
        if help_text.returncode != 0:
            raise Wrong("there is no command `lockward %s`" % command)
        unknown = [flag for flag in flags.split() if flag not in help_text.stdout]
        if unknown:
            raise Wrong("`lockward %s` has no %s" % (command, ", ".join(unknown)))
    for path in sorted(set(re.findall(r"/api/v1/[a-z]+(?:\?[\w=&]*\w)?", text))):
        given.proxy.get(path)
    return "%d alerts, %d commands" % (len(blocks), len(commands))


# ---- the dashboard as Grafana takes it -----------------------------------------------------

def dashboard_can_be_imported(given):
    """Identities, schema, data source by variable, nothing that belongs to one installation."""
    dashboard = given.dashboard
    if dashboard["id"] is not None or dashboard["uid"] != "lockward" or dashboard["schemaVersion"] < 38:
        raise Wrong("id, uid or schemaVersion")
    variables = [variable["name"] for variable in dashboard["templating"]["list"]]
    if variables != ["datasource", "job", "instance", "rule"]:
        raise Wrong("variables: %r" % variables)
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(set(ids)) != len(ids):
        raise Wrong("two panels have one id")
    used = set(re.findall(r"\$\{?([a-z_]+)", json.dumps(dashboard)))
    if not used <= set(variables) | {"__rate_interval", "__range", "__all"}:
        raise Wrong("variables that are not defined: %r" % used)
    sources = [panel["datasource"] for panel in given.panels()] + [t["datasource"] for _, t in given.queries()]
    sources += [variable["datasource"] for variable in dashboard["templating"]["list"][1:]]
    if any(source != {"type": "prometheus", "uid": "${datasource}"} for source in sources):
        raise Wrong("a data source that is not ${datasource}")
    return "schema %d, %d panels" % (dashboard["schemaVersion"], len(ids))


def every_panel_is_complete(given):
    """Title, description, unit, queries; and the panels lie side by side, none over another."""
    taken = {}
    for panel in given.dashboard["panels"]:
        place = panel["gridPos"]
        if place["x"] + place["w"] > 24:
            raise Wrong("%s stands beyond the right edge" % panel["title"])
        for cell in ((x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])):
            if cell in taken:
                raise Wrong("%s stands over %s" % (panel["title"], taken[cell]))
            taken[cell] = panel["title"]
    for panel in given.panels():
        lacking = PANEL_KEYS - set(panel)
        if lacking or not panel["title"] or not panel["description"].endswith((".", "`")):
            raise Wrong("%s lacks %s or a sentence of description" % (panel["title"], sorted(lacking)))
        if not panel["fieldConfig"]["defaults"].get("unit"):
            raise Wrong("%s has no unit" % panel["title"])
        letters = [target["refId"] for target in panel["targets"]]
        if not letters or len(set(letters)) != len(letters):
            raise Wrong("%s: queries %r" % (panel["title"], letters))
    return "%d panels" % len(given.panels())


CHECKS = [metrics_are_clean, alert_rules_are_clean, alert_rules_do_what_they_say, dashboard_queries_are_promql,
          every_metric_moves, dashboard_reads_what_exists, alerts_read_what_exists, what_exists_is_shown,
          every_alert_is_tested_both_ways, every_alert_says_what_to_do, dashboard_can_be_imported,
          every_panel_is_complete]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--promtool", default=shutil.which("promtool"))
    parser.add_argument("--only", default="", help="only checks whose name holds this text")
    options = parser.parse_args()
    if not options.server or not options.promtool:
        sys.exit("prometheus: use --server $(scripts/get-server any) and --promtool $(scripts/get-tool promtool)")
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="lockward-prometheus-") as folder, \
            Server(options.server, folder) as server, Proxy(options.proxy, server, scene.RULES, folder) as proxy:
        clients = scene.play(server, proxy)
        given = Given(options, proxy, proxy.metrics())
        for check in CHECKS:
            name = check.__name__.replace("_", " ")
            if options.only not in name:
                continue
            try:
                print("ok    %s: %s" % (name, check(given)), flush=True)
                passed += 1
            except (Wrong, OSError, KeyError) as error:
                print("FAIL  %s: %s" % (name, error or type(error).__name__), flush=True)
                failed += 1
        for client in clients:
            client.close()
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
