"""Failed attempts: retried, and dead after the last one; on Geartrain and on gearmand."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from geartrain.app import App, GiveUp, Retry, current_task
from geartrain.errors import JobFailedError, UnsupportedError
from geartrain.failure_reasons import summary
from tests.support import apps, serving


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


@pytest.mark.parametrize("background", [True, False], ids=["background", "foreground"])
def test_same_job_is_retried(app: App, background: bool) -> None:
    seen: list[tuple[str, int]] = []

    @app.task(retries=3, backoff=0)
    async def shaky() -> str:
        running = current_task()
        seen.append((running.handle, running.attempt))
        if len(seen) < 3:
            raise ConnectionError("not yet")
        return "at last"

    async def scenario() -> None:
        async with apps.working(app):
            handle = await (shaky.submit() if background else shaky.start())
            assert await handle.result(apps.SECONDS) == "at last"
            assert seen == [(handle.handle, 1), (handle.handle, 2), (handle.handle, 3)]

    run(scenario())


def test_dead_with_reason_after_the_last_attempt(app: App) -> None:
    healed = asyncio.Event()

    @app.task(retries=1, backoff=0)
    async def shaky() -> str:
        if not healed.is_set():
            raise ConnectionError("the shop is closed")
        return "open"

    async def scenario() -> None:
        async with apps.working(app):
            handle = await shaky.submit()
            with pytest.raises(JobFailedError, match="the shop is closed"):
                await handle.result(apps.SECONDS)
            job = await apps.ask(app, "job", handle=handle.handle)
            assert (job["state"], job["attempts"]) == ("dead", 2)
            assert summary(job["reason"]) == "ConnectionError: the shop is closed"
            assert await handle.traceback() == job["reason"]
            assert [line for line in job["reason"].splitlines() if "File" in line] == [
                f'  File "{__file__}", line {shaky.function.__code__.co_firstlineno + 3}, in shaky'
            ]
            healed.set()
            await apps.ask(app, "retry", handle=handle.handle)
            assert await handle.result(apps.SECONDS) == "open"

    run(scenario())


def test_foreground_call_fails_after_the_last_attempt(app: App) -> None:
    tries: list[int] = []

    @app.task(retries=2, backoff=0)
    async def hopeless() -> None:
        tries.append(1)
        raise ValueError("no")

    async def scenario() -> None:
        async with apps.working(app):
            with pytest.raises(JobFailedError, match="ValueError: no"):
                await hopeless.call()
            assert len(tries) == 3

    run(scenario())


def test_give_up_and_retry_after(app: App) -> None:
    @app.task(retries=5)
    async def closed() -> None:
        raise GiveUp("the account is closed")

    @app.task(retries=5)
    async def busy() -> None:
        raise Retry("too busy", after=3600)

    async def scenario() -> None:
        async with apps.working(app):
            dead = await closed.submit()
            with pytest.raises(JobFailedError, match="the account is closed"):
                await dead.result(apps.SECONDS)
            waiting = await busy.submit()
            while (job := await apps.ask(app, "job", handle=waiting.handle))["state"] != "scheduled":
                await asyncio.sleep(0.01)
            assert job["run_at"] - job["submitted_at"] > 3500

    run(scenario())


def test_timed_out_task_is_retried(app: App) -> None:
    tries: list[int] = []

    @app.task(retries=1, backoff=0, timeout=0.5)
    async def slow() -> str:
        tries.append(1)
        if len(tries) == 1:
            await asyncio.Event().wait()
        return "quick this time"

    async def scenario() -> None:
        async with apps.working(app):
            assert await (await slow.submit()).result(apps.SECONDS) == "quick this time"

    run(scenario())


def test_cancelled_job_is_not_retried(app: App) -> None:
    begun, go_on, over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @app.task(retries=5, backoff=0)
    async def stubborn() -> None:
        begun.set()
        await go_on.wait()
        over.set()
        raise ValueError("no")

    @app.task
    async def other() -> int:
        return 7

    async def scenario() -> None:
        async with apps.working(app, concurrency=1):
            handle = await stubborn.submit()
            await begun.wait()
            await apps.ask(app, "cancel", handle=handle.handle)
            begun.clear()
            go_on.set()
            assert await other.call() == 7
            assert (await apps.ask(app, "job", handle=handle.handle))["state"] == "cancelled"
            assert not begun.is_set()

    run(scenario())


@pytest.mark.peer("gearmand")
def test_retries_on_a_server_that_cannot_postpone(gearmand: serving.ServerProcess) -> None:
    """gearmand: a background call is submitted again, a foreground call is retried by the same worker."""
    app = App("plain", gearmand.url)
    seen: list[tuple[str, str, int]] = []
    finished = asyncio.Event()

    @app.task(retries=2, backoff=0)
    async def shaky(who: str) -> str:
        running = current_task()
        mine = [each for each in seen if each[0] == who]
        seen.append((who, running.id, running.attempt))
        if len(mine) < 2:
            raise ConnectionError("not yet")
        finished.set()
        return who

    @app.task(retries=1, backoff=0)
    async def hopeless() -> None:
        raise ValueError("no")

    async def scenario() -> None:
        async with apps.working(app):
            assert await shaky.call("waiting") == "waiting"
            finished.clear()
            handle = await shaky.submit("background")
            await finished.wait()
            assert [each[1:] for each in seen if each[0] == "background"] == [
                (handle.id, 1),
                (handle.id, 2),
                (handle.id, 3),
            ]
            with pytest.raises(JobFailedError, match="ValueError: no"):
                await hopeless.call()
            with pytest.raises(UnsupportedError, match="result of a background job"):
                await handle.result(1)

    run(scenario())
