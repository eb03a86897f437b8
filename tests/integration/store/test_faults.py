"""The n-th write or sync of the disk fails, for every n: a commit happened, or it did not."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from geartrain.errors import StoreError
from geartrain.store import sqlite_checkpoints
from geartrain.store.contract import Batch, Store
from geartrain.store.sqlite import SqliteStore
from tests.contract.stores.factories import accepted, batch, ids, job, prune, record, records, rows
from tests.crash.faulty_disk.faulty_vfs import FaultyDisk, Span
from tests.support import store_files

MOST = 400  # operations of one commit; more means that the loop below does not end
FOREVER = 10**9

State = tuple[list[tuple[object, ...]], list[int]]


def state(store: Store) -> State:
    return rows(store), records(store)


def small() -> Batch:
    return batch([job(1, attempts=7), job(5), job(6)], [record(2)], ids_until=100)


def single() -> Batch:
    """A new job and nothing else, which takes one statement."""
    return accepted(job(5))


def large() -> Batch:
    """More pages than the log may hold before it is copied into the file."""
    jobs = (job(id, payload=bytes(40_000)) for id in range(10, 120))
    return batch([job(1, attempts=7), *jobs], [record(2)], ids_until=1000)


def prepared(folder: Path, make: Callable[[], Batch]) -> tuple[State, State]:
    """A file with some jobs, and what it holds before and after the batch."""
    store = SqliteStore(folder / "jobs.db")
    store.open()
    store.commit(batch([job(1), job(2), job(3)], ids_until=50))
    before = state(store)
    store.close(50)
    shutil.copytree(folder, folder / "after")
    store = SqliteStore(folder / "after" / "jobs.db")
    store.open()
    store.commit(make())
    after = state(store)
    store.close(50)
    return before, after


@pytest.mark.parametrize("make", [single, small, large], ids=lambda make: str(make.__name__))
@pytest.mark.parametrize("count", [1, 2, FOREVER], ids=["once", "twice", "until it is closed"])
@pytest.mark.parametrize("kind", ["write", "sync"])
def test_failing_commit(tmp_path: Path, disk: FaultyDisk, kind: str, count: int, make: Callable[[], Batch]) -> None:
    before, after = prepared(tmp_path, make)
    failed = 0
    for number in steps(kind, make):
        path = tmp_path / f"{number}" / "jobs.db"
        path.parent.mkdir()
        shutil.copyfile(tmp_path / "jobs.db", path)
        store = SqliteStore(path)
        store.open()
        disk.begin(Span(kind, number, count))
        try:
            store.commit(make())
            expected = after
        except StoreError:
            failed += 1
            expected = before
        untouched = disk.failures == 0
        disk.begin(None)
        assert state(store) == expected, f"{kind} {number}, in the same store"
        store.close(50)
        store = SqliteStore(path)
        store.open()
        assert state(store) == expected, f"{kind} {number}, after it was opened again"
        store.close(50)
        shutil.rmtree(path.parent)
        if untouched:
            assert failed, "nothing failed: the test tests nothing"
            return
    raise AssertionError("there is no end to it")


def steps(kind: str, make: Callable[[], Batch]) -> list[int]:
    """Every number for a small batch; for a large one the first ones, and some of the rest."""
    dense = list(range(1, 30))
    return dense if make is small else [*dense[:12], *range(13, MOST * 10, 151 if kind == "write" else 1)]


@pytest.mark.parametrize("kind", ["write", "sync"])
def test_commit_that_failed_succeeds_when_offered_again(tmp_path: Path, disk: FaultyDisk, kind: str) -> None:
    before, after = prepared(tmp_path, small)
    for number in range(1, 4 if kind == "write" else 2):
        path = tmp_path / f"{number}.db"
        shutil.copyfile(tmp_path / "jobs.db", path)
        store = SqliteStore(path)
        store.open()
        disk.begin(Span(kind, number, 3))
        offered = small()
        refusals = 0
        while refusals < 20:
            try:
                store.commit(offered)
                break
            except StoreError:
                refusals += 1
                assert state(store) == before
        assert 0 < refusals < 20
        assert state(store) == after, "with one record, however often it was offered"
        store.close(50)


def test_job_of_a_failed_commit_does_not_come_back_later(tmp_path: Path, disk: FaultyDisk) -> None:
    """Its submitter was told that it is not kept; it was in the log when the sync failed.

    The next commit writes over it, and a job with the same unique key is then the only one.
    """
    path = tmp_path / "jobs.db"
    store = SqliteStore(path)
    store.open()
    store.commit(batch([job(1)]))
    disk.begin(Span("sync", 1, 3))
    for id in (2, 3, 4):
        with pytest.raises(StoreError):
            store.commit(batch([job(id, unique=b"key")]))
    store.commit(batch([job(5, unique=b"key")]))
    main, log = path.read_bytes(), store_files.log(path).read_bytes()
    assert ids(store) == [1, 5]
    store.close(6)
    path.write_bytes(main)
    store_files.log(path).write_bytes(log)
    store = SqliteStore(path)
    store.open()
    assert ids(store) == [1, 5], "also if the server was killed right after that"
    store.close(6)


@pytest.mark.parametrize("kind", ["write", "sync"])
def test_failing_prune_forgets_all_that_it_meant_to_or_nothing(tmp_path: Path, disk: FaultyDisk, kind: str) -> None:
    path = tmp_path / "jobs.db"
    store = SqliteStore(path)
    store.open()
    store.commit(batch([job(9)], [record(id) for id in range(1, 6)]))
    disk.begin(Span(kind, 1, 1))
    with pytest.raises(StoreError):
        prune(store, 0.0, 2)
    assert records(store) == [5, 4, 3, 2, 1]
    store.commit(batch([job(10)]))
    assert prune(store, 0.0, 2) == 3
    assert (records(store), ids(store)) == ([5, 4], [9, 10])
    store.close(50)


@pytest.mark.parametrize("kind", ["write", "sync", "truncate"])
def test_failing_open_and_close(tmp_path: Path, disk: FaultyDisk, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails while a store opens or closes: a StoreError or nothing, and every job afterwards."""
    monkeypatch.setattr(sqlite_checkpoints, "PAGES", 30)  # instead of a thousand writes that could fail
    path = tmp_path / "jobs.db"
    store = SqliteStore(path)
    store.open()
    store.commit(batch([job(1), job(2)], ids_until=1000))
    store.close(500)
    for number in range(1, 150):
        disk.begin(Span(kind, number, 1))
        store = SqliteStore(path)
        try:
            assert store.open() in (500, 1000)
            store.close(500)
        except StoreError:
            pass
        untouched = disk.failures == 0
        disk.begin(None)
        store = SqliteStore(path)
        assert store.open() in (500, 1000)
        assert ids(store) == [1, 2]
        store.close(500)
        if untouched:
            return
    raise AssertionError("there is no end to it")
