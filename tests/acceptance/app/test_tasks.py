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
from geartrain.errors import JobFailedError, JobTimeoutError, UnsupportedError
from tests.support import apps, serving


def go(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def test_call_and_submit(app: App) -> None:
    @app.task
    async def add(a: int, b: int = 1) -> int:
        return a + b

    async def story() -> None:
        async with apps.working(app):
            assert await add.call(1, b=2) == 3
            handle = await add.submit(4)
            assert handle.handle.startswith("H:")
            assert await handle.result(apps.SECONDS) == 5

    go(story())


def test_types_survive_the_way_there_and_back(app: App) -> None:
    @app.task
    async def swap(pair: tuple[int, bytes]) -> dict[int, bytes]:
        return {pair[0]: pair[1]}

    async def story() -> None:
        async with apps.working(app):
            assert await swap.call((1, b"\xff")) == {1: b"\xff"}

    go(story())


@pytest.mark.parametrize("codec", ["msgpack", "cbor"])
def test_other_codecs(app: App, codec: str) -> None:
    @app.task(codec=codec)
    async def echo(data: bytes) -> bytes:
        return data

    async def story() -> None:
        async with apps.working(app):
            assert await echo.call(b"\x00\xff") == b"\x00\xff"
            assert await (await echo.submit(b"\xfe")).result(apps.SECONDS) == b"\xfe"

    go(story())


def test_many_at_once(app: App) -> None:
    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async def story() -> None:
        async with apps.working(app):
            handles = await app.submit_many(double.bind(number) for number in range(300))
            assert len({handle.handle for handle in handles}) == 300
            assert [await handle.result(apps.SECONDS) for handle in handles[::100]] == [0, 200, 400]
            calls = await asyncio.gather(*(double.call(number) for number in range(100)))
            assert calls == [2 * number for number in range(100)]

    go(story())


def test_plain_functions_run_beside_each_other(app: App) -> None:
    meeting = threading.Barrier(3)

    @app.task
    def meet() -> bool:
        meeting.wait(apps.SECONDS)
        return threading.current_thread() is threading.main_thread()

    async def story() -> None:
        async with apps.working(app, concurrency=3):
            assert await asyncio.gather(meet.call(), meet.call(), meet.call()) == [False] * 3

    go(story())


def test_what_a_task_says_while_it_runs(app: App) -> None:
    @app.task
    def steps() -> str:
        running = current_task()
        running.progress(1, 2)
        running.data("part")
        running.warn("careful")
        return "done"

    async def story() -> None:
        async with apps.working(app):
            events = [event async for event in (await steps.start()).events()]
            assert events == [Progressed(1, 2), Data(b"part"), Warned(b"careful"), Completed(b'"done"')]

    go(story())


def test_equal_keys_are_one_job(app: App) -> None:
    @app.task(unique="user-{user}")
    async def sync(user: int) -> None: ...

    async def story() -> None:
        async with app:
            first, second, other = await sync.submit(1), await sync.submit(1), await sync.submit(2)
            assert first.handle == second.handle != other.handle

    go(story())


def test_a_delayed_task_waits_on_the_server(app: App) -> None:
    @app.task
    async def later() -> None: ...

    async def story() -> None:
        async with apps.working(app):
            handle = await later.with_options(delay=3600).submit()
            assert (await apps.ask(app, "job", handle=handle.handle))["state"] == "scheduled"
            with pytest.raises(JobTimeoutError):
                await handle.result(0.05)
            assert await handle.cancel()

    go(story())


def test_what_gearman_cannot_say_is_an_error_at_the_call(app: App) -> None:
    @app.task(priority="high")
    async def later() -> None: ...

    async def story() -> None:
        async with app:
            with pytest.raises(UnsupportedError, match="no priority for a job that runs at a given time"):
                await later.with_options(delay=60).submit()

    go(story())


def test_a_failure_is_heard(app: App) -> None:
    @app.task
    async def wrong() -> None:
        raise ValueError("no such user")

    async def story() -> None:
        async with apps.working(app):
            with pytest.raises(JobFailedError, match="ValueError: no such user"):
                await wrong.call()
            with pytest.raises(JobFailedError, match="ValueError: no such user"):
                await (await wrong.submit()).result(apps.SECONDS)

    go(story())


def test_a_payload_that_does_not_fit_is_dead_and_the_worker_lives(app: App) -> None:
    @app.task(retries=5)
    async def double(number: int) -> int:
        return 2 * number

    async def story() -> None:
        async with apps.working(app):
            handle = await double.submit("two")  # type: ignore[arg-type]
            with pytest.raises(JobFailedError, match=r"argument 'number' of .*double does not fit: Expected `int`"):
                await handle.result(apps.SECONDS)
            job = await apps.ask(app, "job", handle=handle.handle)
            assert (job["state"], job["attempts"]) == ("dead", 1)
            assert await double.call(2) == 4

    go(story())


@pytest.mark.peer("gearman")
def test_a_client_that_knows_nothing_of_tasks(app: App, server: serving.ServerProcess) -> None:
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

    async def story() -> None:
        async with apps.working(app):
            assert await asyncio.to_thread(gearman, reverse.name, "hello") == b"olleh"
            assert await asyncio.to_thread(gearman, add.name, '{"v":1,"args":[1,2]}') == b"3"

    go(story())


@pytest.mark.parametrize("door", range(6), ids=["gearman", "danga", "periodic", "gearmonkey", "memodb", "http"])
def test_by_every_protocol(app: App, server: serving.ServerProcess, door: int) -> None:
    app.urls = (server.urls[door],)
    tries: dict[int, int] = {}

    @app.task(retries=1, backoff=0)
    async def shaky(number: int) -> int:
        tries[number] = tries.get(number, 0) + 1
        if tries[number] == 1:
            raise ConnectionError("not yet")
        return 2 * number

    async def story() -> None:
        async with apps.working(app):
            assert await shaky.call(4) == 8
            if registry.capabilities(app.urls[0]).background:
                assert await (await shaky.submit(5)).result(apps.SECONDS) == 10
            else:
                with pytest.raises(UnsupportedError, match="background jobs"):
                    await shaky.submit(5)

    go(story())


@pytest.mark.parametrize("door", [0, 2, 3, 5], ids=["gearman", "periodic", "gearmonkey", "http"])
def test_dead_after_the_last_by_every_protocol_that_names_its_jobs(
    app: App, server: serving.ServerProcess, door: int
) -> None:
    app.urls = (server.urls[door],)

    @app.task(retries=1, backoff=0)
    async def hopeless() -> None:
        raise ValueError("no")

    async def story() -> None:
        async with apps.working(app):
            handle = await hopeless.submit()
            with pytest.raises(JobFailedError, match="ValueError: no"):
                await handle.result(apps.SECONDS)
            [job] = (await apps.ask(app, "jobs", function=hopeless.name, state="dead"))["items"]
            assert (job["attempts"], job["reason"]) == (2, "ValueError: no")

    go(story())
