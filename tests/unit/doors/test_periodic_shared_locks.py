"""Locks of a cluster, with a store in memory that answers when a test lets it: whatever comes between, no lock has
more holders than its limit, and none is left behind."""

import asyncio
import itertools
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from geartrain.doors.periodic.shared_locks import LockRequest, SharedLocks
from geartrain.engine.engine import Engine, PollingWorker
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import RUNNING, SCHEDULED
from geartrain.errors import StoreError
from geartrain.model import LockChange, LockUse
from geartrain.runtime.tick import TickLoop

NOW = 1000.0
PATIENCE = 300.0
_ids = itertools.count(1, 1000)


class MemoryLocks:
    """What the store does, without servers that die."""

    def __init__(self) -> None:
        self.holders: dict[bytes, dict[int, int]] = {}  # limits by job
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.failures = 0  # of the next calls
        self.calls = 0

    async def change(self, changes: Sequence[LockChange]) -> list[bool]:
        await self.is_open.wait()
        self._fail()
        return [self._change(*change) for change in changes]

    async def uses(self, names: Sequence[bytes]) -> dict[bytes, LockUse]:
        await self.is_open.wait()
        self._fail()
        found = {name: self.holders[name] for name in names if self.holders.get(name)}
        return {name: LockUse(len(limits), max(limits.values())) for name, limits in found.items()}

    def _fail(self) -> None:
        self.calls += 1
        if self.failures:
            self.failures -= 1
            raise StoreError("not there")

    def _change(self, name: bytes, job: int, limit: int) -> bool:
        limits = self.holders.setdefault(name, {})
        if not limit:
            limits.pop(job, None)
        elif job in limits or len(limits) < max(limit, *limits.values(), 1):
            limits[job] = limit
        else:
            return False
        return True


class Server:
    """An engine, a worker that takes every job, and the locks."""

    def __init__(self, store: MemoryLocks, jobs: int = 2) -> None:
        self.engine = Engine(None, b"H:test", next(_ids))
        self.tick_loop = TickLoop(asyncio.get_running_loop(), self.engine, lambda: NOW)
        self.locks = SharedLocks(self.tick_loop, store)
        self.worker = PollingWorker("test")
        self.answers: list[bool] = []
        self.tick_loop.begin_tick()
        self.engine.register(self.worker, b"f")
        for number in range(jobs):
            self.engine.submit(b"f", b"%d" % number, background=True)
        self.claim()

    def claim(self) -> list[LiveJob]:
        claimed = []
        while (job := self.tick_loop.begin_tick().claim(self.worker)) is not None:
            claimed.append(job)
        return claimed

    @property
    def running(self) -> list[LiveJob]:
        return self.worker.running.jobs()

    def request(self, job: LiveJob, name: bytes = b"lock", limit: int = 1) -> None:
        self.tick_loop.begin_tick()
        self.locks.request(LockRequest(name, limit, self.worker, job, PATIENCE, self.answers.append))

    def complete(self, job: LiveJob) -> None:
        self.tick_loop.begin_tick().complete(self.worker, job, b"")
        self.locks.release_all(job)

    async def settle(self) -> None:
        """Until the store has made every change."""
        while self.locks._task is not None:
            await asyncio.sleep(0)

    async def ask(self, job: LiveJob, name: bytes = b"lock", limit: int = 1) -> bool:
        self.request(job, name, limit)
        await self.settle()
        return self.answers.pop()


async def one_and_two() -> tuple[MemoryLocks, Server, Server]:
    store = MemoryLocks()
    return store, Server(store), Server(store)


def test_a_lock_is_one_for_all_servers() -> None:
    async def run() -> None:
        _, one, two = await one_and_two()
        assert await one.ask(one.running[0])
        waiter = two.running[0]
        assert not await two.ask(waiter)
        assert waiter.state is SCHEDULED
        assert two.locks.waiting() == {b"f": 1}

    asyncio.run(run())


def test_the_next_job_runs_when_another_server_says_that_the_lock_is_free() -> None:
    async def run() -> None:
        _, one, two = await one_and_two()
        holder, waiter = one.running[0], two.running[0]
        assert await one.ask(holder)
        assert not await two.ask(waiter)
        two.locks.retry(b"lock")
        await two.settle()
        assert not two.claim(), "it is not free"
        one.locks.on_released = two.locks.retry
        one.complete(holder)
        await one.settle()
        await two.settle()
        assert two.claim() == [waiter]
        assert await two.ask(waiter)

    asyncio.run(run())


