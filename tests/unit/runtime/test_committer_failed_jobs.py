"""Failed jobs on their way into the store and out of it, while commits wait and fail."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from geartrain.engine.job import LiveJob
from geartrain.engine.policy import FunctionPolicy
from geartrain.job_query import JobQuery
from geartrain.model import FailedPayload, JobState, Record
from geartrain.runtime.records import StoreArchive
from geartrain.store.contract import Query
from tests.contract.stores.factories import ids, records
from tests.unit.runtime.committer_scene import NOW, Scene, Story, failures, play

Play = Callable[[Story], None]
FAILED = JobQuery(state=JobState.FAILED)


@pytest.fixture(name="play")
def _play(tmp_path: Path) -> Play:
    return partial(play, tmp_path / "jobs.db")


def archive(s: Scene) -> StoreArchive:
    return StoreArchive(s.store, s.committer.uncommitted)


def fail(s: Scene, payload: bytes = b"in", **options: float) -> LiveJob:
    job = s.engine.submit(b"f", payload=payload, background=True, **options)
    assert s.engine.claim(s.worker) is job
    s.engine.raise_exception(s.worker, job, b"bad input")
    return job


async def failed(s: Scene) -> Record:
    """The record of a job that has failed durably."""
    fail(s)
    await s.idle()
    (record,) = await archive(s).newest(FAILED, 9)
    return record


async def retry(s: Scene, record: Record) -> LiveJob:
    (job,) = await archive(s).failed_jobs([record])
    assert job is not None
    s.engine.retry_failed(job)
    return job


def test_a_failed_job_is_shown_whole_before_and_after_its_commit(play: Play) -> None:
    async def story(s: Scene) -> None:
        s.store.hold()
        job = fail(s, b"one")
        await s.writing()
        for search in (b"on", b""):
            (record,) = await archive(s).newest(JobQuery(state=JobState.FAILED, search=search), 9)
            assert await archive(s).payloads([record], 2) == {job.id: FailedPayload(3, b"on")}
        s.store.let_all()
        await s.idle()
        assert s.committer.uncommitted.payloads == {}
        assert await archive(s).payloads([record], 2) == {job.id: FailedPayload(3, b"on")}

    play(story)


def test_a_retried_job_has_no_record_from_then_on(play: Play) -> None:
    async def story(s: Scene) -> None:
        record = await failed(s)
        s.store.hold()
        job = await retry(s, record)
        await s.writing()
        assert await archive(s).find(record.handle) is None
        assert await archive(s).newest(JobQuery(), 9) == []
        assert (s.committer.changes, job.failed_attempts is not None) == (2, True)
        s.store.let_all()
        await s.idle()
        assert (ids(s.store), records(s.store), s.committer.uncommitted.removed) == ([record.id], [], set())

    play(story)


def test_a_retried_job_that_ends_before_its_commit_has_one_record(play: Play) -> None:
    async def story(s: Scene) -> None:
        record = await failed(s)
        job = await retry(s, record)
        assert s.engine.claim(s.worker) is job
        s.engine.complete(s.worker, job, b"out")
        found = await archive(s).find(record.handle)
        assert found is not None
        assert found.state == JobState.DONE
        await s.idle()
        assert [(found.id, found.state) for found in s.store.records(Query())] == [(record.id, JobState.DONE)]
        assert s.store.payloads([record.id], 1) == {}

    play(story)


def test_a_retry_that_cannot_be_written_is_written_later(play: Play) -> None:
    async def story(s: Scene) -> None:
        record = await failed(s)
        s.store.failures = failures(2)
        await retry(s, record)
        await s.until(lambda: not s.store.failures)
        assert (ids(s.store), records(s.store)) == ([], [record.id])
        await s.until(lambda: ids(s.store) == [record.id])
        assert records(s.store) == []

    play(story)


def test_a_failure_that_cannot_be_written_is_written_later(play: Play) -> None:
    async def story(s: Scene) -> None:
        job = s.engine.submit(b"f", payload=b"in", background=True)
        await s.idle()
        s.store.failures = failures(1)
        assert s.engine.claim(s.worker) is job
        s.engine.fail(s.worker, job)
        await s.until(lambda: records(s.store) == [job.id])
        assert s.store.payloads([job.id], 9) == {job.id: FailedPayload(2, b"in")}

    play(story)


def test_a_job_that_was_not_accepted_is_not_kept(play: Play) -> None:
    async def story(s: Scene) -> None:
        s.store.failures = failures(1)
        fail(s)
        await s.until(lambda: not s.store.failures)
        await s.until(lambda: s.committer._writing is None)
        uncommitted = s.committer.uncommitted
        assert (uncommitted.records, uncommitted.payloads) == ({}, {})
        assert await archive(s).newest(JobQuery(), 9) == []

    play(story)


@pytest.mark.parametrize(
    ("policy", "keep_for", "done", "bad"),
    [
        (FunctionPolicy(keep_for=5.0), 0.0, (0.0, NOW + 5), (0.0, 0.0)),
        (FunctionPolicy(keep_for=5.0, keep_failed_for=7.0), 0.0, (0.0, NOW + 5), (0.0, NOW + 7)),
        (FunctionPolicy(keep_for=5.0), 60.0, (0.0, NOW + 60), (NOW + 60, 0.0)),
        (FunctionPolicy(keep_failed_for=0.0), 0.0, (0.0, 0.0), (0.0, NOW)),
    ],
)
def test_records_of_a_function_with_settings(
    play: Play, policy: FunctionPolicy, keep_for: float, done: tuple[float, float], bad: tuple[float, float]
) -> None:
    async def story(s: Scene) -> None:
        s.engine.configure(b"f", policy)
        fail(s, keep_for=keep_for)
        job = s.engine.submit(b"f", background=True, keep_for=keep_for)
        assert s.engine.claim(s.worker) is job
        s.engine.complete(s.worker, job, b"")
        await s.idle()
        assert [(record.keep_until, record.remove_at) for record in s.store.records(Query())] == [done, bad]

    play(story)
