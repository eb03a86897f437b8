"""What the SQLite store does beyond the contract."""

import contextlib
import threading
from pathlib import Path

import apsw
import pytest

from geartrain.errors import StoreError
from geartrain.store import sqlite, sqlite_checkpoints
from geartrain.store.contract import Query
from geartrain.store.sqlite import SqliteStore
from tests.contract.stores.factories import batch, finish, ids, job, prune, record, records
from tests.crash.faulty_disk.faulty_vfs import FaultyDisk, Span
from tests.support import store_files
from tests.support.store_fixtures import Opened

MIB = 1024 * 1024


def test_prune_forgets_a_bounded_number_at_once(opened: Opened) -> None:
    store = opened()
    store.commit(batch(finished=map(record, range(1, 2501))))
    assert [prune(store, 0.0, 0) for _ in range(4)] == [1000, 1000, 500, 0]


def test_first_commits_write_over_a_log_that_has_its_length(path: Path, opened: Opened) -> None:
    store = opened()
    log = path.with_name(path.name + "-wal")
    length = log.stat().st_size
    assert length >= 1000 * 4096
    for id in range(1, 101):
        store.commit(batch([job(id)]))
    assert log.stat().st_size == length
    assert path.stat().st_size < length
    with contextlib.closing(apsw.Connection(str(path))) as operator:
        assert operator.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'preallocation'").get == 0
        assert operator.pragma("page_count") < 100


def test_log_does_not_take_the_last_of_a_disk(path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_FREE_TO_PREALLOCATE", 2**63)
    opened()
    assert path.with_name(path.name + "-wal").stat().st_size < MIB


def test_records_can_be_asked_for_by_other_threads_while_batches_are_written(opened: Opened) -> None:
    store = opened()
    stop = threading.Event()
    problems: list[Exception] = []
    asked = 0

    def ask() -> None:
        nonlocal asked
        while not stop.is_set():
            try:
                found = [each.id for each in store.records(Query(limit=10))]
                assert found == sorted(found, reverse=True)
                asked += 1
            except Exception as error:
                problems.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for id in range(1, 301):
        store.commit(batch([job(id + 1000)], [record(id)]))
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []
    assert asked
    assert len(store.records(Query(limit=1000))) == 300


def test_operator_who_holds_the_file_delays_a_commit_and_no_more(
    path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_BUSY_MILLISECONDS", 1)
    store = opened()
    with contextlib.closing(apsw.Connection(str(path))) as operator:
        operator.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            store.commit(batch([job(1)]))
        operator.execute("ROLLBACK")
    store.commit(batch([job(2)]))
    assert ids(opened()) == [2]


def test_operator_who_reads_holds_up_nothing(path: Path, opened: Opened) -> None:
    store = opened()
    store.commit(batch([job(1)]))
    with contextlib.closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)) as operator:
        operator.execute("BEGIN; SELECT count(*) FROM jobs").fetchall()
        store.commit(batch([job(2)]))
        assert operator.execute("SELECT count(*) FROM jobs").get == 1
    assert ids(store) == [1, 2]


def test_log_stays_small(path: Path, opened: Opened) -> None:
    """A hundred times a hundred KiB go through it."""
    store = opened()
    for id in range(1, 101):
        store.commit(batch([job(id, payload=bytes(100_000))], [record(id - 1)]))
    assert store_files.log(path).stat().st_size < 6 * MIB
    assert path.stat().st_size < 12 * MIB, "pages of finished jobs are used again"
    assert ids(store) == [100]


def test_log_that_cannot_be_copied_is_reported_and_loses_nothing(
    path: Path, opened: Opened, disk: FaultyDisk, caplog: pytest.LogCaptureFixture
) -> None:
    store = opened()
    store.commit(batch([job(1)]))
    disk.begin(Span("sync", 2, 1))  # the first is that of the commit
    store.commit(batch([job(2, payload=bytes(5 * MIB))]))
    assert disk.failures == 1
    (entry,) = caplog.records
    assert entry.getMessage() == "checkpoint failed"
    disk.begin(None)
    store.commit(batch([job(3)]))
    assert ids(opened()) == [1, 2, 3]


def restarts(path: Path) -> int:
    """How often the log was begun anew."""
    return int.from_bytes(store_files.log(path).read_bytes()[12:16], "big")