def test_as_many_jobs_run_as_the_lock_has_room_for() -> None:
    async def run() -> None:
        store = MemoryLocks()
        one, two = Server(store, 3), Server(store, 4)
        for job in one.running:
            assert await one.ask(job, limit=3)
        for job in two.running:
            assert not await two.ask(job, limit=3)
        for job in one.running[:2]:
            one.complete(job)
        await one.settle()
        two.locks.retry(b"lock")
        await two.settle()
        assert len(two.claim()) == 2

    asyncio.run(run())


def test_a_job_that_ends_before_its_request_is_decided_holds_nothing() -> None:
    async def run() -> None:
        store, one, _ = await one_and_two()
        store.is_open.clear()
        job = one.running[0]
        one.request(job)
        one.request(job, b"other")
        await asyncio.sleep(0)
        one.complete(job)
        store.is_open.set()
        await one.settle()
        assert one.answers == [True, True]
        assert store.holders == {b"lock": {}, b"other": {}}
        assert (one.locks._locks, one.locks._held, one.locks._requests) == ({}, {}, {})

    asyncio.run(run())


def test_a_lock_that_is_released_before_its_request_is_decided_is_free() -> None:
    async def run() -> None:
        store, one, _ = await one_and_two()
        job = one.running[0]
        one.request(job)
        one.locks.release(b"lock", job)
        await one.settle()
        assert one.answers == [True]
        assert store.holders == {b"lock": {}}
        assert one.locks._locks == {}

    asyncio.run(run())


def test_requests_wait_while_the_store_fails() -> None:
    async def run() -> None:
        store, one, _ = await one_and_two()
        store.failures = 1
        assert await one.ask(one.running[0])
        assert store.calls == 2

    asyncio.run(run())


def test_a_holder_that_asks_again_is_answered_at_once() -> None:
    async def run() -> None:
        store, one, _ = await one_and_two()
        assert await one.ask(one.running[0])
        one.request(one.running[0])
        assert one.answers == [True]
        assert store.calls == 1

    asyncio.run(run())


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["request", "request", "release", "done", "fail", "cancel", "retry", "hold", "go on"]),
        st.integers(0, 1),
        st.integers(0, 5),
        st.sampled_from([b"lock", b"lock", b"other"]),
    ),
    max_size=60,
)


@given(ACTIONS, st.sampled_from([1, 2]))
def test_at_random(actions: list[tuple[str, int, int, bytes]], limit: int) -> None:
    asyncio.run(_at_random(actions, limit))


async def _at_random(actions: list[tuple[str, int, int, bytes]], limit: int) -> None:
    store = MemoryLocks()
    servers = [Server(store, 3), Server(store, 3)]
    for action, at, place, name in actions:
        server = servers[at]
        if action == "hold":
            store.is_open.clear()
        elif action == "go on":
            store.is_open.set()
            for other in servers:
                await other.settle()
        elif action == "retry":
            server.locks.retry(name)
        elif server.running:
            act(server, action, server.running[place % len(server.running)], name, limit)
        await asyncio.sleep(0)
        check(servers, store, limit)
        for other in servers:
            other.claim()
    store.is_open.set()
    await finish(servers, limit)
    assert not any(store.holders.values())
    for server in servers:
        assert (server.locks._locks, server.locks._held, server.locks._requests) == ({}, {}, {})
        server.locks.close()


def act(server: Server, action: str, job: LiveJob, name: bytes, limit: int) -> None:
    engine = server.tick_loop.begin_tick()
    if action == "request":
        server.request(job, name, limit)
        return
    if action == "release":
        server.locks.release(name, job)
        return
    if action == "done":
        engine.complete(server.worker, job, b"")
    elif action == "fail":
        engine.fail(server.worker, job, retry=True)
    else:
        engine.cancel(job)
    server.locks.release_all(job)


def check(servers: list[Server], store: MemoryLocks, limit: int) -> None:
    for name, limits in store.holders.items():
        assert len(limits) <= limit
        for lock in (server.locks._locks.get(name) for server in servers):
            holders = lock.holders if lock is not None else set()
            assert {job.id for job in holders} <= limits.keys()
            assert all(job.state is RUNNING for job in holders), "a job that does not run holds a lock"


async def finish(servers: list[Server], limit: int) -> None:
    """Every job can be brought to its end."""
    for _ in range(100):
        for server in servers:
            await server.settle()
            for job in server.running:
                if await server.ask(job, b"lock", limit):
                    server.complete(job)
            await server.settle()
            server.tick_loop.begin_tick()
            server.locks._poll()
            await server.settle()
            server.engine.tick(server.engine.now + 4000.0)
            server.claim()
        if not any(server.engine.jobs for server in servers):
            return
    raise AssertionError("jobs are left")
