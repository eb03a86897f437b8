"""Workflows of apps at a server: shapes, results of parents, failure and retry, cancelling, workers of protocols."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from geartrain.app import App, Call, Proceed, Workflow
from geartrain.errors import JobFailedError, JobTimeoutError, RefusedError, UnsupportedError
from tests.support import apps, serving
from tests.support.apps import run, url_of

DOORS = ("gearman", "http")
WORKER_DOORS = ("gearman", "http", "periodic", "gearmonkey")


class Shop:
    """An app with tasks, of which some can be broken."""

    def __init__(self, name: str, url: str) -> None:
        self.app = app = App(name, url)
        self.broken: set[str] = set()
        self.ran: list[str] = []

        @app.task
        async def fetch(url: str) -> bytes:
            self.does(f"fetch {url}")
            return url.upper().encode()

        @app.task
        def merge(parts: list[bytes], *, separator: str = "") -> str:
            self.does("merge")
            return separator.join(part.decode() for part in parts)

        @app.task
        async def length(text: str, limit: int = 99) -> int:
            self.does(f"length {text}")
            return min(len(text), limit)

        @app.task
        async def report(parts: Sequence[bytes | JobFailedError]) -> list[str]:
            self.does("report")
            return [part.reason if isinstance(part, JobFailedError) else part.decode() for part in parts]

        self.fetch, self.merge, self.length, self.report = fetch, merge, length, report

    def does(self, what: str) -> None:
        self.ran.append(what)
        if what in self.broken:
            raise ValueError(f"{what} is broken")


@pytest.fixture(params=DOORS)
def shop(server: serving.ServerProcess, app: App, request: pytest.FixtureRequest) -> Shop:
    return Shop(app.name, url_of(server, request.param))


def test_group_chain_and_chord(shop: Shop) -> None:
    async def scenario() -> None:
        async with apps.working(shop.app):
            group = await shop.app.group(map(shop.fetch.bind, "abc"))
            assert await group.result(timeout=apps.SECONDS) == [b"A", b"B", b"C"]
            chain = await shop.app.chain(
                shop.fetch.bind("d"), lambda part: shop.merge.bind([part, part]), shop.length.bind
            )
            assert await chain.result(timeout=apps.SECONDS) == 2
            chord = await shop.app.chord(map(shop.fetch.bind, "xyz"), shop.merge.bind)
            assert await chord.result(timeout=apps.SECONDS) == "XYZ"
            assert await chord.workflow.wait(timeout=apps.SECONDS) == "done"
            assert await chord.workflow.progress() == {"done": 4}

    run(scenario())


def test_a_diamond_with_results_as_positional_and_keyword_arguments(shop: Shop) -> None:
    async def scenario() -> None:
        async with apps.working(shop.app):
            async with shop.app.workflow("diamond") as flow:
                top = flow.add(shop.fetch.bind("top"))
                left = flow.add(shop.merge.bind([top, b"-left"]))
                right = flow.add(shop.length.bind(flow.add(shop.merge.bind([top, top]))))
                bottom = flow.add(shop.length.options(priority="high").bind(left, limit=right))
            assert await flow.handle.result(bottom, timeout=apps.SECONDS) == 6
            assert await flow.handle.result((top, left)) == (b"TOP", "TOP-left")
            same = shop.app.workflow_handle(flow.handle.handle, flow.handle.server)
            assert (await same.wait(), await same.reason()) == ("done", "")

    run(scenario())


def test_a_call_that_only_waits(shop: Shop) -> None:
    async def scenario() -> None:
        async with shop.app:
            async with shop.app.workflow("waits") as flow:
                first = flow.add(shop.length.bind("first"))
                flow.add(shop.length.bind("second"), after=[first])
            assert await flow.handle.state() == "running"
            assert await flow.handle.progress() == {"queued": 1, "blocked": 1}
            with pytest.raises(JobTimeoutError):
                await flow.handle.wait(timeout=0.01)
            with pytest.raises(JobTimeoutError):
                await flow.handle.result([first], timeout=0.01)
            async with apps.working(shop.app):
                assert await flow.handle.wait(timeout=apps.SECONDS) == "done"
            assert shop.ran == ["length first", "length second"]

    run(scenario())


def test_retry_from_what_failed(shop: Shop) -> None:
    shop.broken = {"fetch b"}

    async def scenario() -> None:
        async with apps.working(shop.app):
            async with shop.app.workflow("import") as flow:
                parts = [flow.add(shop.fetch.bind(url)) for url in "ab"]
                size = flow.add(shop.length.bind(flow.add(shop.merge.bind(parts))))
            assert await flow.handle.wait(timeout=apps.SECONDS) == "failed"
            failed = flow.handle.member(parts[1])
            assert await flow.handle.reason() == f"job {failed.handle} ended as failed"
            assert await flow.handle.progress() == {"done": 1, "failed": 1, "cancelled": 2}
            with pytest.raises(JobFailedError, match="fetch b is broken") as caught:
                await failed.result()
            assert caught.value.reason == "ValueError: fetch b is broken"
            assert "raise ValueError" in await failed.traceback()
            with pytest.raises(JobFailedError, match="which it waited for, ended as cancelled"):
                await flow.handle.result(size)
            shop.broken = set()
            shop.ran.clear()
            assert await flow.handle.retry()
            assert await flow.handle.result(size, timeout=apps.SECONDS) == 2
            assert await flow.handle.wait(timeout=apps.SECONDS) == "done"
            assert shop.ran == ["fetch b", "merge", "length AB"]
            assert not await flow.handle.retry()

    run(scenario())


def test_a_call_that_runs_anyway_gets_errors_for_results(shop: Shop) -> None:
    shop.broken = {"fetch b"}

    async def scenario() -> None:
        async with apps.working(shop.app):
            async with shop.app.workflow("import") as flow:
                parts = [flow.add(shop.fetch.bind(url)) for url in "abc"]
                reported = flow.add(shop.report.bind(parts), on_failure="run")
                merged = flow.add(shop.merge.bind(parts), on_failure="run")
            assert await flow.handle.result(reported, timeout=apps.SECONDS) == [
                "A", "ValueError: fetch b is broken", "C",
            ]  # fmt: skip
            with pytest.raises(JobFailedError, match=r"annotate it with `\| JobFailedError`"):
                await flow.handle.result(merged, timeout=apps.SECONDS)
            assert await flow.handle.wait(timeout=apps.SECONDS) == "failed"

    run(scenario())


def test_cancelling_the_whole(shop: Shop) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    @shop.app.task
    async def endless() -> bytes:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return b""

    async def scenario() -> None:
        async with apps.working(shop.app):
            async with shop.app.workflow("endless") as flow:
                done = flow.add(shop.fetch.bind("a"))
                merged = flow.add(shop.merge.bind([done, flow.add(endless.bind())]))
            await flow.handle.result(done, timeout=apps.SECONDS)
            await started.wait()
            assert await flow.handle.cancel()
            assert await flow.handle.wait(timeout=apps.SECONDS) == "cancelled"
            assert await flow.handle.progress() == {"done": 1, "cancelled": 2}
            with pytest.raises(JobFailedError):
                await flow.handle.result(merged)
            await cancelled.wait()
            assert (await flow.handle.cancel(), await flow.handle.retry()) == (False, False)

    run(scenario())


def test_a_thousand_results(shop: Shop) -> None:
    @shop.app.task
    async def double(number: int) -> int:
        return 2 * number

    @shop.app.task
    async def total(numbers: list[int]) -> int:
        return sum(numbers)

    async def scenario() -> None:
        async with apps.working(shop.app, concurrency=50):
            chord = await shop.app.chord(map(double.bind, range(1000)), total.bind)
            assert await chord.result(timeout=apps.SECONDS) == 999_000
            assert await chord.workflow.wait(timeout=apps.SECONDS) == "done"

    run(scenario())


def test_a_result_that_is_gone(shop: Shop) -> None:
    async def scenario() -> None:
        async with shop.app:
            flow = shop.app.workflow("import")
            node: Any = flow.add(shop.fetch.bind("a"))
            merged: Any = flow.add(shop.merge.bind([node]))
            merged.call.place = 1_000_000  # as if parents had much lower ids, which no job of this server has
            await flow.submit()
            async with apps.working(shop.app):
                with pytest.raises(
                    JobFailedError, match=r"an argument is the result of job 0 .*, which is no longer kept"
                ):
                    await flow.handle.result(merged, timeout=apps.SECONDS)
                assert await flow.handle.wait(timeout=apps.SECONDS) == "failed"

    run(scenario())


@pytest.mark.parametrize("door", WORKER_DOORS)
def test_workers_of_every_protocol(server: serving.ServerProcess, app: App, door: str) -> None:
    submitting = Shop(app.name, url_of(server, "http"))
    working = Shop(app.name, url_of(server, door))
    working.broken = {"fetch b"} if door != "periodic" else set()  # whose workers cannot say that a job failed for good

    async def scenario() -> None:
        async with submitting.app, apps.working(working.app):
            async with submitting.app.workflow("import") as flow:
                parts = [flow.add(submitting.fetch.bind(url)) for url in "ab"]
                merged = flow.add(submitting.merge.bind([parts[0], b"+"]))
                reported = flow.add(submitting.report.bind(parts), on_failure="run")
            assert await flow.handle.result(merged, timeout=apps.SECONDS) == "A+"
            second = "B" if door == "periodic" else "ValueError: fetch b is broken"
            assert await flow.handle.result(reported, timeout=apps.SECONDS) == ["A", second]
            state = "done" if door == "periodic" else "failed"
            assert await flow.handle.wait(timeout=apps.SECONDS) == state

    run(scenario())


def test_workers_that_do_not_know_their_job(server: serving.ServerProcess, app: App) -> None:
    submitting = Shop(app.name, url_of(server, "http"))
    working = Shop(app.name, url_of(server, "danga"))

    async def scenario() -> None:
        async with submitting.app, apps.working(working.app):
            async with submitting.app.workflow("import") as flow:
                part = flow.add(submitting.fetch.bind("a"))
                flow.add(submitting.length.bind("waits"), after=[part])
                merged = flow.add(submitting.merge.bind([part]))
            with pytest.raises(JobFailedError, match="danga does not tell workers the handle of a job"):
                await flow.handle.result(merged, timeout=apps.SECONDS)
            await flow.handle.wait(timeout=apps.SECONDS)
            assert await flow.handle.progress() == {"done": 2, "failed": 1}

    run(scenario())


def test_middleware_is_around_every_call(shop: Shop) -> None:
    seen: list[tuple[int | None, str]] = []

    @shop.app.around_submit
    async def note(call: Call[Any], proceed: Proceed) -> Any:
        handle = await proceed()
        seen.append((call.place, handle.handle))
        return handle

    async def scenario() -> None:
        async with shop.app:
            async with shop.app.workflow("import") as flow:
                parts = [flow.add(shop.fetch.bind(url)) for url in "ab"]
            assert sorted(seen) == [(place, flow.handle.member(part).handle) for place, part in enumerate(parts)]
            await flow.handle.cancel()

    run(scenario())


def test_without_an_event_loop(shop: Shop) -> None:
    with shop.app as app:
        with app.workflow("import") as flow:
            flow.add(shop.fetch.bind("a"))
        handle = app.workflow_handle_sync(flow.handle_sync.handle)
        assert (handle.state(), handle.progress()) == ("running", {"queued": 1})
        assert (handle.cancel(), handle.wait(apps.SECONDS)) == (True, "cancelled")


async def add_one(flow: Workflow, shop: Shop) -> None:
    async with flow:
        flow.add(shop.fetch.bind("a"))


def test_what_servers_and_protocols_refuse(server: serving.ServerProcess, shop: Shop) -> None:
    async def scenario() -> None:
        async with shop.app:
            with pytest.raises(RefusedError, match="200"):
                await add_one(shop.app.workflow("n" * 201), shop)
        other = Shop("other", url_of(server, "periodic"))
        async with other.app:
            with pytest.raises(UnsupportedError, match="periodic does not support jobs that wait for other jobs"):
                await add_one(other.app.workflow("import"), other)

    run(scenario())
