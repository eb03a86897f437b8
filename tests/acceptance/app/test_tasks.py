"""Tasks from submission to result, through a real server."""

import asyncio
import shutil
import subprocess
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from geartrain.app import App, current_task
from geartrain.client.job_events import Completed, Data, Progressed, Warned
from geartrain.client.protocols import registry
from geartrain.errors import ExpiredError, JobFailedError, JobTimeoutError, UnsupportedError
from geartrain.failure_reasons import summary
from tests.support import apps, serving


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def test_call_and_submit(app: App) -> None:
    @app.task
    async def add(a: int, b: int = 1) -> int:
        return a + b

    async def scenario() -> None:
        async with apps.working(app):
            assert await add.call(1, b=2) == 3
            handle = await add.submit(4)
            assert handle.handle.startswith("H:")
            assert await handle.result(apps.SECONDS) == 5

    run(scenario())


def test_a_call_that_no_worker_got_in_time_has_expired(app: App) -> None:
    @app.task(expires=0.2)
    async def quote() -> int:
        return 100

    async def scenario() -> None:
        late = await quote.submit()
        with pytest.raises(ExpiredError):
            await late.result(apps.SECONDS)
        async with apps.working(app):
            assert await (await quote.with_options(expires=3600).submit()).result(apps.SECONDS) == 100

    run(scenario())


def test_types_survive_the_round_trip(app: App) -> None:
    @app.task
    async def swap(pair: tuple[int, bytes]) -> dict[int, bytes]:
        return {pair[0]: pair[1]}

    async def scenario() -> None:
        async with apps.working(app):
            assert await swap.call((1, b"\xff")) == {1: b"\xff"}

    run(scenario())


@pytest.mark.parametrize("codec", ["msgpack", "cbor"])
def test_other_codecs(app: App, codec: str) -> None:
    @app.task(codec=codec)
    async def echo(data: bytes) -> bytes:
        return data

    async def scenario() -> None:
        async with apps.working(app):
            assert await echo.call(b"\x00\xff") == b"\x00\xff"
            assert await (await echo.submit(b"\xfe")).result(apps.SECONDS) == b"\xfe"

    run(scenario())


def test_submit_many(app: App) -> None:
    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async def scenario() -> None:
        async with apps.working(app):
            handles = await app.submit_many(double.bind(number) for number in range(300))
            assert len({handle.handle for handle in handles}) == 300
            assert [await handle.result(apps.SECONDS) for handle in handles[::100]] == [0, 200, 400]
            calls = await asyncio.gather(*(double.call(number) for number in range(100)))
            assert calls == [2 * number for number in range(100)]

    run(scenario())


def test_plain_functions_run_concurrently(app: App) -> None:
    meeting = threading.Barrier(3)

    @app.task
    def meet() -> bool:
        meeting.wait(apps.SECONDS)
        return threading.current_thread() is threading.main_thread()

    async def scenario() -> None:
        async with apps.working(app, concurrency=3):
            assert await asyncio.gather(meet.call(), meet.call(), meet.call()) == [False] * 3

    run(scenario())


def test_updates_of_a_running_task(app: App) -> None:
    @app.task
    def steps() -> str:
        running = current_task()
        running.progress(1, 2)
        running.data("part")
        running.warn("careful")
        return "done"

    async def scenario() -> None:
        async with apps.working(app):
            events = [event async for event in (await steps.start()).events()]
            assert events == [Progressed(1, 2), Data(b"part"), Warned(b"careful"), Completed(b'"done"')]

    run(scenario())


def test_equal_keys_are_one_job(app: App) -> None:
    @app.task(unique="user-{user}")
    async def sync(user: int) -> None: ...

    async def scenario() -> None:
        async with app:
            first, second, other = await sync.submit(1), await sync.submit(1), await sync.submit(2)
            assert first.handle == second.handle != other.handle

    run(scenario())


def test_delayed_task_waits_on_the_server(app: App) -> None:
    @app.task
    async def later() -> None: ...

    async def scenario() -> None:
        async with apps.working(app):
            handle = await later.with_options(delay=3600).submit()
            assert (await apps.ask(app, "job", handle=handle.handle))["state"] == "scheduled"
            with pytest.raises(JobTimeoutError):
                await handle.result(0.05)
            assert await handle.cancel()

    run(scenario())


