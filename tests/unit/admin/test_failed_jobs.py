"""Failed jobs that are kept whole: shown, retried and deleted, one and many."""

import asyncio

import pytest

from geartrain.admin import failed_jobs
from geartrain.admin.service import Admin
from geartrain.engine.engine import Engine
from geartrain.errors import AdminError
from geartrain.job_query import JobQuery
from geartrain.model import JobState, Record
from tests.unit.admin.conftest import FakeArchive, SavingJournal
from tests.unit.admin.test_jobs import record, run
from tests.unit.engine.recording import claim, hire

FAILED = int(JobState.FAILED)


def fail(archive: FakeArchive, id: int, payload: bytes | None = b"in", **changes: object) -> Record:
    """The record of a failed job, and the job as a whole unless it has no payload."""
    made = record(id, state=FAILED, reason="bad input", **changes)
    archive.records.append(made)
    if payload is not None:
        archive.kept[id] = payload
    return made


def test_views_have_the_payload(admin: Admin, archive: FakeArchive) -> None:
    kept, forgotten = fail(archive, 700, b"x" * 1000), fail(archive, 701, None)
    one = run(admin.job(kept.handle))
    assert (one.payload, one.payload_size) == ("x" * 1000, 1000)
    other, first = run(admin.jobs(JobQuery.parse(state="failed"))).items
    assert (first.payload, first.payload_size) == ("x" * 256, 1000)
    assert (other.payload, other.payload_size) == (None, None)
    assert run(admin.payload(kept.handle)) == b"x" * 1000
    with pytest.raises(AdminError, match="no longer kept"):
        run(admin.payload(forgotten.handle))


def test_retry_queues_the_job(admin: Admin, engine: Engine, archive: FakeArchive) -> None:
    failed = fail(archive, 700)
    run(admin.retry(failed.handle))
    job = claim(engine, hire(engine, b"old"))
    assert (job.handle, job.payload, job.background) == (failed.handle, b"in", True)


def test_a_job_is_retried_once(admin: Admin, engine: Engine, archive: FakeArchive) -> None:
    failed = fail(archive, 700)

    async def both() -> list[object]:
        return await asyncio.gather(admin.retry(failed.handle), admin.retry(failed.handle), return_exceptions=True)

    first, second = run(both())
    assert first is None
    assert isinstance(second, AdminError)
    assert len(engine.jobs) == 1


@pytest.mark.parametrize("action", ["retry", "delete"])
def test_other_jobs_that_have_ended_are_refused(admin: Admin, archive: FakeArchive, action: str) -> None:
    archive.records.append(record(700))
    verb = getattr(admin, action)
    with pytest.raises(AdminError, match="is done, not dead or failed") as refused:
        run(verb(b"H:localhost:700"))
    assert refused.value.kind == "conflict"
    with pytest.raises(AdminError, match="no job") as unknown:
        run(verb(b"H:localhost:1"))
    assert unknown.value.kind == "not-found"


def test_a_job_without_its_payload_cannot_be_retried(admin: Admin, engine: Engine, archive: FakeArchive) -> None:
    failed = fail(archive, 700, None)
    with pytest.raises(AdminError, match="its payload is not kept") as refused:
        run(admin.retry(failed.handle))
    assert refused.value.kind == "conflict"
    assert len(engine.jobs) == 0


def test_a_unique_key_in_use_is_a_conflict(admin: Admin, engine: Engine, archive: FakeArchive) -> None:
    failed = fail(archive, 700, unique=b"key")
    other = engine.submit(b"old", b"key", background=True)
    with pytest.raises(AdminError, match=f"job {other.handle.decode()} has its unique key") as refused:
        run(admin.retry(failed.handle))
    assert refused.value.kind == "conflict"
    report = run(admin.bulk("retry", JobQuery()))
    assert (report.done, report.refused) == (0, 1)


def test_delete_removes_the_record(admin: Admin, archive: FakeArchive, journal: SavingJournal) -> None:
    run(admin.delete(fail(archive, 700).handle))
    assert journal.removed == [700]


def test_bulk_retries_dead_and_failed_jobs(
    admin: Admin, engine: Engine, archive: FakeArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failed_jobs, "_READ_AT_ONCE", 2)
    dead = engine.submit(b"f", background=True)
    claim(engine, hire(engine, b"f"))
    engine.mark_dead(dead, "hopeless")
    for id in range(700, 705):
        fail(archive, id)
    fail(archive, 705, None)
    report = run(admin.bulk("retry", JobQuery()))
    assert (report.done, report.refused, report.more) == (6, 1, False)
    assert len(engine.jobs) == 6


@pytest.mark.parametrize(("state", "done"), [("failed", 2), ("dead", 1), ("", 3)])
def test_bulk_deletes_what_the_filter_says(
    admin: Admin, engine: Engine, archive: FakeArchive, journal: SavingJournal, state: str, done: int
) -> None:
    dead = engine.submit(b"f", background=True)
    claim(engine, hire(engine, b"f"))
    engine.mark_dead(dead, "hopeless")
    fail(archive, 700)
    fail(archive, 701)
    assert run(admin.bulk("delete", JobQuery.parse(state=state))).done == done
    assert (len(engine.dead), len(journal.removed)) == ({"failed": 1}.get(state, 0), {"dead": 0}.get(state, 2))


def test_bulk_is_bounded_over_both(admin: Admin, engine: Engine, archive: FakeArchive) -> None:
    dead = engine.submit(b"f", background=True)
    claim(engine, hire(engine, b"f"))
    engine.mark_dead(dead, "hopeless")
    for id in range(700, 703):
        fail(archive, id)
    report = run(admin.bulk("retry", JobQuery.parse(limit=2)))
    assert (report.done, report.more) == (2, True)
