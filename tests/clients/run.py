#!/usr/bin/env python3
"""Real client libraries, once directly against a server and once through lockward: same results, same exceptions.

    tests/clients/run.py --proxy PATH --server PATH [--only TEXT] [-v]

Each program beside this file runs a fixed list of steps and prints one JSON line a step. The lines of both runs must
be equal, and the steps that name an expected value must have it. Through lockward the keys are under an enforce rule.
The libraries are installed at pinned versions and
hashes into .cache/clients at the top of the tree, once. Without Node.js and npm it fails: it skips nothing.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from harness.installing import Broken, call, installed, python_libraries     # noqa: E402
from harness.processes import Proxy, Server     # noqa: E402

CACHE = os.path.join(HERE, "..", "..", ".cache", "clients")
# Each program and the owners of the rule that it runs under. Two of them give up bare locks on another connection than
# they took them on (a pool, a reconnect), which with owner = "connection" is a stranger's release by design.
PROGRAMS = {
    "redis_py_lock.py": ["address"],
    "python_redis_lock.py": ["address", "connection"],
    "ioredis_lock.js": ["address"],
    "redlock_lock.js": ["address", "connection"],
}
PROGRAM_LIMIT = 60      # seconds


# ---- starting ---------------------------------------------------------------------------

def fill_node(target, _folder):
    for file in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(os.path.join(HERE, file), target)
    call("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=target)


def commands(programs=tuple(PROGRAMS)):
    """How to start each program: its command and environment."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise Broken("ioredis and redlock need Node.js 18 or newer with npm: install nodejs and npm")
    python = python_libraries(CACHE, os.path.join(HERE, "requirements.txt"))
    node = installed(CACHE, "node", [os.path.join(HERE, name) for name in ("package.json", "package-lock.json")], fill_node)
    python_environment = dict(os.environ, PYTHONPATH=os.pathsep.join([HERE, python]), PYTHONDONTWRITEBYTECODE="1")
    node_environment = dict(os.environ, NODE_PATH=os.path.join(node, "node_modules"))
    return {program: ([sys.executable, "-u"], python_environment) if program.endswith(".py")
            else (["node"], node_environment) for program in programs}


# ---- comparing --------------------------------------------------------------------------

def steps_of(program, command, environment, port):
    """The program's steps against this port, as a list of dictionaries."""
    try:
        done = subprocess.run(command + [os.path.join(HERE, program), str(port)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=environment,
                              timeout=PROGRAM_LIMIT, cwd=HERE)
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode("utf-8", "replace").strip().splitlines()
        raise Broken("%s did not end within %d s; its last step: %s" % (
            program, PROGRAM_LIMIT, said[-1] if said else "none"))
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0 or not steps:
        raise Broken("%s ended with code %d after %d steps:\n%s" % (
            program, done.returncode, len(steps), done.stderr[-2000:]))
    return steps


def outcome(step):
    return "%s %s" % (step["error"], step["message"]) if "error" in step else json.dumps(step.get("result"))


def unexpected(where, steps):
    """The steps that did not come to what they say, a line each."""
    for step in steps:
        if "expected" in step and step["expected"] != step.get("error", step.get("result")):
            yield "%s: %s: expected %s, got %s" % (where, step["step"], json.dumps(step["expected"]), outcome(step))


def faults(direct, proxied):
    """What is wrong, a line each: a value that is not the expected one, or two runs that differ."""
    yield from unexpected("directly", direct)
    yield from unexpected("through lockward", proxied)
    for one, two in zip(direct, proxied):
        if one != two:
            yield "%s: directly %s, through lockward %s" % (one["step"], outcome(one), outcome(two))
    if len(direct) != len(proxied):
        yield "%d steps directly, %d through lockward" % (len(direct), len(proxied))


def compare(program, owner, options, how):
    """Runs the program twice, each time with a fresh server, and returns the number of steps and the faults."""
    rules = '[[locks]]\nname = "clients"\npattern = ["lock:*", "lock-signal:*"]\nowner = "%s"\n' % owner
    with tempfile.TemporaryDirectory(prefix="lockward-clients-") as folder:
        with Server(options.server, folder) as server:
            direct = steps_of(program, *how, server.port)
        with Server(options.server, folder) as server, Proxy(options.proxy, server, rules, folder) as proxy:
            proxied = steps_of(program, *how, proxy.port)
            wrong = list(faults(direct, proxied))
            if not proxy.is_running():
                wrong.append("the proxy ended; its last words: %s" % proxy.last_words())
    if options.v:
        for step in proxied:
            print("      %-45s %s" % (step["step"], outcome(step)))
    return len(direct), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--only", default="", help="only programs whose name holds this text")
    parser.add_argument("-v", action="store_true", help="print each step")
    options = parser.parse_args()
    if not options.server:
        sys.exit("clients: no redis-server or valkey-server on PATH: use --server $(scripts/get-server)")
    passed = failed = 0
    try:
        how = commands()
    except (Broken, OSError) as error:
        print("FAIL  clients: %s" % error)
        print("0 passed, %d failed" % len(PROGRAMS))
        return 1
    for program, owners in PROGRAMS.items():
        for owner in owners:
            if options.only not in program:
                continue
            try:
                count, wrong = compare(program, owner, options, how[program])
            except (Broken, RuntimeError, OSError, ValueError) as error:
                count, wrong = 0, [str(error)]
            passed, failed = passed + (not wrong), failed + bool(wrong)
            print("%s  %s, owner = %s: %s" % ("FAIL" if wrong else "ok  ", program, owner,
                                             "; ".join(wrong[:6]) or "%d steps" % count), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
