#!/usr/bin/env python3
"""A TCP shim in a process of its own: carries bytes on some links, and breaks them when it is told to.

    shim.py '{"links": ["A", ...], "front": ["A", ...], "seed": N}'

Each link listens on a free port; its first line says on which. Links in `front` connect from the address of who came, so that
lockward sees the same client addresses. One JSON command on each line of standard input, one JSON answer on standard
output, with the number of connections or bytes that it concerned as `did`. The end of its input is its own.

    {"do": "aim", "link": L, "target": PORT}    where it leads to from now on
    {"do": "cut", "link": L, "share": 0.5}      ends so many of its connections at once, with RST
    {"do": "hole", "link": L, "way": "up"}      what goes that way is thrown away from now on ("up", "down", "both")
    {"do": "heal"}                              no more of that; connections that lost bytes end
    {"do": "arm", "count": N}                   cuts the next N lock cycles that bear the mark, each at another byte
    {"do": "disarm"}                            no more of that
    {"do": "plant", "what": W, "count": N}      for tests of the checker: breaks a promise (plants.py)
    {"do": "count"}                             how often it did what, and at which bytes it cut cycles since it was armed

A cut at byte N lets N bytes of the cycle through in that direction, counted from the packet in which the mark stood, and
ends both sides at once.
"""
import asyncio
import json
import re
import socket
import struct
import sys
from random import Random

import plants

# A cycle that may be cut begins with an acquire: the lock's name, and the value that the client gives it. (lockward itself
# names these locks too, on a connection of its own, when a client has gone.)
MARK = re.compile(rb"lock:cut:\d+\r\n.*\r\nc\d+-\d+\.\d+\r\n", re.DOTALL)
# How many bytes a cycle has: SET NX PX and DEL, as the client sends them and as lockward does, and what is answered.
REACH = {("front", "up"): 100, ("front", "down"): 9, ("back", "up"): 457, ("back", "down"): 9}
MISSED = 5              # so much more often is a byte tried that is not reached than one that is


class Cycles:
    """Which lock cycles are cut, and where: at each byte of each way in turn."""

    def __init__(self, random):
        self.left, self.cut = 0, []
        self.chosen = dict.fromkeys(REACH, 0)
        self.tries = {way: [0] * (reach + 1) for way, reach in REACH.items()}
        self.order = {way: random.sample(range(reach + 1), reach + 1) for way, reach in REACH.items()}

    def arm(self, count):
        self.left, self.cut = count, []

    def choose(self, place):
        """(place, way) and the byte, for a cycle that begins there; None if it is to go on. Asked while some are left to cut."""
        # The longer ways have more bytes, and have to come more often.
        where = min(REACH, key=lambda way: self.chosen[way] / REACH[way])
        if where[0] != place:
            return None
        byte = min(self.order[where], key=self.tries[where].__getitem__)
        self.chosen[where] += 1
        self.tries[where][byte] += 1
        return where, byte

    def done(self, where, byte):
        self.left -= 1
        self.cut.append([" ".join(where), byte])
        self.tries[where][byte] += MISSED - 1


class Shim:
    def __init__(self, front, random):
        self.targets, self.front, self.pairs = {}, set(front), set()
        self.holes, self.swallowed, self.cycles, self.counts, self.plants = set(), 0, Cycles(random), {}, []

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    async def serve(self, links):
        """The port of each."""
        loop, ports = asyncio.get_running_loop(), {}
        for link in links:
            server = await loop.create_server(lambda link=link: Side(self, link), "127.0.0.1", 0, backlog=1024)
            ports[link] = server.sockets[0].getsockname()[1]
        return ports

    # ---- commands

    def obey(self, told):
        what, link, did = told["do"], told.get("link"), 0
        pairs = [pair for pair in self.pairs if link in (None, pair.link)]
        if what == "aim":
            self.targets[link] = told["target"]
        elif what == "cut":
            did = len([pair.end() for pair in pairs[:max(1, int(len(pairs) * told["share"]))]])
        elif what == "hole":
            self.swallowed = 0
            self.holes = {(link, way) for way in (("up", "down") if told["way"] == "both" else (told["way"],))}
        elif what == "heal":
            self.holes, did = set(), self.swallowed
            for pair in [pair for pair in self.pairs if pair.lost]:
                pair.end()
        elif what == "arm":
            self.cycles.arm(told["count"])
        elif what == "disarm":
            self.cycles.left = 0
            for pair in pairs:
                pair.cut = None
        elif what == "plant":
            self.plants.append(plants.make(told["what"], told["count"], self))
        return {"did": did, "counts": self.counts, "cuts": self.cycles.cut}


