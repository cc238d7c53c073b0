#!/usr/bin/env python3
"""Builds the fuzz targets and runs each of them for a time, from the kept seeds and the corpora of earlier runs.

    fuzz/run.py [--seconds N] [--runs N] [--jobs N] [--compares] [TARGET...]

A crash, a hang (5 s for one input), growth beyond 512 MB or one allocation beyond what the target allows is a failure: its
input is kept in .cache/fuzz/failures and named. Corpora are kept in .cache/fuzz/corpus. `--runs` ends a target after so
many executions, if that is sooner. `--compares` has the compiler report comparisons too, which finds more for each
execution, and runs at half the speed. The last line is 'N passed, N failed'.

It needs cargo-fuzz and a nightly compiler. It minimises nothing by itself: docs/fuzzing.md says how.
"""
import argparse
import glob
import os
import re
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(HERE, "..", ".cache", "fuzz")
# The longest input of each target, in bytes: what is found in longer ones is found in these too, and sooner. Flags in the input
# make longer ones of it (`request`, `glob`).
TARGETS = {"request": 128, "inline": 96, "reply": 128, "glob": 64, "rules": 96, "announced": 300, "config": 256}
FLAGS = ["-s", "none", "--strip-dead-code", "--features", "libfuzzer"]     # no unsafe code: nothing for a sanitizer to find


def build(compares):
    """The folder of the built targets. Their names do not say how they were built, so each way has its own."""
    folder = os.path.join(HERE, "target", "compares" if compares else "plain")
    flags = FLAGS + ["--target-dir", folder] + ([] if compares else ["--no-trace-compares"])
    subprocess.run(["cargo", "+nightly", "fuzz", "build"] + flags, cwd=HERE, check=True, stdin=subprocess.DEVNULL)
    built = glob.glob(os.path.join(folder, "*", "release", "request"))
    if not built:
        sys.exit("fuzz: nothing was built in %s" % folder)
    return os.path.dirname(built[0])


def run(target, programs, options):
    """Runs one target; what it executed, and whether all of it held."""
    corpus, failures = (os.path.join(CACHE, kind, target) for kind in ("corpus", "failures"))
    for folder in (corpus, failures):
        os.makedirs(folder, exist_ok=True)
    known = set(os.listdir(failures))
    command = [os.path.join(programs, target), corpus, os.path.join(HERE, "seeds", target),
               "-artifact_prefix=%s/" % failures, "-max_total_time=%d" % options.seconds, "-runs=%d" % options.runs,
               "-max_len=%d" % TARGETS[target], "-timeout=5", "-rss_limit_mb=512", "-print_final_stats=1"]
    words = os.path.join(HERE, "dictionaries", target)
    if os.path.exists(words):
        command.append("-dict=" + words)
    begun = time.monotonic()
    # A backtrace takes more memory than a target may have.
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          env=dict(os.environ, RUST_BACKTRACE="0"))
    said = done.stdout.decode(errors="replace")

    def stat(name):
        found = re.search(r"stat::%s:\s*(\d+)" % name, said)
        return int(found.group(1)) if found else 0
    executed = stat("number_of_executed_units")
    good = done.returncode == 0 and executed > 0
    print("%-5s %-10s %12d executions in %5.0f s, %d MB, %d inputs kept" % (
        "ok" if good else "FAIL", target, executed, time.monotonic() - begun, stat("peak_rss_mb"), len(os.listdir(corpus))),
        flush=True)
    if not good:
        print("".join(line + "\n" for line in said.splitlines()[-40:] if not line.startswith("\t")))
        for name in sorted(set(os.listdir(failures)) - known):
            print("      repeat it: %s %s" % (command[0], os.path.join(failures, name)))
    return good, executed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="one of: " + " ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--runs", type=int, default=-1, help="executions of each target at most")
    parser.add_argument("--jobs", type=int, default=1, help="targets at the same time")
    parser.add_argument("--compares", action="store_true", help="with comparisons")
    options = parser.parse_args()
    unknown = [target for target in options.targets if target not in TARGETS]
    if unknown:
        parser.error("no such target: %s" % ", ".join(unknown))
    programs = build(options.compares)
    with ThreadPoolExecutor(max(options.jobs, 1)) as pool:
        results = list(pool.map(lambda target: run(target, programs, options), options.targets or TARGETS))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print("%d executions, %.0f s of processor time with what was built" % (
        sum(executed for _, executed in results), used.ru_utime + used.ru_stime))
    passed = sum(good for good, _ in results)
    print("%d passed, %d failed" % (passed, len(results) - passed))
    return 0 if passed == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
