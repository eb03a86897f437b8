"""Claims and the lease of a worker, with a real engine and loop."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from geartrain.doors.http.worker import HttpWorker
from geartrain.engine.engine import Engine
from geartrain.model import JobState
from geartrain.runtime.tick import TickLoop


class Scene:
    """A worker with an engine and a tick loop; `expired` is done when its lease has expired."""

    def __init__(self, lease: float = 60.0) -> None:
        self.engine = Engine()
        self.tick_loop = TickLoop(asyncio.get_running_loop(), self.engine, lambda: 1.0)
        self.expired: asyncio.Future[HttpWorker] = asyncio.get_running_loop().create_future()
        self.worker = HttpWorker(self.tick_loop, b"", lease, self.expired.set_result)
        self.engine.register(self.worker, b"f")


def run(check: Coroutine[Any, Any, None]) -> None:
    asyncio.run(check)


def test_a_claim_gets_a_queued_job() -> None:
    async def check() -> None:
        scene = Scene()
        job = scene.engine.submit(b"f", background=True)
        assert scene.worker.claim().result() is job
        scene.worker.remove()

    run(check())


def test_claims_are_served_in_order() -> None:
    async def check() -> None:
        scene = Scene()
        first, second = scene.worker.claim(), scene.worker.claim()
        job = scene.engine.submit(b"f", background=True)
        assert first.result() is job
        assert not second.done()
        assert scene.worker.idle
        scene.worker.remove()
        assert second.cancelled()

    run(check())


def test_a_claim_that_is_withdrawn_takes_no_job() -> None:
    async def check() -> None:
        scene = Scene()
        claim = scene.worker.claim()
        scene.worker.withdraw(claim)
        assert not scene.worker.idle
        assert scene.engine.submit(b"f", background=True).state is JobState.QUEUED
        scene.worker.remove()

    run(check())


def test_a_job_of_a_withdrawn_claim_returns_to_its_queue_uncounted() -> None:
    async def check() -> None:
        scene = Scene()
        claim = scene.worker.claim()
        job = scene.engine.submit(b"f", background=True)
        assert claim.done()
        scene.worker.withdraw(claim)
        assert (job.state, job.attempts) == (JobState.QUEUED, 0)
        scene.worker.remove()

    run(check())


def test_jobs_of_a_removed_worker_return_to_their_queues() -> None:
    async def check() -> None:
        scene = Scene()
        job = scene.engine.submit(b"f", background=True)
        scene.worker.claim()
        scene.worker.remove()
        assert (job.state, job.attempts) == (JobState.QUEUED, 1)
        scene.worker.renew()  # a request that was under way: it does not come back by that

    run(check())


def test_the_lease_expires_but_not_while_a_claim_waits() -> None:
    async def check() -> None:
        scene = Scene(lease=0.05)
        claim = scene.worker.claim()
        scene.worker._check_lease()  # its time is up, but it waits
        assert not scene.expired.done()
        scene.worker.withdraw(claim)
        assert await asyncio.wait_for(scene.expired, 10) is scene.worker
        scene.worker.remove()

    run(check())
