#!/usr/bin/env python3
"""One client process of a run: all its programs, until SIGTERM. Started by run.py, with what it must know as JSON.

    client.py '{"folder": PATH, "name": NAME, "process": N, "seed": N, "ports": {"A": PORT, "B": PORT}, "pace": 1.0,
               "cast": "chaos"}'
"""
import asyncio
import json
import os
import random
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
from actors import Place            # noqa: E402
from layout import programs         # noqa: E402
from record import Book             # noqa: E402

ENDING = 3.0        # seconds until a program that does not come to its end is left


async def work(told):
    place = Place(Book(told["folder"], told["name"]), told["ports"], told["pace"])
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, lambda: setattr(place, "over", True))
    tasks = [asyncio.ensure_future(actor.run()) for actor in programs(
        place, told["process"], random.Random(told["seed"]), told["cast"])]
    mind = asyncio.ensure_future(place.mind())
    while not place.over:
        await asyncio.sleep(0.05)
        for task in tasks:
            if task.done() and task.exception():
                raise task.exception()
    await asyncio.wait(tasks, timeout=ENDING)
    await mind


if __name__ == "__main__":
    asyncio.run(work(json.loads(sys.argv[1])))
