"""geartrain.testing: apps in memory."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import pytest

from geartrain.app import App, Backoff, GiveUp, Retry, current_task
from geartrain.client.job_events import Completed, Failed, Progressed
from geartrain.errors import CodecError, ExpiredError, JobFailedError, JobTimeoutError, ResultGoneError
from geartrain.model import JobState
from geartrain.testing import InMemory


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def test_submission_is_recorded_and_run_by_drain(app: App) -> None:
    greeted: list[str] = []

    @app.task
    async def greet(name: str, greeting: str = "Hello") -> str:
        greeted.append(name)
        return f"{greeting}, {name}"

    async def scenario() -> None:
        async with InMemory(app) as memory:
            handle = await greet.submit("Ada")
            memory.assert_submitted(greet, "Ada")
            memory.assert_submitted(greet, name="Ada", greeting="Hello")
            assert greeted == []
            with pytest.raises(JobTimeoutError, match="drain"):
                await handle.result()
            assert [run.state for run in await memory.drain()] == [JobState.DONE]
            assert await handle.result() == "Hello, Ada"
            assert greeted == ["Ada"]

    run(scenario())


def test_assertion_messages(app: App) -> None:
    @app.task
    async def greet(name: str) -> None: ...

    @app.task
    async def other() -> None: ...

    async def scenario() -> None:
        async with InMemory(app) as memory:
            with pytest.raises(AssertionError, match="was not submitted; submissions of other tasks: 0"):
                memory.assert_submitted(greet, "Ada")
            memory.assert_not_submitted(greet)
            await greet.submit("Bob")
            with pytest.raises(AssertionError, match=r"shop.greet\(name='Ada'\) .* shop.greet\(name='Bob'\) queued"):
                memory.assert_submitted(greet, "Ada")
            with pytest.raises(AssertionError, match="was submitted"):
                memory.assert_not_submitted(greet)
            with pytest.raises(AssertionError, match="submissions of other tasks: 1"):
                memory.assert_submitted(other)

    run(scenario())


def test_call_runs_at_once(app: App) -> None:
    @app.task
    def double(number: int) -> int:
        return 2 * number

    async def scenario() -> None:
        async with InMemory(app):
            assert await double.call(4) == 8

    run(scenario())


def test_tasks_that_submit_tasks(app: App) -> None:
    @app.task
    async def countdown(number: int) -> None:
        if number:
            await countdown.submit(number - 1)

    async def scenario() -> None:
        async with InMemory(app) as memory:
            await countdown.submit(3)
            assert [run.arguments["number"] for run in await memory.drain()] == [3, 2, 1, 0]

    run(scenario())


def test_task_that_submits_itself_forever(app: App) -> None:
    @app.task
    async def again() -> None:
        await again.submit()

    async def scenario() -> None:
        async with InMemory(app) as memory:
            await again.submit()
            with pytest.raises(AssertionError, match="submit itself"):
                await memory.drain()

    run(scenario())


def test_retries_follow_the_clock(app: App) -> None:
    attempts: list[float] = []

    @app.task(retries=2, backoff=Backoff(base=10, factor=3))
    async def shaky() -> str:
        attempts.append(app.now())
        assert current_task().attempt == len(attempts)
        if len(attempts) < 3:
            raise ConnectionError("not yet")
        return "at last"

    async def scenario() -> None:
        async with InMemory(app, now=1000) as memory:
            handle = await shaky.submit()
            await memory.drain()
            assert memory.of(shaky)[0].state is JobState.SCHEDULED
            assert memory.of(shaky)[0].reason == "ConnectionError: not yet"
            memory.clock.advance(9)
            assert await memory.drain() == []
            memory.clock.advance(1)
            assert len(await memory.drain()) == 1
            await memory.drain(forward=True)
            assert attempts == [1000, 1010, 1040]
            assert await handle.result() == "at last"

    run(scenario())


@pytest.mark.parametrize("error", [GiveUp("no use"), ValueError("no use")])
def test_dead_after_the_last_attempt(app: App, error: Exception) -> None:
    @app.task(retries=1, backoff=1)
    async def hopeless() -> None:
        raise error

    async def scenario() -> None:
        async with InMemory(app) as memory:
            handle = await hopeless.submit()
            await memory.drain(forward=True)
            job = memory.of(hopeless)[0]
            assert job.state is JobState.DEAD
            assert job.tries == (1 if isinstance(error, GiveUp) else 2)
            with pytest.raises(JobFailedError, match="no use"):
                await handle.result()

    run(scenario())


def test_foreground_call_is_retried_and_then_fails(app: App) -> None:
    tries: list[int] = []

    @app.task(retries=1)
    async def hopeless() -> None:
        tries.append(1)
        raise Retry("later", after=500)

    async def scenario() -> None:
        async with InMemory(app) as memory:
            with pytest.raises(JobFailedError, match="later"):
                await hopeless.call()
            assert memory.of(hopeless)[0].state is JobState.FAILED
            assert len(tries) == 2

    run(scenario())


def test_delayed_task_waits_for_its_time(app: App) -> None:
    @app.task
    async def later() -> None: ...

    async def scenario() -> None:
        async with InMemory(app) as memory:
            await later.with_options(delay=60).submit()
            assert await memory.drain() == []
            memory.clock.advance(60)
            assert len(await memory.drain()) == 1

    run(scenario())


def test_higher_priority_first(app: App) -> None:
    @app.task
    async def work(name: str) -> None: ...

    async def scenario() -> None:
        async with InMemory(app) as memory:
            await work.with_options(priority="low").submit("last")
            await work.submit("second")
            await work.submit("third")
            await work.with_options(priority="high").submit("first")
            order = [run.arguments["name"] for run in await memory.drain()]
            assert order == ["first", "second", "third", "last"]

    run(scenario())


def test_equal_keys_are_one_unfinished_job(app: App) -> None:
    @app.task(unique="user-{user}")
    async def sync(user: int) -> None: ...

    async def scenario() -> None:
        async with InMemory(app) as memory:
            first, second = await sync.submit(1), await sync.submit(1)
            assert first.handle == second.handle
            assert len(await memory.drain()) == 1
            await sync.submit(1)
            assert len(await memory.drain()) == 1

    run(scenario())


def test_cancel(app: App) -> None:
    @app.task
    async def work() -> None: ...

    async def scenario() -> None:
        async with InMemory(app) as memory:
            handle = await work.submit()
            assert (await handle.status()).known
            assert await handle.cancel()
            assert not await handle.cancel()
            assert await memory.drain() == []
            assert not (await handle.status()).known
            with pytest.raises(JobFailedError, match="cancelled"):
                await handle.result()

    run(scenario())


def test_schedules_follow_the_clock(app: App) -> None:
    @app.cron("*/10 * * * *", unique=False)
    async def tidy() -> None: ...

    @app.cron("*/10 * * * *", name="once")
    @app.task
    async def alone() -> None: ...

    async def scenario() -> None:
        async with InMemory(app, now=600) as memory:
            assert await memory.drain() == []
            memory.clock.advance(599)
            assert await memory.drain() == []
            memory.clock.advance(1)
            assert [run.task.name for run in await memory.drain()] == ["shop.tidy", "shop.alone"]
            memory.clock.advance(1800)
            await memory.drain()
            assert len(memory.of(tidy)) == 4
            assert len(memory.of(alone)) == 2

    run(scenario())


def test_calls_expire(app: App) -> None:
    @app.task(expires=60)
    async def quote() -> str:
        return "100"

    @app.cron("@every 10m", unique=False)
    @app.task(expires=30)
    async def tidy() -> None: ...

    async def scenario() -> None:
        async with InMemory(app) as memory:
            late, taken = await quote.submit(), await quote.with_options(expires=timedelta(hours=1)).submit()
            memory.clock.advance(60)
            assert [job.state for job in memory.of(quote)] == [JobState.QUEUED, JobState.QUEUED]
            await memory.drain()
            assert [job.state for job in memory.of(quote)] == [JobState.EXPIRED, JobState.DONE]
            assert await taken.result() == "100"
            with pytest.raises(ExpiredError, match="no worker"):
                await late.result()
            memory.clock.advance(600)
            assert [job.task.name for job in await memory.drain()] == ["shop.tidy"]
        assert app.schedules["shop/tidy"].arguments()["expires"] == 30.0

    run(scenario())
    with pytest.raises(ValueError, match="before it may run"):
        quote.with_options(delay=90).bind()
    with pytest.raises(ValueError, match="above 0"):
        app.task(expires=0)


def test_updates_of_a_running_task(app: App) -> None:
    @app.task
    async def steps() -> int:
        current_task().progress(1, 2)
        return 7

    @app.task
    async def wrong() -> None:
        raise ValueError("no")

    async def scenario() -> None:
        async with InMemory(app):
            assert [event async for event in (await steps.start()).events()] == [Progressed(1, 2), Completed(b"7")]
            events = [event async for event in (await wrong.start()).events()]
            assert events == [Failed("ValueError: no", data=b"ValueError: no")]

    run(scenario())


def test_arguments_that_cannot_be_encoded(app: App) -> None:
    @app.task
    async def show(value: Any) -> None: ...

    async def scenario() -> None:
        async with InMemory(app):
            with pytest.raises(CodecError):
                await show.submit(object())

    run(scenario())


def test_app_is_restored_after_the_block(app: App) -> None:
    before = (app.now, app.connect, app.transports)
    with InMemory(app) as memory:
        assert app.now() == memory.clock.now
    assert (app.now, app.connect, app.transports) == before


def test_clock_cannot_go_back(app: App) -> None:
    with InMemory(app) as memory, pytest.raises(ValueError, match="cannot go back"):
        memory.clock.advance(-1)


def test_handles_by_id(app: App) -> None:
    @app.task(retries=1, backoff=60)
    async def work(number: int) -> int:
        current_task().progress(number, 10)
        if number < 0:
            raise ValueError("negative")
        return number

    async def scenario() -> None:
        async with InMemory(app) as memory:
            good, bad = await work.submit(5), await work.submit(-1)
            later = work.handle(good.handle)
            assert (await later.state(), await later.progress()) == ("queued", None)
            await memory.drain()
            assert (await later.state(), await later.progress(), await later.result()) == ("done", (5, 10), 5)
            assert await app.handle(good.handle).result() == 5
            assert await app.handle(bad.handle).state() == "scheduled"
            assert (await work.handle(bad.handle).traceback()).endswith("ValueError: negative")
            await memory.drain(forward=True)
            assert await work.handle(bad.handle).state() == "dead"
            assert await work.handle("memory:99").state() == "unknown"
            with pytest.raises(ResultGoneError):
                await work.handle("memory:99").result()

    run(scenario())


def test_cancelling_a_running_task(app: App) -> None:
    @app.task
    async def work() -> None:
        assert not current_task().revoked
        assert await app.handle(current_task().handle).cancel()
        assert current_task().revoked

    async def scenario() -> None:
        async with InMemory(app) as memory:
            handle = await work.submit()
            await memory.drain()
            assert await handle.state() == "cancelled"

    run(scenario())
