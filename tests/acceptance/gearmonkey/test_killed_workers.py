"""A worker that is killed between any two of its commands takes no job with it.

A proxy between the worker and a real Redis kills it when Redis has carried out a command and the worker does not know
it yet. Many workers run at the same time, each is killed after another number of commands, and one worker more finishes
their jobs. Which command comes at which place depends on timing: where a command has killed no worker in this way, one
more worker is killed after that command.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from geartrain.client import gearmonkey
from tests.acceptance.gearmonkey import redis_py_peer
from tests.support import process, redis_server
from tests.support.peer import until
from tests.support.redis_proxy import REGISTER, RENEWALS, RedisProxy

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
def spawner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[process.Process]:
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.acceptance.gearmonkey import killed_worker"
    running = process.Process([sys.executable, "-c", script], tmp_path_factory.mktemp("workers"), stdin=True)
    yield running
    running.kill()


class KilledWorker(NamedTuple):
    """A worker in a process of its own, and the proxy that kills it."""

    function: str
    proxy: RedisProxy
    pidfd: int  # a process number may belong to another process after the worker's end

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)


class Jobs:
    """The jobs of a test, one for each function."""

    def __init__(self, client: gearmonkey.Client) -> None:
        self.client = client
        self.numbers: dict[str, int] = {}

    def submit(self, function: str, priority: str = "normal") -> int:
        self.numbers[function] = self.client.run(function, b"abc", priority)
        return self.numbers[function]


class MakeWorker(Protocol):
    def __call__(self, function: str, kill_after: int | None = None, kill_on: str = "") -> KilledWorker: ...


@pytest.fixture
def make_worker(redis: redis_server.RedisProcess, spawner: process.Process, kind: str) -> Iterator[MakeWorker]:
    made: list[KilledWorker] = []
    with contextlib.ExitStack() as stack:

        def make(function: str, kill_after: int | None = None, kill_on: str = "") -> KilledWorker:
            proxy = stack.enter_context(RedisProxy(redis.port))
            started: futures.Future[KilledWorker] = futures.Future()  # its first command may be here before its number

            def kill() -> None:
                started.result(process.PATIENCE).kill()

            if kill_on:
                proxy.strike_on(kill_on, kill)
            elif kill_after is not None:
                proxy.strike_after(kill_after, kill)
            known = len(spawner.lines)
            spawner.write(f"{kind} {proxy.url} {function} {LEASE}\n".encode())
            spawner.wait_until(lambda lines: len(lines) > known, "the number of a process")
            worker = KilledWorker(function, proxy, os.pidfd_open(int(spawner.lines[known])))
            stack.callback(os.close, worker.pidfd)
            made.append(worker)
            started.set_result(worker)
            return worker

        yield make
        for worker in made:
            worker.kill()


def finish_all(redis: redis_server.RedisProcess, jobs: dict[str, int]) -> dict[str, bytes | None]:
    """Let another worker do what is left to do; the output of each function's job."""
    with gearmonkey.Client(redis.url) as client, gearmonkey.Worker(redis.url, bytes.upper, lease=LEASE) as other:
        for function in jobs:
            other.accept(function)
        deadline = time.monotonic() + process.PATIENCE
        while not all(client.get(*job).finished for job in jobs.items()):
            assert time.monotonic() < deadline, f"not finished: {[client.get(*job) for job in jobs.items()]}"
            other.run_one(0.1)
        return {function: client.get(function, number).output for function, number in jobs.items()}


def assert_nothing_is_lost(redis: redis_server.RedisProcess, raw: Any, jobs: dict[str, int]) -> dict[str, bytes | None]:
    outputs = finish_all(redis, jobs)
    assert set(outputs.values()) <= {b"ABC", b"ABC by a killed worker"}
    for function in jobs:
        assert not raw.keys(f"queue:{function}:*")
        assert not raw.keys(f"geartrain:taken:{function}")
        assert not raw.keys(f"geartrain:popped:{function}:*")
    return outputs


def kill_on_every_command(
    workers: list[KilledWorker], commands: set[str], more: Callable[[str], KilledWorker], jobs: Jobs
) -> None:
    """Wait for the death of the workers; then kill one more on each command that none of them died of.

    A command that this worker does not make depends on timing, as renewals do, and cannot be asked for.
    """
    killing = {worker.proxy.wait_until_struck() for worker in workers}
    occurred = commands.union(*(worker.proxy.answered_since_armed() for worker in workers))
    for command in occurred - killing - RENEWALS:
        worker = more(command)
        if not survived(worker, jobs):
            assert worker.proxy.wait_until_struck() == command


