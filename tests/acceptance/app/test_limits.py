"""Limits and partitions of tasks, kept by a real server."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from geartrain.app import App
from geartrain.errors import UnsupportedError
from tests.support import apps, serving


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


async def limits_of(app: App, task: Any) -> tuple[dict[str, Any], list[str]]:
    """The limits that count, and those of them that an operator has set."""
    view = await apps.ask(app, "function", name=task.name)
    return {name: value for name, value in view["running_limits"].items() if value is not None}, view["limits_set"]


def test_worker_declares_limits(app: App) -> None:
    declared = {"max_running": 3, "rate": "100/m", "burst": 20, "max_running_per_partition": 1}

    @app.task(**declared)
    async def fetch() -> None: ...

    @app.task(max_running=1)
    async def other() -> None: ...

    async def scenario() -> None:
        async with apps.working(app):
            assert await limits_of(app, fetch) == (declared, [])
            assert await limits_of(app, other) == ({"max_running": 1}, [])
            await apps.ask(app, "limit_running", function=fetch.name, max_running=5)
        other.limits = other.limits._replace(max_running=None)  # it is removed from the code
        async with apps.working(app):
            assert await limits_of(app, fetch) == ({**declared, "max_running": 5}, ["max_running"])
            assert await limits_of(app, other) == ({}, [])

    run(scenario())


def test_limit_is_over_all_workers(app: App) -> None:
    running = most = ended = 0
    full, all_ended, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @app.task(partition="{tenant}", max_running=3, max_running_per_partition=2)
    async def fetch(tenant: str) -> None:
        nonlocal running, most, ended
        running += 1
        most = max(most, running)
        if running == 3:
            full.set()
        await go_on.wait()
        running -= 1
        ended += 1
        if ended == 9:
            all_ended.set()

    async def scenario() -> None:
        async with apps.working(app), apps.working(app):
            try:
                await app.submit_many(fetch.bind(tenant) for tenant in "aaaaaaabc")
                await full.wait()
                jobs = (await apps.ask(app, "jobs", function=fetch.name))["items"]
                partitions = [job["partition"] for job in jobs if job["state"] == "running"]
                assert len(partitions) == 3
                assert partitions.count("a") <= 2
                reasons = {job["waits_for"] for job in jobs if job["state"] == "queued"}
                assert reasons == {"one of 3 running jobs to end (max_running)"}
            finally:
                go_on.set()
            await all_ended.wait()
        assert most == 3

    run(scenario())


def test_partitions_of_calls(app: App, server: serving.ServerProcess) -> None:
    @app.task(partition="{tenant}")
    async def fetch(tenant: str) -> str:
        return tenant

    async def scenario() -> None:
        async with apps.working(app):
            with pytest.raises(UnsupportedError, match="over gearman only a background job can have a partition"):
                await fetch.call("acme")
            handle = await fetch.submit("acme")
            assert await handle.result(apps.SECONDS) == "acme"
        app.urls = (next(url for url in server.urls if url.startswith("http:")),)
        async with apps.working(app):
            assert await fetch.call("acme") == "acme"

    run(scenario())


def test_share_of_the_slots(app: App) -> None:
    running = 0
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.task(max_share=0.5)
    async def slow() -> None:
        nonlocal running
        running += 1
        if running == 5:
            begun.set()
        await go_on.wait()

    @app.task
    async def fast() -> int:
        return running

    async def scenario() -> None:
        async with apps.working(app, concurrency=10):
            try:
                await app.submit_many(slow.bind() for _ in range(20))
                await begun.wait()
                calls = [asyncio.create_task(fast.call()) for _ in range(100)]
                assert await asyncio.gather(*calls) == [5] * 100
            finally:
                go_on.set()

    run(scenario())


@pytest.mark.peer("gearmand")
def test_server_without_limits(caplog: pytest.LogCaptureFixture) -> None:
    with serving.gearmand() as gearmand:
        app = App("shop", gearmand.url)

        @app.task(max_running=1)
        async def greet() -> str:
            return "Hello"

        async def scenario() -> None:
            async with apps.working(app):
                assert await greet.call() == "Hello"

        run(scenario())
        warnings = [record.getMessage() for record in caplog.records if "limits" in record.getMessage()]
        assert warnings == [f"server has no limits: {gearmand.url}; those of app shop do not hold there"]


def test_server_that_refuses_limits(caplog: pytest.LogCaptureFixture) -> None:
    door = f"gearman://{serving.HOST}:0?may=submit,read"
    with serving.serve("--store", "memory", "--listen", door) as server:
        app = App("shop", server.url)

        @app.task(max_running=1)
        async def greet() -> None: ...

        @app.task
        async def other() -> None: ...

        async def scenario() -> None:
            async with apps.working(app):
                pass

        run(scenario())
        warnings = [record.getMessage() for record in caplog.records if "refused limits" in record.getMessage()]
        assert len(warnings) == 1
        assert warnings[0].startswith(f"server refused limits: {server.url}, app shop: ")