def test_unsupported_option_is_an_error_at_the_call(app: App) -> None:
    @app.task(priority="high")
    async def later() -> None: ...

    async def scenario() -> None:
        async with app:
            with pytest.raises(UnsupportedError, match="no priority for a job that runs at a given time"):
                await later.with_options(delay=60).submit()

    run(scenario())


def test_failure_reaches_the_client(app: App) -> None:
    @app.task
    async def wrong() -> None:
        raise ValueError("no such user")

    async def scenario() -> None:
        async with apps.working(app):
            with pytest.raises(JobFailedError, match="ValueError: no such user"):
                await wrong.call()
            with pytest.raises(JobFailedError, match="ValueError: no such user"):
                await (await wrong.submit()).result(apps.SECONDS)

    run(scenario())


def test_invalid_payload_is_dead_and_the_worker_continues(app: App) -> None:
    @app.task(retries=5)
    async def double(number: int) -> int:
        return 2 * number

    async def scenario() -> None:
        async with apps.working(app):
            handle = await double.submit("two")  # type: ignore[arg-type]
            with pytest.raises(JobFailedError, match=r"argument 'number' of .*double does not fit: Expected `int`"):
                await handle.result(apps.SECONDS)
            job = await apps.ask(app, "job", handle=handle.handle)
            assert (job["state"], job["attempts"]) == ("dead", 1)
            assert await double.call(2) == 4

    run(scenario())


@pytest.mark.peer("gearman")
def test_client_without_tasks(app: App, server: serving.ServerProcess) -> None:
    @app.task(name=f"{app.name}-reverse")
    async def reverse(text: str) -> str:
        return text[::-1]

    @app.task(name=f"{app.name}-add")
    async def add(a: int, b: int) -> int:
        return a + b

    program = shutil.which("gearman")
    assert program is not None

    def gearman(function: str, payload: str) -> bytes:
        command = [program, "-h", serving.HOST, "-p", str(server.port), "-f", function, payload]
        return subprocess.run(command, capture_output=True, check=True, timeout=apps.SECONDS).stdout

    async def scenario() -> None:
        async with apps.working(app):
            assert await asyncio.to_thread(gearman, reverse.name, "hello") == b"olleh"
            assert await asyncio.to_thread(gearman, add.name, '{"v":1,"args":[1,2]}') == b"3"

    run(scenario())


@pytest.mark.parametrize("door", range(6), ids=["gearman", "danga", "periodic", "gearmonkey", "memodb", "http"])
def test_every_protocol(app: App, server: serving.ServerProcess, door: int) -> None:
    app.urls = (server.urls[door],)
    tries: dict[int, int] = {}

    @app.task(retries=1, backoff=0)
    async def shaky(number: int) -> int:
        tries[number] = tries.get(number, 0) + 1
        if tries[number] == 1:
            raise ConnectionError("not yet")
        return 2 * number

    async def scenario() -> None:
        async with apps.working(app):
            assert await shaky.call(4) == 8
            if registry.capabilities(app.urls[0]).background:
                assert await (await shaky.submit(5)).result(apps.SECONDS) == 10
            else:
                with pytest.raises(UnsupportedError, match="background jobs"):
                    await shaky.submit(5)

    run(scenario())


@pytest.mark.parametrize("door", [0, 2, 3, 5], ids=["gearman", "periodic", "gearmonkey", "http"])
def test_dead_after_the_last_attempt_on_every_protocol_with_job_names(
    app: App, server: serving.ServerProcess, door: int
) -> None:
    app.urls = (server.urls[door],)

    @app.task(retries=1, backoff=0)
    async def hopeless() -> None:
        raise ValueError("no")

    async def scenario() -> None:
        async with apps.working(app):
            handle = await hopeless.submit()
            with pytest.raises(JobFailedError, match="ValueError: no"):
                await handle.result(apps.SECONDS)
            [job] = (await apps.ask(app, "jobs", function=hopeless.name, state="dead"))["items"]
            assert (job["attempts"], summary(job["reason"])) == (2, "ValueError: no")

    run(scenario())
