"""Restoring jobs: their order, the log, and a start that is stopped in the middle."""

import asyncio
from pathlib import Path

import pytest

from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.model import Job
from geartrain.server import restore
from geartrain.store import contract
from geartrain.store.sqlite import SqliteStore


def filled(path: Path, *jobs: Job) -> SqliteStore:
    """An open store with these jobs."""
    store = SqliteStore(path)
    store.open()
    batch = contract.Batch()
    batch.changed = [contract.row(job) for job in jobs]
    store.commit(batch)
    return store


def job(id: int, submitted_at: float, run_at: float = 0.0) -> Job:
    return Job(
        id=id,
        handle=b"H:host:%d" % id,
        function=b"reverse",
        unique=b"",
        payload=b"",
        priority=1,
        background=True,
        run_at=run_at or submitted_at,
        submitted_at=submitted_at,
        door="gearman",
    )


def restored(store: SqliteStore, stopped: bool = False) -> tuple[int, Engine]:
    async def run() -> tuple[int, Engine]:
        engine, event = Engine(), asyncio.Event()
        if stopped:
            event.set()
        return await restore.restore_jobs(store, engine, event), engine

    try:
        return asyncio.run(run())
    finally:
        store.close(1000)


def test_jobs_are_ordered_by_the_time_at_which_they_may_run(tmp_path: Path) -> None:
    store = filled(tmp_path / "jobs.db", job(1, 10.0), job(2, 11.0, run_at=13.0), job(3, 12.0), job(4, 14.0))
    order = [job.id for job in restore._by_run_time(store.jobs(LiveJob))]
    store.close(5)
    assert order == [1, 3, 2, 4]


def test_delayed_jobs_at_the_end_are_not_forgotten(tmp_path: Path) -> None:
    store = filled(tmp_path / "jobs.db", job(1, 10.0, run_at=99.0), job(2, 11.0, run_at=50.0), job(3, 12.0))
    order = [job.id for job in restore._by_run_time(store.jobs(LiveJob))]
    store.close(4)
    assert order == [3, 2, 1]


def test_every_job_is_restored_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "geartrain.store")  # other tests set the level of "geartrain"
    count, engine = restored(filled(tmp_path / "jobs.db", job(1, 10.0), job(2, 11.0)))
    assert (count, sorted(engine.jobs)) == (2, [1, 2])
    [record] = caplog.records
    assert record.getMessage() == "restored jobs"
    assert record.fields["jobs"] == 2  # type: ignore[attr-defined]


def test_empty_store_is_not_worth_a_log_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "geartrain.store")  # other tests set the level of "geartrain"
    assert restored(filled(tmp_path / "jobs.db"))[0] == 0
    assert not caplog.records


def test_stop_ends_a_long_restore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "JOBS_PER_STEP", 2)
    count, _ = restored(filled(tmp_path / "jobs.db", *(job(id, float(id)) for id in range(1, 10))), stopped=True)
    assert count == 2
