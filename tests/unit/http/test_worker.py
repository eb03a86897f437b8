"""A worker's claims and its lease, with an engine and a loop of its own."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from geartrain.doors.http.worker import HttpWorker
from geartrain.engine.engine import Engine
from geartrain.model import JobState
from geartrain.runtime.tick import TickLoop


class Scene:
    """What a worker sees of the house, and who left."""

    def __init__(self, lease: float = 60.0) -> None:
        self.engine = Engine()
        self.tick_loop = TickLoop(asyncio.get_running_loop(), self.engine, lambda: 1.0)
        self.gone: asyncio.Future[HttpWorker] = asyncio.get_running_loop().create_future()
        self.worker = HttpWorker(self.tick_loop, b"", lease, self.gone.set_result)
        self.engine.register(self.worker, b"f")


def play(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scene)


def test_a_claim_gets_the_job_that_is_there() -> None:
    async def scene() -> None:
        there = Scene()
        job = there.engine.submit(b"f", background=True)
        assert there.worker.claim().result() is job
        there.worker.remove()

    play(scene())


def test_claims_are_served_in_their_order() -> None:
    async def scene() -> None:
        there = Scene()
        first, second = there.worker.claim(), there.worker.claim()
        job = there.engine.submit(b"f", background=True)
        assert first.result() is job
        assert not second.done()
        assert there.worker.idle
        there.worker.remove()
        assert second.cancelled()

    play(scene())


def test_a_claim_that_is_withdrawn_takes_no_job() -> None:
    async def scene() -> None:
        there = Scene()
        claim = there.worker.claim()
        there.worker.withdraw(claim)
        assert not there.worker.idle
        assert there.engine.submit(b"f", background=True).state is JobState.QUEUED
        there.worker.remove()

    play(scene())


def test_a_job_that_came_too_late_for_its_claim_goes_back_as_if_never_given() -> None:
    async def scene() -> None:
        there = Scene()
        claim = there.worker.claim()
        job = there.engine.submit(b"f", background=True)
        assert claim.done()
        there.worker.withdraw(claim)
        assert (job.state, job.attempts) == (JobState.QUEUED, 0)
        there.worker.remove()

    play(scene())


def test_what_it_runs_goes_back_when_it_leaves() -> None:
    async def scene() -> None:
        there = Scene()
        job = there.engine.submit(b"f", background=True)
        there.worker.claim()
        there.worker.remove()
        assert (job.state, job.attempts) == (JobState.QUEUED, 1)
        there.worker.renew()  # a request that was under way: it does not come back by that

    play(scene())


def test_silence_ends_it_and_a_claim_that_waits_is_no_silence() -> None:
    async def scene() -> None:
        there = Scene(lease=0.05)
        claim = there.worker.claim()
        there.worker._check_lease()  # its time is up, but it waits
        assert not there.gone.done()
        there.worker.withdraw(claim)
        assert await asyncio.wait_for(there.gone, 10) is there.worker
        there.worker.remove()

    play(scene())
