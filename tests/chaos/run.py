#!/usr/bin/env python3
"""Chaos on one server in one mode, and what the checker says of its history.

    tests/chaos/run.py --proxy PATH --server PATH [--seconds N] [--mode MODE] [--seed N] [--faults KIND,...]
"""
import argparse
import os
import random
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
from scene import Scene             # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--proxy", default="target/release/lockward")
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--mode", default="dedicated")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--pace", type=float, default=1.0, help="longer pauses between the tries of a client")
    parser.add_argument("--keep", help="a folder for the history, kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lockward-chaos-") as folder:
        with Scene(options, options.keep or folder) as scene:
            scene.begin()
            time.sleep(options.seconds)
            scene.stop_clients()
            print(scene.tell(do="count"))


if __name__ == "__main__":
    sys.exit(main())
