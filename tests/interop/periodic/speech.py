"""What the two scripts share: orders come as JSON lines on stdin, what happened goes as JSON lines to stdout.

They run with the interpreter of an environment in which one version of aio-periodic is installed, and import
nothing but that. The versions differ in how a connection is made; this is where that is settled.
"""

import asyncio
import json
import os
import sys

import aio_periodic

TODAY = hasattr(aio_periodic, "Transport")  # 1.0

# The libraries print too, and none of that is an answer.
_out = os.fdopen(os.dup(1), "w", buffering=1)
sys.stdout = sys.stderr


def tell(**event):
    _out.write(json.dumps(event) + "\n")


async def orders():
    """The lines of stdin as they come."""
    reader = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield json.loads(line)


async def connect(peer, entrypoint):
    """Come in as each version does it."""
    if TODAY:
        await peer.connect(aio_periodic.Transport(entrypoint))
    elif hasattr(peer, "add_lose_waiter"):  # 0.2.8 comes back by itself
        await peer.connect(aio_periodic.open_connection, entrypoint)
    else:
        await peer.connect(*await aio_periodic.open_connection(entrypoint))
