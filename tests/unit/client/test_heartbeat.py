"""Heartbeats are sent while there are jobs, by one timer."""

import asyncio
from collections.abc import Iterator

import pytest

from geartrain.client.protocols.heartbeat import Heartbeat
from tests.support.fake_loop import FakeLoop


@pytest.fixture
def loop() -> Iterator[FakeLoop]:
    loop = FakeLoop()
    yield loop
    loop.close()


class Jobs:
    """A number of jobs, and of heartbeats."""

    def __init__(self, loop: FakeLoop) -> None:
        self.loop = loop
        self.running = 0
        self.sent = 0
        self.heartbeat = Heartbeat(self.send, lambda: self.running > 0)

    def send(self) -> None:
        self.sent += 1

    def begin(self) -> None:
        async def begin() -> None:
            self.running += 1
            self.heartbeat.begin()

        self.loop.run_until_complete(begin())


def test_three_in_every_lease_while_jobs_run(loop: FakeLoop) -> None:
    jobs = Jobs(loop)
    jobs.heartbeat.set_lease(60.0)
    jobs.begin()
    jobs.begin()  # a second job needs no second timer
    for _ in range(6):
        loop.pass_time(20.0)
    assert jobs.sent == 6
    jobs.running = 0
    for _ in range(6):
        loop.pass_time(20.0)
    assert jobs.sent == 6
    jobs.begin()
    loop.pass_time(20.0)
    assert jobs.sent == 7


def test_none_without_a_lease_and_none_after_the_end(loop: FakeLoop) -> None:
    jobs = Jobs(loop)
    jobs.begin()
    loop.pass_time(1000.0)
    assert jobs.sent == 0
    jobs.heartbeat.set_lease(60.0)
    jobs.begin()
    jobs.heartbeat.stop()
    jobs.begin()
    loop.pass_time(1000.0)
    assert jobs.sent == 0
    assert not asyncio.all_tasks(loop)
