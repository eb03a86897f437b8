"""Quotas of users: what a job counts for, from its submission to its end."""

import pytest

from geartrain import rights
from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.engine.policy import JOB_BYTES
from geartrain.errors import QueueFullError
from geartrain.model import Duplicate
from geartrain.rights import Identity
from geartrain.usage import UserUsage
from tests.unit.engine.recording import RecordingWatcher, claim, hire


def user(engine: Engine, name: str, jobs: int = 0, size: int = 0) -> UserUsage:
    """A user that is being served from now on."""
    usage = engine.usages[name] = UserUsage(name, max_queued_jobs=jobs, max_queued_bytes=size)
    serve(engine, usage)
    return usage


def serve(engine: Engine, usage: UserUsage | None) -> None:
    engine.actor = None
    if usage is not None:
        engine.actor = Identity(usage.name, rights.parse(["admin"]))
        engine.actor.usage = usage


def counts(usage: UserUsage) -> tuple[int, int]:
    return usage.jobs, usage.bytes


def test_refused_submission_changes_nothing(engine: Engine) -> None:
    usage = user(engine, "ann", jobs=1)
    engine.submit(b"f", payload=b"four", background=True)
    before = (engine.queued_bytes, engine.next_id, len(engine.jobs))
    with pytest.raises(QueueFullError, match="max_queued_jobs"):
        engine.submit(b"f", background=True)
    assert (engine.queued_bytes, engine.next_id, len(engine.jobs)) == before
    assert counts(usage) == (1, JOB_BYTES + 4)


def test_bytes_are_counted_as_by_the_server(engine: Engine) -> None:
    usage = user(engine, "ann", size=2 * JOB_BYTES)
    with pytest.raises(QueueFullError, match="max_queued_bytes"):
        engine.submit(b"f", payload=b"x" * (JOB_BYTES + 1))
    engine.submit(b"f", payload=b"x" * JOB_BYTES)
    assert usage.bytes == engine.queued_bytes == 2 * JOB_BYTES


def end_by_worker(engine: Engine, job: LiveJob) -> None:
    worker = hire(engine, b"f")
    engine.complete(worker, claim(engine, worker), b"")


def end_by_cancel(engine: Engine, job: LiveJob) -> None:
    engine.cancel(job)


def end_as_dead(engine: Engine, job: LiveJob) -> None:
    claim(engine, hire(engine, b"f"))
    engine.mark_dead(job, "")
    assert engine.usages["ann"].jobs == 1, "a dead job still takes room"
    engine.delete(job)


def end_after_retry(engine: Engine, job: LiveJob) -> None:
    claim(engine, hire(engine, b"f"))
    engine.mark_dead(job, "")
    engine.retry(job)
    assert engine.usages["ann"].jobs == 1
    engine.cancel(job)


@pytest.mark.parametrize("end", [end_by_worker, end_by_cancel, end_as_dead, end_after_retry])
def test_room_is_free_again_when_the_job_has_ended(engine: Engine, end: object) -> None:
    usage = user(engine, "ann", jobs=1)
    job = engine.submit(b"f", payload=b"x", background=True)
    serve(engine, None)
    end(engine, job)  # type: ignore[operator]
    assert counts(usage) == (0, 0)


def test_foreground_job_counts_until_its_client_leaves(engine: Engine, watcher: RecordingWatcher) -> None:
    usage = user(engine, "ann", jobs=1)
    engine.submit(b"f", watcher=watcher)
    assert usage.jobs == 1
    engine.unwatch_all(watcher)
    assert counts(usage) == (0, 0)


def test_shared_job_counts_for_the_first(engine: Engine) -> None:
    ann = user(engine, "ann")
    job = engine.submit(b"f", b"key", b"x", background=True)
    bob = user(engine, "bob", jobs=1)
    assert engine.submit(b"f", b"key", b"x", background=True) is job
    assert (ann.jobs, bob.jobs) == (1, 0)


def test_replaced_job_counts_for_whoever_replaced_it(engine: Engine) -> None:
    ann = user(engine, "ann")
    engine.submit(b"f", b"key", b"x", background=True)
    bob = user(engine, "bob", jobs=1, size=JOB_BYTES + 3)
    with pytest.raises(QueueFullError):
        engine.submit(b"f", b"key", b"four", background=True, duplicate=Duplicate.REPLACE)
    assert (counts(ann), counts(bob)) == ((1, JOB_BYTES + 1), (0, 0))
    for payload in (b"xx", b"xxx"):
        job = engine.submit(b"f", b"key", payload, background=True, duplicate=Duplicate.REPLACE)
    assert (counts(ann), counts(bob), job.user) == ((0, 0), (1, JOB_BYTES + 3), "bob")


def test_restored_job_counts_for_its_user(engine: Engine) -> None:
    job = LiveJob(1, b"H:localhost:1", b"f", b"", b"x", 1, True, 1.0, 1.0, "gearman")
    job.user = "gone"
    engine.restore(job)
    assert counts(engine.usages["gone"]) == (1, JOB_BYTES + 1)
    engine.cancel(job)
    assert counts(engine.usages["gone"]) == (0, 0)


def test_peer_without_a_user_counts_for_nobody(engine: Engine) -> None:
    assert engine.submit(b"f", background=True).user == ""
    engine.actor = Identity("anonymous", rights.parse(["submit"]))
    assert engine.submit(b"f", background=True).user == ""
    assert engine.usages == {}
