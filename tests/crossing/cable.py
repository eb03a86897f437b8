"""A cable between a peer and a door that a test can cut: the server then loses its peer as if that had died."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from geartrain import address

_CHUNK = 256 * 1024


class Cable:
    """Passes on what both sides say, until it is cut."""

    def __init__(self, url: str) -> None:
        self._door = address.parse(url)
        self._listener: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""

    async def lay(self) -> None:
        self._listener = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port = self._listener.sockets[0].getsockname()[1]
        self.url = str(self._door._replace(port=port))

    async def cut(self) -> None:
        """Nobody comes through any more, and nobody says goodbye."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*self._tasks)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        far_reader, far_writer = await asyncio.open_connection(self._door.host, self._door.port)
        self._writers.add(far_writer)
        await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(_CHUNK):
                writer.write(data)
                await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@contextlib.asynccontextmanager
async def laid(url: str) -> AsyncIterator[Cable]:
    """A cable to a door; it is cut at the end in any case."""
    cable = Cable(url)
    await cable.lay()
    try:
        yield cable
    finally:
        await cable.cut()