def test_log_that_is_copied_in_the_background_is_begun_anew_while_commits_go_on(path: Path, opened: Opened) -> None:
    store = opened()
    store.checkpoints.in_background = True
    last = 1000  # each takes 25 pages of the log or more, so at the latest it is begun anew after 160
    for id in range(1, last + 1):
        store.commit(batch([job(id, payload=bytes(100_000))], [record(id - 1)]))
    assert restarts(path) >= 6
    assert store_files.log(path).stat().st_size < sqlite_checkpoints.MOST_PAGES * 4096 + MIB
    assert ids(opened()) == [last]


def test_reader_keeps_the_log_from_being_begun_anew_only_while_it_reads(path: Path, opened: Opened) -> None:
    store = opened()
    store.checkpoints.in_background = True
    store.commit(batch([job(1)]))
    with contextlib.closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)) as operator:
        operator.execute("BEGIN; SELECT count(*) FROM jobs").fetchall()
        before = restarts(path)
        for id in range(2, 8):
            store.commit(batch([job(id, payload=bytes(5 * MIB))]))
        assert restarts(path) == before
    for id in range(8, 48):  # a mebibyte each, so that the log is copied at least twice
        store.commit(batch([job(id, payload=bytes(MIB))]))
    assert restarts(path) > before
    assert ids(opened()) == list(range(1, 48))


def test_log_that_cannot_be_copied_in_the_background_is_reported_and_loses_nothing(
    path: Path, opened: Opened, disk: FaultyDisk, caplog: pytest.LogCaptureFixture
) -> None:
    store = opened()
    store.checkpoints.in_background = True
    store.commit(batch([job(1)]))
    disk.begin(Span("sync", 2, 1))  # the first is that of the commit
    store.commit(batch([job(2, payload=bytes(5 * MIB))]))
    store.checkpoints.wait()
    assert disk.failures == 1
    (entry,) = caplog.records
    assert entry.getMessage() == "checkpoint failed"
    disk.begin(None)
    store.commit(batch([job(3)]))
    assert ids(opened()) == [1, 2, 3]


def test_nothing_is_left_beside_the_file_after_a_stop(path: Path, opened: Opened) -> None:
    store = SqliteStore(path)
    store.open()
    store.commit(batch([job(1)]))
    store.close(2)
    assert sorted(file.name for file in path.parent.iterdir()) == ["jobs.db", "jobs.db.lock"]


def test_store_that_lost_its_file_closes_without_a_word_too_many(
    path: Path, caplog: pytest.LogCaptureFixture, disk: FaultyDisk
) -> None:
    store = SqliteStore(path)
    store.open()
    disk.begin(Span("any", 1, 10**9))
    store.close(2)
    (entry,) = caplog.records
    assert entry.getMessage() == "store was not closed cleanly"
    disk.begin(None)
    store = SqliteStore(path)
    store.open()
    store.close(2)


def test_reading_records_of_a_file_that_is_gone(path: Path, opened: Opened) -> None:
    store = opened()
    finish(store, 1)
    path.rename(path.with_name("elsewhere"))
    with pytest.raises(StoreError, match=r"cannot read .*jobs\.db"):
        records(store)
    path.with_name("elsewhere").rename(path)
    assert records(store) == [1]


def test_file_that_was_removed_takes_no_more_jobs(path: Path, opened: Opened) -> None:
    """SQLite would go on, and lose them all at the end."""
    store = opened()
    store.commit(batch([job(1)]))
    path.rename(path.with_name("elsewhere"))
    for _ in range(2):
        with pytest.raises(StoreError, match=r"cannot write .*jobs\.db: the file was removed or replaced; "):
            store.commit(batch([job(2)]))
    path.with_name("elsewhere").rename(path)
    store.commit(batch([job(3)]))
    assert ids(opened()) == [1, 3]


def test_file_that_was_replaced_takes_no_more_jobs(path: Path, opened: Opened) -> None:
    store = opened()
    store.commit(batch([job(1)]))
    path.rename(path.with_name("elsewhere"))
    path.write_bytes(path.with_name("elsewhere").read_bytes())
    with pytest.raises(StoreError, match="the file was removed or replaced"):
        store.commit(batch([job(2)]))
    path.with_name("elsewhere").rename(path)
    assert ids(store) == [1]
