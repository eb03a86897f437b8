"""Dead jobs that are too old or too many are deleted."""

import pytest

from geartrain.engine.deadlines import NEVER
from geartrain.engine.engine import Engine, PollingWorker
from geartrain.engine.interfaces import Journal
from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.model import JobState
from geartrain.runtime.dead_jobs import DeadJobLimits
from geartrain.store.contract import Quota

NOW = 1000.0


class EndsJournal(Journal):
    """Notes the jobs that have ended."""

    def __init__(self) -> None:
        self.ended: list[tuple[int, JobState, str]] = []

    def finished(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        self.ended.append((job.id, job.state, job.reason))


@pytest.fixture
def journal() -> EndsJournal:
    return EndsJournal()


@pytest.fixture
def engine(journal: EndsJournal) -> Engine:
    engine = Engine(journal=journal)
    engine.now = NOW
    return engine


def die(engine: Engine, count: int) -> list[int]:
    """Let this many jobs die, one a second; their ids."""
    worker = PollingWorker("test")
    engine.register(worker, b"f")
    ids = []
    for _ in range(count):
        engine.submit(b"f", background=True)
        job = engine.claim(worker)
        assert job is not None
        engine.mark_dead(job, "hopeless")
        ids.append(job.id)
        engine.now += 1
    return ids


def test_the_oldest_are_deleted_when_there_are_too_many(engine: Engine, journal: EndsJournal) -> None:
    engine.timers.append(DeadJobLimits(engine, Quota(0.0, 3)))
    ids = die(engine, 5)
    engine.tick(engine.now)
    assert list(engine.dead) == ids[2:]
    assert journal.ended == [(id, JobState.CANCELLED, "hopeless") for id in ids[:2]]


def test_the_old_are_deleted(engine: Engine) -> None:
    limits = DeadJobLimits(engine, Quota(60.0, 0))
    engine.timers.append(limits)
    ids = die(engine, 3)
    engine.tick(NOW + 10)
    assert (list(engine.dead), limits.at) == (ids, NOW + 70)
    engine.tick(NOW + 69)
    assert list(engine.dead) == ids, "it looks once a minute"
    engine.tick(NOW + 70)
    assert list(engine.dead) == []
    engine.tick(NOW + 71)
    assert limits.at == NEVER


def test_many_are_deleted_in_parts(engine: Engine) -> None:
    limits = DeadJobLimits(engine, Quota(0.0, 1))
    engine.timers.append(limits)
    die(engine, 2500)
    lengths = []
    for _ in range(3):
        now = max(engine.now, limits.at if limits.at != NEVER else 0.0)
        engine.tick(now)
        lengths.append(len(engine.dead))
    assert lengths == [1500, 500, 1]


def test_jobs_that_wait_are_left_alone(engine: Engine) -> None:
    engine.timers.append(DeadJobLimits(engine, Quota(1.0, 1)))
    job = engine.submit(b"g", background=True)
    engine.tick(NOW + 100)
    assert engine.jobs.get(job.id) is job
