"""Limits and partitions of tasks: what a declaration may say, and an app in memory keeps them."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from geartrain.app import App
from geartrain.app.task_limits import TaskLimits
from geartrain.app.worker_options import WorkerOptions
from geartrain.testing import InMemory, Submitted


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def arguments_of(jobs: list[Submitted]) -> list[Any]:
    return [tuple(job.arguments.values()) for job in jobs]


def test_what_is_declared(app: App) -> None:
    @app.task(
        partition="{tenant}",
        partition_from_unique=":",
        max_running=10,
        max_running_per_partition=2,
        rate="100/m",
        burst=20,
        rate_per_partition="5/s",
        burst_per_partition=3,
        max_share=0.5,
    )
    def fetch(tenant: str) -> None: ...

    assert fetch.limits == TaskLimits(10, 2, "100/m", 20, "5/s", 3, ":")
    assert fetch.max_share == 0.5

    @app.task
    def other() -> None: ...

    assert other.limits.arguments() == {}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"max_running": -1}, "max_running must be 0 to 1,000,000, not -1"),
        ({"max_running": 1.5}, "max_running must be 0 to 1,000,000, not 1.5"),
        ({"max_running": True}, "max_running must be 0 to 1,000,000, not True"),
        ({"max_running_per_partition": 10**7}, "max_running_per_partition must be 0 to 1,000,000"),
        ({"rate": "fast"}, "rate: 'fast' is not a rate such as 5/s"),
        ({"rate": 5}, "rate is a text such as 100/m, not 5"),
        ({"rate": "0/s"}, "rate: a rate must be 1 to 1,000,000 jobs"),
        ({"rate_per_partition": "1/y"}, "rate_per_partition: '1/y' is not a rate"),
        ({"burst": 5}, "burst needs a rate"),
        ({"rate": "1/s", "burst": 0}, "burst must be 1 to 1,000,000, not 0"),
        ({"rate": "1/s", "burst_per_partition": 2}, "burst_per_partition needs a rate_per_partition"),
        ({"partition_from_unique": ""}, "partition_from_unique is what ends a partition"),
        ({"max_share": 0}, "max_share is a share of the worker's slots, above 0 and at most 1, not 0"),
        ({"max_share": 2}, "max_share is a share of the worker's slots"),
        ({"partition": "{tenat}"}, "partition '{tenat}': the function has no parameter 'tenat'"),
        ({"partition": "{tenant"}, "partition '{tenant': expected '}' before end of string"),
        ({"partition": 7}, "a partition is a text or a function, not 7"),
    ],
)
def test_mistakes_are_found_when_a_task_is_declared(app: App, options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match="^" + why.replace("{", r"\{").replace("}", r"\}")):

        @app.task(**options)
        def fetch(tenant: str) -> None: ...

    assert not app.tasks


def test_share_of_a_worker_is_checked() -> None:
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        WorkerOptions(max_share=0)


def test_partition_of_a_call(app: App) -> None:
    @app.task(partition="{tenant.name}-{number:03}")
    def fetch(tenant: Any, number: int = 1) -> None: ...

    class Tenant:
        name = "acme"

    def by_number(tenant: Any, number: int) -> bytes:
        return b"n%d" % number

    assert fetch.bind(Tenant(), 7).partition == b"acme-007"
    assert fetch.bind(Tenant()).partition == b"acme-001"
    assert fetch.options(partition=by_number).bind(None, 5).partition == b"n5"
    assert fetch.options(partition="").bind(None).partition == b""
    assert fetch.options(partition="fixed").bind(None).order().partition == b"fixed"
    long = fetch.options(partition="{number}").bind(None, 10**300).partition
    assert len(long) == 255, "the end of a long name is replaced by a hash"
    with pytest.raises(ValueError, match="has no parameter 'tenat'"):
        fetch.options(partition="{tenat}")


def test_partitions_take_turns(app: App) -> None:
    @app.task(partition="{tenant}")
    async def fetch(tenant: str, number: int) -> None: ...

    async def scenario() -> None:
        async with InMemory(app) as memory:
            for number in range(3):
                await fetch.submit("a", number)
            await fetch.submit("b", 0)
            await fetch.submit("b", 1)
            await fetch.options(partition="").submit("none", 0)
            await fetch.options(priority="high").submit("a", 9)
            assert arguments_of(await memory.drain()) == [
                ("a", 9), ("a", 0), ("b", 0), ("none", 0), ("a", 1), ("b", 1), ("a", 2),
            ]  # fmt: skip

    run(scenario())


def test_partitions_from_unique_keys(app: App) -> None:
    @app.task(unique="{tenant}:{number}", partition_from_unique=":")
    async def fetch(tenant: str, number: int) -> None: ...

    async def scenario() -> None:
        async with InMemory(app) as memory:
            for tenant, number in (("a", 0), ("a", 1), ("b", 0)):
                await fetch.submit(tenant, number)
            assert arguments_of(await memory.drain()) == [("a", 0), ("b", 0), ("a", 1)]

    run(scenario())


def test_rates(app: App) -> None:
    @app.task(partition="{tenant}", rate="60/m", burst=2, rate_per_partition="1/m")
    async def fetch(tenant: str, number: int) -> None: ...

    async def scenario() -> None:
        async with InMemory(app) as memory:
            for tenant, number in (("a", 0), ("a", 1), ("b", 0), ("c", 0)):
                await fetch.submit(tenant, number)
            assert arguments_of(await memory.drain()) == [("a", 0), ("b", 0)], "two at once, one of each partition"
            memory.clock.advance(1)
            assert arguments_of(await memory.drain()) == [("c", 0)]
            began = memory.clock.now
            assert arguments_of(await memory.drain(forward=True)) == [("a", 1)]
            assert memory.clock.now == began + 59
            await fetch.call("b", 1)
            await fetch.call("b", 2)
            assert memory.clock.now == began + 119, "a call lets the time pass"

    run(scenario())


@pytest.mark.parametrize("options", [{"max_running": 2}, {"max_running_per_partition": 2, "partition": "all"}])
def test_calls_at_the_same_time_wait_for_each_other(app: App, options: dict[str, Any]) -> None:
    running: list[int] = []
    most = 0
    go_on = asyncio.Event()

    @app.task(**options)
    async def fetch(number: int) -> None:
        nonlocal most
        running.append(number)
        most = max(most, len(running))
        if len(running) == 2:
            go_on.set()
        await go_on.wait()
        running.remove(number)

    async def scenario() -> None:
        async with InMemory(app) as memory:
            await asyncio.gather(*(fetch.call(number) for number in range(5)))
            assert [job.state.name for job in memory.of(fetch)] == ["DONE"] * 5
        assert most == 2

    run(scenario())


def test_task_that_waits_for_itself(app: App) -> None:
    @app.task(max_running=1)
    async def fetch(depth: int) -> None:
        if depth:
            await fetch.call(depth - 1)

    async def scenario() -> None:
        async with InMemory(app) as memory:
            await fetch.submit(1)
            await memory.drain()
            assert "waits for the end of the task that waits for it: see its max_running" in memory.submitted[0].trace

    run(scenario())
