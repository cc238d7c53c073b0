"""The steps of a Python client test: each prints one JSON line with what came back, or which exception.

A step may name the value it must have; run.py checks that too, so that two equal failures do not pass as agreement.
"""
import json
import os
import sys


class Steps:
    """Runs and reports steps. Nothing random goes into a report: tokens are compared here, not printed."""

    def report(self, name, outcome, expected):
        line = {"step": name, **outcome}
        if expected is not None:
            line["expected"] = expected
        print(json.dumps(line, sort_keys=True), flush=True)

    def __call__(self, name, action, expected=None):
        """Calls `action`; `expected` is its result, or the name of an exception class in angle brackets."""
        try:
            outcome = {"result": plain(action())}
        except Exception as error:
            outcome = {"error": "<%s>" % type(error).__name__, "message": str(error)}
        self.report(name, outcome, expected)

    async def awaited(self, name, action, expected=None):
        """The same for a coroutine function."""
        try:
            outcome = {"result": plain(await action())}
        except Exception as error:
            outcome = {"error": "<%s>" % type(error).__name__, "message": str(error)}
        self.report(name, outcome, expected)


def plain(value):
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value if isinstance(value, (str, int, float, bool, list, dict, type(None))) else repr(type(value).__name__)


def port():
    return int(sys.argv[1])


def tls():
    """What redis-py has to be told where tests/checks/tls.py names the files of certificates; else nothing."""
    files = os.environ.get("LOCKWARD_TEST_TLS", "").split()
    return dict(zip(("ssl_ca_certs", "ssl_certfile", "ssl_keyfile"), files), ssl=True) if files else {}