def survived(worker: KilledWorker, jobs: Jobs) -> bool:
    """Whether the worker has done its job and renewed its lease afterwards, without being killed."""
    proxy = worker.proxy
    until(lambda: proxy.struck or jobs.client.get(worker.function, jobs.numbers[worker.function]).finished, "an end")
    renewals = proxy.answered.count(REGISTER)
    until(lambda: proxy.struck or proxy.answered.count(REGISTER) >= renewals + 2, "a renewal after the job")
    return not proxy.struck


@pytest.mark.parametrize("kind", KINDS)
def test_job_that_was_there_before_the_worker(
    redis: redis_server.RedisProcess, make_worker: MakeWorker, function: str
) -> None:
    with gearmonkey.Client(redis.url) as client, redis_py_peer.connect(redis.port) as raw:
        jobs = Jobs(client)
        commands = _undisturbed(client, make_worker, function)

        def worker_with_a_job(kill_after: int | None = None, kill_on: str = "") -> KilledWorker:
            name = f"{function}.{len(jobs.numbers)}"
            jobs.submit(name)
            return make_worker(name, kill_after, kill_on)

        workers = [worker_with_a_job(kill_after=place) for place in range(len(commands))]
        kill_on_every_command(workers, set(commands), lambda command: worker_with_a_job(kill_on=command), jobs)
        assert b"ABC" in assert_nothing_is_lost(redis, raw, jobs.numbers).values()


def _undisturbed(client: gearmonkey.Client, make_worker: MakeWorker, function: str) -> list[str]:
    """The commands of a worker that does a job; the second one need not load its scripts."""
    for name in (f"{function}.first", f"{function}.second"):
        number = client.run(name, b"abc")
        worker = make_worker(name)
        until(lambda name=name, number=number: client.get(name, number).finished, "the job is done")  # type: ignore[misc]
        worker.kill()
    commands = worker.proxy.answered
    # After its job it waits for the next.
    return commands[: commands.index("BRPOPLPUSH")] if "BRPOPLPUSH" in commands else commands


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("priority", ["high", "low"])
def test_job_that_a_worker_waits_for(
    redis: redis_server.RedisProcess, make_worker: MakeWorker, function: str, priority: str
) -> None:
    """The answer to the pop itself, the waits that are called off, the taking, the finishing, and the wait after it."""
    places = 1 + (QUEUES - 1) * 2 + 5  # under load a wait is called off more than once
    with gearmonkey.Client(redis.url) as client, redis_py_peer.connect(redis.port) as raw:
        jobs = Jobs(client)

        def one_more(command: str) -> KilledWorker:
            worker = make_worker(f"{function}.{len(jobs.numbers)}")
            worker.proxy.wait_until_asked("BRPOPLPUSH", QUEUES)
            worker.proxy.strike_on(command, worker.kill)
            jobs.submit(worker.function, priority)
            return worker

        workers = [make_worker(f"{function}.{place}") for place in range(places)]
        for place, worker in enumerate(workers):
            worker.proxy.wait_until_asked("BRPOPLPUSH", QUEUES)
            # The first dies of the pop; the last ones may need a renewal to make enough commands.
            worker.proxy.strike_after(place, worker.kill, count_renewals=place > 0)
            jobs.submit(worker.function, priority)
        assert workers[0].proxy.wait_until_struck() == "BRPOPLPUSH"
        # This is where a job that was popped with BRPOP would be lost: its worker never heard of it.
        first = workers[0].function
        assert raw.lrange(f"geartrain:popped:{first}:{priority}", 0, -1) == [b"%d" % jobs.numbers[first]]
        assert client.get(first, jobs.numbers[first]).status == "idle"
        kill_on_every_command(workers, set(), one_more, jobs)
        assert assert_nothing_is_lost(redis, raw, jobs.numbers)[first] == b"ABC"


@pytest.mark.parametrize("kind", ["sync"])
def test_workers_that_were_killed_are_not_counted(
    redis: redis_server.RedisProcess, make_worker: MakeWorker, function: str
) -> None:
    with redis_py_peer.connect(redis.port) as raw, gearmonkey.Worker(redis.url, lease=LEASE) as other:
        worker = make_worker(function)
        worker.proxy.wait_until_asked("BRPOPLPUSH", QUEUES)
        worker.kill()
        other.accept(function)
        assert not other.run_one(0.01)
        until(lambda: raw.get(f"count:{function}") == b"1", "only the one that lives is counted")
