"""A line to a peer of the test's own: what leaves, when, and what is said of its end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from geartrain import address
from geartrain.address import Address
from geartrain.client.protocols.connection import ServerConnection
from geartrain.errors import ServerGoneError, WireError


class Peer(asyncio.Protocol):
    """Keeps what it hears, read by read."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.news = asyncio.Event()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.news.set()

    def data_received(self, data: bytes) -> None:
        self.heard.append(data)
        self.news.set()

    async def hears(self, size: int) -> bytes:
        while len(b"".join(self.heard)) < size:
            self.news.clear()
            await self.news.wait()
        return b"".join(self.heard)


@contextlib.asynccontextmanager
async def listening(peer: Callable[[], asyncio.Protocol]) -> AsyncIterator[Address]:
    server = await asyncio.get_running_loop().create_server(peer, "127.0.0.1", 0)
    async with server:
        yield address.parse(f"gearman://127.0.0.1:{server.sockets[0].getsockname()[1]}")


def ignore(_: object) -> None:
    pass


def test_what_gathers_in_a_turn_leaves_together_and_before_the_farewell() -> None:
    async def scenario() -> None:
        peer = Peer()
        async with listening(lambda: peer) as place:
            line = ServerConnection(ignore, ignore)
            await line.open(place)
            for part in (b"a", b"b", b"c"):
                line.write(part)
            assert await peer.hears(3) == b"abc"
            assert peer.heard == [b"abc"]
            large = [b"x" * 300_000, b"y"]
            for part in large:
                line.write(part)
            await line.close()
            assert await peer.hears(300_004) == b"abc" + b"".join(large)

    asyncio.run(scenario())


def test_the_end_is_told_once_with_its_reason() -> None:
    async def scenario() -> list[Exception]:
        peer = Peer()
        told: list[Exception] = []
        ended = asyncio.Event()

        def broken(error: Exception) -> None:
            told.append(error)
            ended.set()

        async with listening(lambda: peer) as place:
            line = ServerConnection(ignore, broken)
            await line.open(place)
            await peer.news.wait()
            peer.transport.close()
            await ended.wait()
            line.fail(ValueError("too late"))
            line.write(b"nobody hears this")
            await line.close()
        return told

    [error] = asyncio.run(scenario())
    assert isinstance(error, ServerGoneError)


def test_nonsense_ends_the_line_and_is_the_reason() -> None:
    async def scenario() -> Exception:
        peer = Peer()
        reason: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

        def received(data: bytes) -> None:
            raise WireError("NONSENSE", "this is not it")

        async with listening(lambda: peer) as place:
            line = ServerConnection(received, reason.set_result)
            await line.open(place)
            await peer.news.wait()
            peer.transport.write(b"?")
            return await reason

    assert str(asyncio.run(scenario())) == "NONSENSE: this is not it"


def test_a_closed_or_abandoned_line_says_nothing() -> None:
    async def scenario() -> None:
        def broken(error: Exception) -> None:
            raise AssertionError("nobody should be told")

        for goodbye in ("close", "abandon"):
            peer = Peer()
            async with listening(lambda peer=peer: peer) as place:  # type: ignore[misc]
                line = ServerConnection(ignore, broken)
                await line.open(place)
                await peer.news.wait()
                if goodbye == "close":
                    await line.close()
                else:
                    line.abandon()
                peer.transport.close()
                await asyncio.sleep(0)

    asyncio.run(scenario())


@pytest.mark.parametrize("answers_first", [True, False])
def test_an_end_while_the_first_answer_is_waited_for_is_raised_there(answers_first: bool) -> None:
    async def scenario() -> None:
        def broken(error: Exception) -> None:
            raise AssertionError("nobody should be told")

        class Curt(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                assert isinstance(transport, asyncio.Transport)
                transport.close()

        async def greet(line: ServerConnection, place: Address) -> None:
            await line.open(place)
            if answers_first:
                asyncio.get_running_loop().call_soon(line.answered)
                asyncio.get_running_loop().call_soon(line.fail, ServerGoneError("at once"))
            await line.answer()

        async with listening(Curt) as place:
            line = ServerConnection(ignore, broken)
            with pytest.raises((ServerGoneError, OSError)):
                await greet(line, place)
            line.abandon()
            await asyncio.sleep(0)

    asyncio.run(scenario())


def test_nobody_there() -> None:
    async def scenario() -> None:
        async with listening(Peer) as place:
            pass
        with pytest.raises(OSError, match="failed"):
            await ServerConnection(ignore, ignore).open(place)

    asyncio.run(scenario())