class Side(asyncio.Protocol):
    """One end of a connection: the one that came, or the one made for it (`other`)."""

    def __init__(self, shim, link, other=None):
        self.shim, self.link, self.other = shim, link, other
        self.transport, self.waiting, self.lost, self.ended, self.half = None, [], False, False, False
        self.cut, self.passed = None, 0     # where this cycle is to be cut, and how much of it has come through
        self.way = "down" if other else "up"

    def connection_made(self, transport):
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.other:
            self.other.ready(self)
            return
        self.shim.pairs.add(self)
        asyncio.ensure_future(self.reach())

    async def reach(self):
        source = None
        if self.link in self.shim.front:
            source = (self.transport.get_extra_info("peername")[0], 0)
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: Side(self.shim, self.link, self), "127.0.0.1", self.shim.targets[self.link], local_addr=source)
        except OSError:
            self.end()

    def ready(self, other):
        self.other = other
        waiting, self.waiting = self.waiting, []
        for data in waiting:
            self.carry(data)

    def data_received(self, data):
        if self.other is None:
            self.waiting.append(data)
        else:
            self.carry(data)

    def carry(self, data):
        first = self if self.way == "up" else self.other
        if (self.link, self.way) in self.shim.holes:
            first.lost = True
            self.shim.swallowed += len(data)
            return
        if self.way == "up" and first.cut is None and self.shim.cycles.left and MARK.search(data):
            first.cut = self.shim.cycles.choose("front" if self.link in self.shim.front else "back")
            first.passed = 0
        if first.cut and first.cut[0][1] == self.way:
            where, byte = first.cut
            if first.passed + len(data) >= byte:
                self.other.write(data[:byte - first.passed])
                self.shim.cycles.done(where, byte)
                first.end(bool((byte + self.shim.cycles.tries[where][byte]) % 2))
                return
            first.passed += len(data)
        for plant in self.shim.plants:
            data = plant(self, first, data)
        if data:
            self.other.write(data)

    def write(self, data):
        if data and not self.ended:
            self.transport.write(data)

    def eof_received(self):
        if (self.link, self.way) in self.shim.holes:
            (self if self.way == "up" else self.other or self).lost = True
            return True
        self.half = True
        if self.other and self.other.half:
            (self if self.way == "up" else self.other).end(False)
        elif self.other and not self.other.ended:
            self.other.transport.write_eof()
        elif not self.other:
            self.end(False)
        return True

    def connection_lost(self, error):
        self.ended = True
        first = self if self.way == "up" else self.other
        if first is not None:
            first.end(error is not None)

    def end(self, reset=True):
        """Both sides: with RST, but for what was written before."""
        self.shim.pairs.discard(self)
        for side in (self, self.other):
            if side is not None and not side.ended:
                side.ended = True
                if reset and not side.transport.get_write_buffer_size():
                    side.transport.get_extra_info("socket").setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                side.transport.close()


async def work(told):
    shim = Shim(told["front"], Random(told["seed"]))
    ports = await shim.serve(told["links"])
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print(json.dumps(ports), flush=True)
    while line := await reader.readline():
        print(json.dumps(shim.obey(json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(work(json.loads(sys.argv[1])))
