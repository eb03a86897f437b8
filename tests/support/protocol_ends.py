"""A ClientProtocol and a WorkerProtocol under test, without the library above them.

    @async_test
    async def test_reverse(url: str) -> None:
        async with connected_client(url) as client, connected_worker(url, b"reverse") as worker:
            listener = client.submit(b"reverse", b"abc")
            worker.complete(await worker.job(), b"cba")
            assert await listener.ending() == Completed(b"cba")

Both ends check, in every test, the rules of tests/contract/protocols that can be broken at any moment: the order of a
listener's calls, and the number of jobs that a worker has. `async_test` fails a test that broke one of them, that
raised inside a callback, or that left a task behind.
"""

import asyncio
import contextlib
import functools
import gc
import itertools
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, ParamSpec

from geartrain import address
from geartrain.client.credentials import credentials_for
from geartrain.client.job_events import Completed, Event, Failed
from geartrain.client.order import Acceptance, Capabilities, Order
from geartrain.client.protocols import registry
from geartrain.client.protocols.base import Assignment, ClientProtocol, WorkerProtocol
from geartrain.client.slots import Slots
from geartrain.errors import NoWorkersError

PATIENCE = 60.0  # seconds until a missing answer is a failure; a passing test never waits this long
LONGEST_TEST = 60.0  # seconds until a test that hangs is ended

P = ParamSpec("P")

_serial = itertools.count(1)
_problems: list[str] = []  # of the test that runs


def async_test(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a coroutine function as a test, and check afterwards that it left nothing behind."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(_checked(test(*args, **kwargs)))

    return run


async def _checked(test: Coroutine[Any, Any, None]) -> None:
    _problems.clear()
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: _problems.append(f"{context['message']}: {context.get('exception')!r}")
    )
    async with asyncio.timeout(LONGEST_TEST):
        await test
    for _ in range(3):  # what was cancelled or closed a moment ago comes to its end
        await asyncio.sleep(0)
    gc.collect()  # a future whose exception nobody asked for is reported by its destructor
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    assert not tasks, f"tasks are left: {tasks}"
    assert not _problems, "\n".join(_problems)


def new_name(name: str = "function") -> bytes:
    """A name that no other test of this run uses."""
    return f"{name}-{next(_serial)}".encode()


class Received(asyncio.Queue[Any]):
    """What one end received, in order."""

    async def next(self) -> Any:
        async with asyncio.timeout(PATIENCE):
            return await self.get()


class RecordingListener:
    """Records what is said about one order, and reports every call that the rules of JobListener do not allow."""

    def __init__(self, order: Order, calls: list[str]) -> None:
        self.order = order
        self.heard = Received()  # events, and `gone`'s error after an acceptance
        self.silenced = False  # by `forget` or `close`: nothing more may come
        self._calls = calls  # the names of the calls of one client, in order
        self._state = "submitted"
        self._acceptance: asyncio.Future[Acceptance] = asyncio.get_running_loop().create_future()

    @property
    def over(self) -> bool:
        return self._state == "over"

    def accepted(self, acceptance: Acceptance) -> None:
        self._call("accepted", "submitted", "over" if self.order.background else "accepted")
        if not self._acceptance.done():
            self._acceptance.set_result(acceptance)

    def refused(self, error: Exception) -> None:
        self._call("refused", "submitted", "over")
        if not self._acceptance.done():
            self._acceptance.set_exception(error)

    def event(self, event: Event) -> None:
        self._call(f"event {event}", "accepted", "over" if isinstance(event, Completed | Failed) else "accepted")
        self.heard.put_nowait(event)

    def gone(self, error: Exception) -> None:
        self._call("gone", self._state if self._state != "over" else "submitted", "over")
        if self._acceptance.done():
            self.heard.put_nowait(error)
        else:
            self._acceptance.set_exception(error)

    async def acceptance(self) -> Acceptance:
        """The server's, or its refusal as an exception."""
        async with asyncio.timeout(PATIENCE):
            return await asyncio.shield(self._acceptance)

    async def events(self) -> list[Any]:
        """Everything until the end, which may be the error that the order was `gone` with."""
        await self.acceptance()
        events = [await self.heard.next()]
        while not isinstance(events[-1], Completed | Failed | Exception):
            events.append(await self.heard.next())
        return events

    async def ending(self) -> Any:
        return (await self.events())[-1]

    def _call(self, name: str, expected: str, following: str) -> None:
        self._calls.append(name.partition(" ")[0])
        if self.silenced:
            _problems.append(f"{name} came to a listener that was forgotten, or whose client was closed")
        elif self._state != expected:
            _problems.append(f"{name} came to a listener that was {self._state}")
        self._state = following


