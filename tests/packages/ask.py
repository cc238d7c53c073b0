"""One command to a port or unix socket, from a process of its own: prints the answer.

    ask.py PORT|PATH COMMAND...
"""
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
from harness.resp import Connection     # noqa: E402

with Connection(int(sys.argv[1]) if sys.argv[1].isdigit() else sys.argv[1], limit=10) as connection:
    print(connection.ask(*sys.argv[2:]))
