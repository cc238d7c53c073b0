#!/usr/bin/env python3
"""A TCP shim in a process of its own: carries bytes on some links, and breaks them when it is told to.

    shim.py '{"links": {"A": [LISTEN, TARGET], ...}, "front": ["A", ...]}'

Links in `front` connect from the address of who came, so that lockward sees the same client addresses. One JSON command on
each line of standard input, one JSON answer on standard output:

    {"do": "cut", "link": L, "share": 0.5}      ends so many of its connections at once, with RST
    {"do": "hole", "link": L, "way": "up"}      what goes that way is thrown away from now on ("up", "down", "both")
    {"do": "heal"}                              no more of that; connections that lost bytes end
    {"do": "arm", "count": N}                   cuts the next N lock cycles that bear the mark, each one byte further
    {"do": "plant", "what": W, "count": N}      for tests of the checker: breaks a promise (plants.py)
    {"do": "count"}                             how often it did what

A cut at byte N lets N bytes of the cycle through in that direction, counted from the packet in which the mark stood, and
ends both sides. Each next cut is at another byte, until all of a cycle on each link in each direction have had their turn.
"""
import asyncio
import json
import socket
import struct
import sys

import plants

MARK = b"lock:cut:"
# How many bytes of a cycle there are to cut at: of SET and DEL, as the client sends them and as lockward does.
REACH = {("front", "up"): 110, ("front", "down"): 12, ("back", "up"): 520, ("back", "down"): 12}


class Shim:
    def __init__(self, links, front):
        self.links, self.front, self.pairs = links, set(front), set()
        self.holes, self.armed, self.counts, self.plants = set(), 0, {}, []
        self.turns = {place: 0 for place in REACH}

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    async def serve(self):
        loop = asyncio.get_running_loop()
        for link, (listen, target) in self.links.items():
            await loop.create_server(lambda link=link, target=target: Side(self, link, target), "127.0.0.1", listen,
                                     backlog=1024)

    def cut_for(self, link):
        """Where the next marked cycle on this link is cut: (way, bytes, with RST), or None."""
        if not self.armed:
            return None
        place = "front" if link in self.front else "back"
        share = {p: sum(self.turns[p, way] for way in ("up", "down")) / (REACH[p, "up"] + REACH[p, "down"])
                 for p in ("front", "back")}
        if share[place] > min(share.values()):
            return None
        # The longer way has more bytes, and has to come more often.
        way = min(("up", "down"), key=lambda w: self.turns[place, w] / REACH[place, w])
        turn, self.turns[place, way] = self.turns[place, way], self.turns[place, way] + 1
        self.armed -= 1
        self.count("cut %s %s" % (place, way))
        return way, turn % REACH[place, way], bool((turn + turn // REACH[place, way]) % 2)

    # ---- commands

    def obey(self, told):
        what, link = told["do"], told.get("link")
        pairs = [pair for pair in self.pairs if link in (None, pair.link)]
        if what == "cut":
            for pair in pairs[:max(1, int(len(pairs) * told["share"]))]:
                pair.end()
        elif what == "hole":
            self.holes = {(link, way) for way in (("up", "down") if told["way"] == "both" else (told["way"],))}
        elif what == "heal":
            self.holes = set()
            for pair in [pair for pair in self.pairs if pair.lost]:
                pair.end()
        elif what == "arm":
            self.armed = told["count"]
        elif what == "plant":
            self.plants.append(plants.make(told["what"], told["count"], self))
        return {"counts": self.counts, "turns": {" ".join(k): v for k, v in self.turns.items()}, "armed": self.armed,
                "open": len(self.pairs)}


class Side(asyncio.Protocol):
    """One end of a connection: the one that came, or the one made for it (`other`)."""

    def __init__(self, shim, link, target, other=None):
        self.shim, self.link, self.target, self.other = shim, link, target, other
        self.transport, self.waiting, self.lost, self.cut, self.ended, self.half = None, [], False, None, False, False
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
                lambda: Side(self.shim, self.link, self.target, self), "127.0.0.1", self.target, local_addr=source)
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
            return
        if self.way == "up" and MARK in data and first.cut is None:
            first.cut = self.shim.cut_for(self.link)
        if first.cut and first.cut[0] == self.way:
            way, left, reset = first.cut
            first.cut = (way, left - len(data), reset)
            if left < len(data):
                self.other.write(data[:left])
                first.end(reset)
                return
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
    shim = Shim(told["links"], told["front"])
    await shim.serve()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print(json.dumps({"ready": True}), flush=True)
    while line := await reader.readline():
        print(json.dumps(shim.obey(json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(work(json.loads(sys.argv[1])))