class ClientEnd:
    """A client protocol, and what it says."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        location = address.parse(url)
        self.calls: list[str] = []  # the names of the calls of its listeners and of `lost`, in order
        self.lost = Received()
        self.protocol: ClientProtocol = registry.client_class(location)(location, self._lost)
        self.protocol.tls, self.protocol.token = tls, credentials_for(location, None, None).token
        self._listeners: list[RecordingListener] = []

    @property
    def can(self) -> Capabilities:
        return self.protocol.capabilities

    async def open(self) -> None:
        await self.protocol.open()

    def submit(self, function: bytes, payload: bytes = b"", **wishes: Any) -> RecordingListener:
        order = Order(function, payload, **wishes)
        listener = RecordingListener(order, self.calls)
        self._listeners.append(listener)
        self.protocol.submit(order, listener)
        return listener

    async def accepted(self, function: bytes, payload: bytes = b"", **wishes: Any) -> RecordingListener:
        """Submit, and return when the server has the job; also where it must hear of a worker first."""
        async with asyncio.timeout(PATIENCE):
            while True:
                listener = self.submit(function, payload, **wishes)
                try:
                    await listener.acceptance()
                except NoWorkersError:
                    await asyncio.sleep(0.01)
                else:
                    return listener

    async def queued(self, function: bytes, payload: bytes = b"", **wishes: Any) -> RecordingListener:
        """Submit a job that needs no worker yet: in the background where the protocol has background jobs."""
        listener = self.submit(function, payload, background=self.can.background, **wishes)
        await listener.acceptance()
        return listener

    def forget(self, listener: RecordingListener) -> None:
        self.protocol.forget(listener)
        listener.silenced = True

    async def close(self) -> None:
        for listener in self._listeners:
            listener.silenced = True
        await self.protocol.close()

    def _lost(self, error: Exception) -> None:
        self.calls.append("lost")
        if self.calls.count("lost") > 1:
            _problems.append(f"a client was told twice that its connection is lost: {error!r}")
        self.lost.put_nowait(error)


class WorkerEnd:
    """A worker protocol, and the jobs that it was given."""

    def __init__(
        self, url: str, *, name: str = "", concurrency: int = 1, slots: Slots | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:  # fmt: skip
        location = address.parse(url)
        self.jobs = Received()
        self.revocations = Received()
        self.lost = Received()
        self.running: set[Assignment] = set()
        self.stopped = False
        self.protocol: WorkerProtocol = registry.worker_class(location)(
            location, self._lost, self, name.encode(), concurrency
        )
        self.protocol.tls, self.protocol.token = tls, credentials_for(location, None, None).token
        if slots is not None:
            self.protocol.slots = slots

    async def open(self, *functions: bytes) -> None:
        await self.protocol.open(dict.fromkeys(functions, 0.0))

    async def job(self) -> Assignment:
        job: Assignment = await self.jobs.next()
        return job

    async def stop_fetching(self) -> None:
        """Ask for no more, and return when no job can come any more."""
        self.protocol.stop_fetching()
        async with asyncio.timeout(PATIENCE):
            await self.protocol.fetching_stopped()
        self.stopped = True

    # The endings of a job

    def complete(self, job: Assignment, result: bytes = b"") -> None:
        self.running.discard(job)
        self.protocol.complete(job, result)

    def fail(self, job: Assignment, reason: str, data: bytes = b"", code: int = 1) -> None:
        self.running.discard(job)
        self.protocol.fail(job, reason, data, code)

    def reschedule(self, job: Assignment, delay: float) -> None:
        self.running.discard(job)
        self.protocol.reschedule(job, delay)

    def release(self, job: Assignment) -> None:
        self.running.discard(job)
        self.protocol.release(job)

    async def close(self) -> None:
        await self.protocol.close()
        self.stopped = True

    # What the protocol calls

    def assigned(self, job: Assignment) -> None:
        self.running.add(job)
        if len(self.running) > self.protocol.concurrency:
            _problems.append(f"{len(self.running)} jobs run at a worker of {self.protocol.concurrency}")
        if self.stopped:
            _problems.append(f"{job.function!r} was assigned to a worker that had stopped fetching or was closed")
        self.jobs.put_nowait(job)

    def revoked(self, job: Assignment) -> None:
        if job not in self.running:
            _problems.append(f"{job.function!r} was revoked, and does not run")
        self.revocations.put_nowait(job)

    def _lost(self, error: Exception) -> None:
        if not self.lost.empty():
            _problems.append(f"a worker was told twice that its connection is lost: {error!r}")
        self.lost.put_nowait(error)


@contextlib.asynccontextmanager
async def connected_client(url: str, tls: ssl.SSLContext | None = None) -> AsyncIterator[ClientEnd]:
    client = ClientEnd(url, tls)
    await client.open()
    try:
        yield client
    finally:
        await client.close()


@contextlib.asynccontextmanager
async def connected_worker(url: str, *functions: bytes, **options: Any) -> AsyncIterator[WorkerEnd]:
    worker = WorkerEnd(url, **options)
    await worker.open(*functions)
    try:
        yield worker
    finally:
        await worker.close()


Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def fake_server(converse: Conversation, path: Path | None = None) -> AsyncIterator[int]:
    """A server of a test's own, on a free port or a socket file; it serves each connection until the peer closes it."""
    connections: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        connections.add(connection)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await converse(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    if path is None:
        listener = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
    else:
        listener = await asyncio.start_unix_server(serve, path)
        port = 0
    async with listener:
        yield port
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*connections)


async def until(condition: Callable[[], bool], what: str) -> None:
    """Ask again until it is so: for what gives no signal."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, f"never happened: {what}"
        await asyncio.sleep(0.01)
