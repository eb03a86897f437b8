"""A worker that is killed between any two of its commands takes no job with it.

A proxy between the worker and a real Redis kills it when Redis has carried out a command and the worker does not know
it yet. A first worker runs through undisturbed and shows which commands there are; then for each of them a worker of
its own is killed, all at the same time, and one other worker finishes what they have left behind.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from geartrain.client import gearmonkey
from tests.acceptance.gearmonkey import plain
from tests.support import process, redis_server
from tests.support.peer import until
from tests.support.redis_proxy import RedisProxy

pytestmark = pytest.mark.peer("redis-server")

LEASE = 1.5
ROOT = Path(__file__).parents[3]
KINDS = ["sync", "aio", "link"]  # of workers: the library for GearMonkey alone, and the general one
QUEUES = 3  # that a worker of one function waits at


@pytest.fixture(scope="module")
def redis() -> Iterator[redis_server.RedisProcess]:
    with redis_server.serve() as running:
        yield running


@pytest.fixture(scope="module")
def victims(tmp_path_factory: pytest.TempPathFactory) -> Iterator[process.Process]:
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.acceptance.gearmonkey import victims"
    running = process.Process([sys.executable, "-c", script], tmp_path_factory.mktemp("victims"), stdin=True)
    yield running
    running.kill()


class Victim(NamedTuple):
    """A worker, and where it can be killed."""

    function: str
    proxy: RedisProxy
    pid: int

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


MakeVictim = Callable[[str, int], Victim]


@pytest.fixture
def make_victim(
    redis: redis_server.RedisProcess, victims: process.Process, kind: str
) -> Iterator[Callable[[str], Victim]]:
    made: list[Victim] = []
    with contextlib.ExitStack() as stack:

        def make(function: str, strike_after: int = -1) -> Victim:
            proxy = stack.enter_context(RedisProxy(redis.port))
            pid: futures.Future[int] = futures.Future()  # its first command may be here before its number is
            if strike_after >= 0:
                proxy.strike_after(strike_after, lambda: os.kill(pid.result(process.PATIENCE), signal.SIGKILL))
            known = len(victims.lines)
            victims.write(f"{kind} {proxy.url} {function} {LEASE}\n".encode())
            victims.wait_until(lambda lines: len(lines) > known, "the number of a process")
            pid.set_result(int(victims.lines[known]))
            made.append(Victim(function, proxy, pid.result()))
            return made[-1]

        yield make
        for victim in made:
            victim.kill()


def finish_all(redis: redis_server.RedisProcess, jobs: dict[str, int]) -> dict[str, bytes | None]:
    """Let another worker do what is left to do; what came of each function's job."""
    with gearmonkey.Client(redis.url) as client, gearmonkey.Worker(redis.url, bytes.upper, lease=LEASE) as other:
        for function in jobs:
            other.accept(function)
        deadline = time.monotonic() + 20
        while not all(client.get(*job).finished for job in jobs.items()):
            assert time.monotonic() < deadline, f"not finished: {[client.get(*job) for job in jobs.items()]}"
            other.run_one(0.1)
        return {function: client.get(function, number).output for function, number in jobs.items()}


def assert_nothing_is_left(raw: Any, function: str) -> None:
    assert not raw.keys(f"queue:{function}:*")
    assert not raw.keys(f"geartrain:taken:{function}")
    assert not raw.keys(f"geartrain:popped:{function}:*")


@pytest.mark.parametrize("kind", KINDS)
def test_job_that_was_there_before_the_worker(
    redis: redis_server.RedisProcess, make_victim: MakeVictim, function: str
) -> None:
    with gearmonkey.Client(redis.url) as client, plain.connect(redis.port) as raw:
        steps = _undisturbed(client, make_victim, function)
        jobs = {f"{function}.{step}": client.run(f"{function}.{step}", b"abc") for step in range(len(steps))}
        victims = [make_victim(name, step) for step, name in enumerate(jobs)]
        struck = [victim.proxy.wait_until_struck() for victim in victims]
        assert {"SCRIPT LOAD", "INFO", "EVALSHA"} <= set(struck)
        outputs = finish_all(redis, jobs)
        assert set(outputs.values()) <= {b"ABC", b"ABC by a victim"}
        assert b"ABC" in outputs.values()
        for name in jobs:
            assert_nothing_is_left(raw, name)


def _undisturbed(client: gearmonkey.Client, make_victim: MakeVictim, function: str) -> list[str]:
    """What a worker says to do a job that is there; the second one need not load its scripts."""
    for name in (f"{function}.first", f"{function}.second"):
        number = client.run(name, b"abc")
        victim = make_victim(name, -1)
        until(lambda name=name, number=number: client.get(name, number).finished, "the job is done")  # type: ignore[misc]
        victim.kill()
    steps = victim.proxy.answered
    # After its job it waits for the next.
    return steps[: steps.index("BRPOPLPUSH")] if "BRPOPLPUSH" in steps else steps


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("priority", ["high", "low"])
def test_job_that_a_worker_waits_for(
    redis: redis_server.RedisProcess, make_victim: MakeVictim, function: str, priority: str
) -> None:
    """The answer to the pop itself, the waits that are called off, the taking, the finishing, and the wait after it."""
    steps = 1 + (QUEUES - 1) * 2 + 5  # under load a wait is called off more than once
    jobs: dict[str, int] = {}
    with gearmonkey.Client(redis.url) as client, plain.connect(redis.port) as raw:
        victims = [make_victim(f"{function}.{step}", -1) for step in range(steps)]
        for step, victim in enumerate(victims):
            victim.proxy.wait_until_asked("BRPOPLPUSH", QUEUES)
            # The first strike is for the pop; the last ones may need a renewal to happen at all.
            victim.proxy.strike_after(step, victim.kill, count_renewals=step > 0)
            jobs[victim.function] = client.run(victim.function, b"abc", priority)
        struck = [victim.proxy.wait_until_struck() for victim in victims]
        assert struck[0] == "BRPOPLPUSH"
        assert {"CLIENT UNBLOCK", "EVALSHA"} <= set(struck)
        # This is where a job that was popped with BRPOP would be lost: its worker never heard of it.
        first = victims[0].function
        assert raw.lrange(f"geartrain:popped:{first}:{priority}", 0, -1) == [b"%d" % jobs[first]]
        assert client.get(first, jobs[first]).status == "idle"
        outputs = finish_all(redis, jobs)
        assert outputs[first] == b"ABC"
        assert set(outputs.values()) <= {b"ABC", b"ABC by a victim"}
        for name in jobs:
            assert_nothing_is_left(raw, name)


@pytest.mark.parametrize("kind", ["sync"])
def test_workers_that_were_killed_are_not_counted(
    redis: redis_server.RedisProcess, make_victim: MakeVictim, function: str
) -> None:
    with plain.connect(redis.port) as raw, gearmonkey.Worker(redis.url, lease=LEASE) as other:
        victim = make_victim(function, -1)
        victim.proxy.wait_until_asked("BRPOPLPUSH", QUEUES)
        victim.kill()
        other.accept(function)
        assert not other.run_one(0.01)
        until(lambda: raw.get(f"count:{function}") == b"1", "only the one that lives is counted")
