"""Peers that connect and leave in the middle of a packet, with or without a reset."""

import asyncio
import contextlib
import random
import socket
import struct
from collections.abc import Mapping

from campaigns.doors import DOORS

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_DOORS_BY_SCHEME = {door.url.partition(":")[0]: door for door in DOORS.values()}


async def drop_connections(urls: Mapping[str, str], count: int, chance: random.Random) -> None:
    """So many peers, one after the other: each sends an opening and a part of a frame."""
    for _ in range(count):
        scheme = chance.choice(list(urls))
        door = _DOORS_BY_SCHEME[scheme]
        frame = door.wrap(chance.choice(door.bodies))
        # Never all of it: a complete frame could submit jobs that nobody runs, or a schedule of them.
        data = chance.choice(door.openings) + frame[: chance.randrange(len(frame))]
        await _drop(int(urls[scheme].rpartition(":")[2]), data, chance.random() < 0.5)


async def _drop(port: int, data: bytes, reset: bool) -> None:
    with contextlib.suppress(OSError):  # the server may be gone
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(data)
            await writer.drain()
            if reset:
                end: socket.socket = writer.get_extra_info("socket")
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        finally:
            writer.transport.abort() if reset else writer.close()
