"""Handles of calls that were submitted earlier, by another program, and cancelling of running tasks."""

import asyncio
import threading

import pytest

from geartrain.app import App, current_task
from geartrain.client.job_events import Completed, Progressed
from geartrain.errors import JobFailedError, ResultGoneError
from tests.support import apps, relay, serving
from tests.support.apps import run, url_of

DOORS = ("gearman", "danga", "periodic", "gearmonkey", "http")


@pytest.mark.parametrize("door", DOORS)
def test_from_another_program(server: serving.ServerProcess, app: App, door: str) -> None:
    app = App(app.name, url_of(server, door))
    go_on = asyncio.Event()

    @app.task
    async def double(number: int) -> dict[str, int]:
        current_task().progress(1, 4)
        await go_on.wait()
        return {"doubled": 2 * number}

    async def scenario() -> None:
        submitted = await double.submit(21)
        async with App(app.name, url_of(server, door)) as other:

            @other.task(name=double.name)
            async def same(number: int) -> dict[str, int]:
                raise NotImplementedError

            handle = same.handle(submitted.handle, submitted.server)
            assert await handle.state() == "queued"
            assert await handle.progress() is None
            async with apps.working(app):
                result = asyncio.create_task(handle.result())
                while await handle.progress() is None and door not in ("periodic",):  # which has no progress
                    await asyncio.sleep(0.01)
                while await handle.state() != "running":
                    await asyncio.sleep(0.01)
                go_on.set()
                assert await result == {"doubled": 42}
            again = same.handle(submitted.handle)
            assert await again.state() == "done"
            assert await again.result() == {"doubled": 42}
            assert await again.traceback() == ""
            if door in ("gearman", "danga", "http"):
                assert await other.handle(submitted.handle).result() == {"doubled": 42}
            unknown = same.handle("H:nowhere:1" if door != "gearmonkey" else "999999999")
            assert await unknown.state() == "unknown"
            with pytest.raises(ResultGoneError):
                await unknown.result()

    run(scenario())


def test_events_of_a_submitted_call(app: App) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> str:
        current_task().progress(1, 2)
        begun.set()
        await go_on.wait()
        return "done"

    async def scenario() -> None:
        handle = await work.submit()
        async with apps.working(app):
            await begun.wait()
            while await handle.progress() is None:
                await asyncio.sleep(0.01)
            events = handle.events()
            assert await anext(events) == Progressed(1, 2)
            go_on.set()
            assert [event async for event in events] == [Completed(b'"done"')]

    run(scenario())


def test_without_an_event_loop(app: App) -> None:
    @app.task
    def work() -> int:
        return 1

    with app:
        handle = work.submit_sync()
        later = work.handle_sync(handle.handle)
        assert (later.state(), later.progress(), later.traceback()) == ("queued", None, "")
        assert later.cancel()
        assert app.handle_sync(handle.handle).state() == "cancelled"


def test_the_traceback_of_a_task_that_is_to_be_retried(app: App) -> None:
    @app.task(retries=1, backoff=3600)
    async def work() -> None:
        raise KeyError("lost")

    async def scenario() -> None:
        handle = await work.submit()
        async with apps.working(app):
            while await handle.state() != "scheduled":
                await asyncio.sleep(0.01)
            text = await handle.traceback()
            assert text.startswith("Traceback")
            assert text.endswith("KeyError: 'lost'")
            assert await handle.cancel()

    run(scenario())


def test_a_coroutine_is_cancelled(app: App) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            assert current_task().revoked
            cancelled.set()
            raise

    async def scenario() -> None:
        async with apps.working(app):
            handle = await work.submit()
            await begun.wait()
            assert await handle.cancel()
            await cancelled.wait()
            assert await handle.state() == "cancelled"
            with pytest.raises(JobFailedError):
                await handle.result()

    run(scenario())


def test_a_thread_sees_that_its_task_was_cancelled(app: App) -> None:
    begun, seen = threading.Event(), threading.Event()

    @app.task
    def work() -> None:
        begun.set()
        while not current_task().revoked:
            seen.wait(0.01)
        seen.set()

    async def scenario() -> None:
        async with apps.working(app):
            handle = await work.submit()
            assert await asyncio.to_thread(begun.wait, apps.SECONDS)
            assert await handle.cancel()
            assert await asyncio.to_thread(seen.wait, apps.SECONDS)
            assert await handle.state() == "cancelled"

    run(scenario())


class CountingRelay(relay.Relay):
    """Counts connections, bytes of the client, and how often the server has said something."""

    def __init__(self, url: str, counted: bytes) -> None:
        super().__init__(url)
        self.connections = 0
        self.sent = 0  # bytes, by the client
        self._counted = counted
        self._heard = b""  # from the server
        self._reached = asyncio.Condition()

    async def heard(self, count: int) -> None:
        """Wait until the server has said it so often."""
        async with self._reached:
            await self._reached.wait_for(lambda: self._heard.count(self._counted) >= count)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        await super()._connected(reader, writer)

    async def passed(self, data: bytes, to_peer: bool) -> None:
        if not to_peer:
            self.sent += len(data)
            return
        async with self._reached:
            self._heard += data
            self._reached.notify_all()


def test_a_thousand_results_share_one_connection_without_polling(server: serving.ServerProcess, app: App) -> None:
    @app.task
    async def double(number: int) -> int:
        return 2 * number

    job_created = b"\0RES\0\0\0\x08"

    async def scenario() -> None:
        counting = CountingRelay(url_of(server, "gearman"), job_created)
        await counting.open()
        submitted = await app.submit_many(double.bind(number) for number in range(1000))
        async with App(app.name, counting.url) as other:
            same = other.task(name=double.name)(double.function)
            first = asyncio.create_task(same.handle(submitted[0].handle).result())
            await counting.heard(1)
            handles = [same.handle(handle.handle) for handle in submitted[1:]]
            results = [first, *(asyncio.create_task(handle.result()) for handle in handles)]
            await counting.heard(1000)  # the server has accepted each of them
            sent = counting.sent
            async with apps.working(app):
                assert await asyncio.gather(*results) == [2 * number for number in range(1000)]
            assert (counting.connections, counting.sent) == (1, sent)
        await counting.cut()

    run(scenario())
