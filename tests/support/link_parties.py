"""Both ends of a link, for tests that speak to one without the library above it.

async with client_of(url) as client, worker_of(url, b"reverse") as worker:
    order = client.submit(b"reverse", b"abc")
    worker.link.complete(await worker.job(), b"cba")
    assert await order.ending() == Completed(b"cba")
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from geartrain import address
from geartrain.client.job_events import Completed, Event, Failed
from geartrain.client.order import Acceptance, Order
from geartrain.client.protocols import registry
from geartrain.client.protocols.base import Assignment, ClientProtocol, WorkerProtocol

PATIENCE = 20.0  # seconds until a missing word is a failure; a passing test never waits this long
_serial = itertools.count(1)


def fresh(name: str = "function") -> bytes:
    """A name that no other test of this run uses."""
    return f"{name}-{next(_serial)}".encode()


class Heard(asyncio.Queue[Any]):
    """What was heard, in order."""

    async def next(self) -> Any:
        async with asyncio.timeout(PATIENCE):
            return await self.get()


class OrderSink:
    """Hears of one order."""

    def __init__(self) -> None:
        self._first: asyncio.Future[Acceptance] = asyncio.get_running_loop().create_future()
        self.heard = Heard()  # events, and at last perhaps the error that it was `gone` with

    def accepted(self, receipt: Acceptance) -> None:
        self._first.set_result(receipt)

    def refused(self, error: Exception) -> None:
        self._first.set_exception(error)

    def event(self, event: Event) -> None:
        assert self._first.done(), f"{event} came before the job was accepted"
        self.heard.put_nowait(event)

    def gone(self, error: Exception) -> None:
        if self._first.done():
            self.heard.put_nowait(error)
        else:
            self._first.set_exception(error)

    async def receipt(self) -> Acceptance:
        """The server's, or its refusal."""
        async with asyncio.timeout(PATIENCE):
            return await asyncio.shield(self._first)

    async def events(self) -> list[Any]:
        """Everything until the end."""
        await self.receipt()
        heard = [await self.heard.next()]
        while not isinstance(heard[-1], Completed | Failed | Exception):
            heard.append(await self.heard.next())
        return heard

    async def ending(self) -> Any:
        return (await self.events())[-1]


class ClientParty:
    """An open client link."""

    def __init__(self, url: str) -> None:
        place = address.parse(url)
        self.lost = Heard()
        self.link: ClientProtocol = registry.client_class(place)(place, self.lost.put_nowait)

    def submit(self, function: bytes, payload: bytes = b"", **words: Any) -> OrderSink:
        listener = OrderSink()
        self.link.submit(Order(function, payload, **words), listener)
        return listener


class WorkerParty:
    """An open worker link."""

    def __init__(self, url: str, name: str = "", concurrency: int = 1) -> None:
        place = address.parse(url)
        self.lost = Heard()
        self.jobs = Heard()
        link_class = registry.worker_class(place)
        self.link: WorkerProtocol = link_class(place, self.lost.put_nowait, self, name.encode(), concurrency)

    def assigned(self, job: Assignment) -> None:
        self.jobs.put_nowait(job)

    def revoked(self, job: Assignment) -> None:
        raise AssertionError(f"{job.function!r} was revoked")

    async def job(self) -> Assignment:
        found: Assignment = await self.jobs.next()
        return found


@contextlib.asynccontextmanager
async def client_of(url: str) -> AsyncIterator[ClientParty]:
    party = ClientParty(url)
    await party.link.open()
    try:
        yield party
    finally:
        await party.link.close()


@contextlib.asynccontextmanager
async def worker_of(url: str, *functions: bytes, name: str = "", concurrency: int = 1) -> AsyncIterator[WorkerParty]:
    party = WorkerParty(url, name, concurrency)
    await party.link.open(dict.fromkeys(functions, 0.0))
    try:
        yield party
    finally:
        await party.link.close()


Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def stand_in(answer: Conversation, path: Path | None = None) -> AsyncIterator[int]:
    """A server of a test's own making, on a free port or a socket file; each peer is answered until it leaves."""
    conversations: set[asyncio.Task[Any]] = set()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation = asyncio.current_task()
        assert conversation is not None
        conversations.add(conversation)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await answer(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    if path is None:
        listener = await asyncio.start_server(converse, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
    else:
        listener = await asyncio.start_unix_server(converse, path)
        port = 0
    async with listener:
        yield port
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*conversations)


async def until(condition: Callable[[], bool], what: str) -> None:
    """Ask again until it is so: for what gives no signal."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, f"never: {what}"
        await asyncio.sleep(0.01)
