"""ServerConnection with a peer of the test's own: what is sent when, and who hears of the end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from geartrain import address
from geartrain.address import Address
from geartrain.client.protocols.connection import ServerConnection
from geartrain.errors import ServerGoneError, WireError
from tests.support.protocol_ends import async_test


class Peer(asyncio.Protocol):
    """Keeps what it receives, read by read."""

    def __init__(self) -> None:
        self.reads: list[bytes] = []
        self.news = asyncio.Event()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.news.set()

    def data_received(self, data: bytes) -> None:
        self.reads.append(data)
        self.news.set()

    async def received(self, size: int) -> bytes:
        while len(b"".join(self.reads)) < size:
            self.news.clear()
            await self.news.wait()
        return b"".join(self.reads)


@contextlib.asynccontextmanager
async def listening(peer: Callable[[], asyncio.Protocol]) -> AsyncIterator[Address]:
    server = await asyncio.get_running_loop().create_server(peer, "127.0.0.1", 0)
    async with server:
        yield address.parse(f"gearman://127.0.0.1:{server.sockets[0].getsockname()[1]}")


def ignore(_: object) -> None:
    pass


def must_not_be_called(error: Exception) -> None:
    raise AssertionError("the end of this connection is nobody's business")


@async_test
async def test_what_is_written_in_one_iteration_leaves_together_and_before_the_end() -> None:
    peer = Peer()
    async with listening(lambda: peer) as location:
        connection = ServerConnection(ignore, ignore)
        await connection.open(location)
        for part in (b"a", b"b", b"c"):
            connection.write(part)
        assert await peer.received(3) == b"abc"
        assert peer.reads == [b"abc"]
        large = [b"x" * 300_000, b"y"]
        for part in large:
            connection.write(part)
        await connection.close()
        assert await peer.received(300_004) == b"abc" + b"".join(large)


@async_test
async def test_end_is_reported_once_with_its_reason() -> None:
    peer, errors, ended = Peer(), list[Exception](), asyncio.Event()

    def broken(error: Exception) -> None:
        errors.append(error)
        ended.set()

    async with listening(lambda: peer) as location:
        connection = ServerConnection(ignore, broken)
        await connection.open(location)
        await peer.news.wait()
        peer.transport.close()
        await ended.wait()
        connection.fail(ValueError("too late"))
        connection.write(b"nobody reads this")
        await connection.close()
    [error] = errors
    assert isinstance(error, ServerGoneError)


@async_test
async def test_nonsense_ends_the_connection_and_is_the_reason() -> None:
    peer = Peer()
    reason: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    def received(data: bytes) -> None:
        raise WireError("NONSENSE", "this is not it")

    async with listening(lambda: peer) as location:
        connection = ServerConnection(received, reason.set_result)
        await connection.open(location)
        await peer.news.wait()
        peer.transport.write(b"?")
        assert str(await reason) == "NONSENSE: this is not it"


@pytest.mark.parametrize("how", ["close", "abandon"])
@async_test
async def test_closed_or_abandoned_connection_is_silent(how: str) -> None:
    peer = Peer()
    async with listening(lambda: peer) as location:
        connection = ServerConnection(ignore, must_not_be_called)
        await connection.open(location)
        await peer.news.wait()
        if how == "close":
            await connection.close()
        else:
            connection.abandon()
        peer.transport.close()


@pytest.mark.parametrize("answers_first", [True, False])
@async_test
async def test_end_while_the_first_answer_is_awaited_is_raised_there(answers_first: bool) -> None:
    class Curt(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            transport.close()

    async def greet(connection: ServerConnection, location: Address) -> None:
        await connection.open(location)
        if answers_first:
            asyncio.get_running_loop().call_soon(connection.answered)
            asyncio.get_running_loop().call_soon(connection.fail, ServerGoneError("at once"))
        await connection.answer()

    async with listening(Curt) as location:
        connection = ServerConnection(ignore, must_not_be_called)
        with pytest.raises((ServerGoneError, OSError)):
            await greet(connection, location)
        connection.abandon()


@async_test
async def test_nobody_listens() -> None:
    async with listening(Peer) as location:
        pass
    with pytest.raises(OSError, match="failed"):
        await ServerConnection(ignore, ignore).open(location)
