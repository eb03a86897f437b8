"""Stands between a peer and a server, and can lose the connection or say something else in the server's place.

async with relayed(url) as relay, connected_client(relay.url) as client:
    await relay.cut()
    await client.lost.next()
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from geartrain import address

_CHUNK = 256 * 1024


class Relay:
    """Passes on what both sides say, until it is cut."""

    def __init__(self, url: str, folder: Path | None = None) -> None:
        self._server = address.parse(url)
        self._folder = folder  # for the socket file, where the server has one
        self._listener: asyncio.Server | None = None
        self._to_peers: set[asyncio.StreamWriter] = set()
        self._to_server: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""

    async def open(self) -> None:
        if self._server.path and not self._server.host:
            assert self._folder is not None, f"a relay to {self._server} needs a folder for its socket file"
            path = str(self._folder / "relay.sock")
            self._listener = await asyncio.start_unix_server(self._connected, path)
            self.url = str(self._server._replace(path=path))
        else:
            self._listener = await asyncio.start_server(self._connected, "127.0.0.1", 0)
            self.url = str(self._server._replace(port=self._listener.sockets[0].getsockname()[1]))

    def inject(self, data: bytes) -> None:
        """Say this to every connected peer."""
        for writer in self._to_peers:
            writer.write(data)

    def hang_up(self) -> None:
        """Close every connection in order, as a server that stops does. New ones are still accepted."""
        for writer in self._to_peers:
            writer.close()

    async def cut(self) -> None:
        """Accept nobody any more, and drop every connection without notice."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for writer in self._to_peers | self._to_server:
            writer.transport.abort()
        await asyncio.gather(*self._tasks)

    async def passed(self, data: bytes, to_peer: bool) -> None:
        """Called with everything that is passed on."""

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._to_peers.add(writer)
        if self._server.path and not self._server.host:
            server_reader, server_writer = await asyncio.open_unix_connection(self._server.path)
        else:
            server_reader, server_writer = await asyncio.open_connection(self._server.host, self._server.port)
        self._to_server.add(server_writer)
        await asyncio.gather(self._pass_on(reader, server_writer), self._pass_on(server_reader, writer))
        self._to_peers.discard(writer)
        self._to_server.discard(server_writer)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(_CHUNK):
                await self.passed(data, writer in self._to_peers)
                writer.write(data)
                await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@contextlib.asynccontextmanager
async def relayed(url: str, folder: Path | None = None) -> AsyncIterator[Relay]:
    """A relay to a server; it is cut at the end in any case."""
    relay = Relay(url, folder)
    await relay.open()
    try:
        yield relay
    finally:
        await relay.cut()
