"""Migrations, files of other versions, and files of other programs."""

import contextlib
import logging
from collections.abc import Iterable
from pathlib import Path

import apsw
import pytest

from geartrain.errors import StoreError
from geartrain.model import Job, Record
from geartrain.store import contract, salvage, schema
from geartrain.store.contract import Query, Quota, Retention
from geartrain.store.snapshot import Snapshot
from geartrain.store.sqlite import SqliteStore
from tests.contract.stores.factories import NOW, batch, facts, ids, job, prune, record, records, rows
from tests.support.store_fixtures import Opened

KNOWN = len(schema.MIGRATIONS)
NEW = ("result_size", "result_kept", "keep_until", "remove_at", "progress")  # columns of records since layout 7
SINCE = {
    "trials": 5,
    "keeps_result": 6,
    "keep_for": 7,
    "expires_at": 9,
    "user_name": 11,
    "partition_name": 14,
    "after_jobs": 15,
}  # the layout that brought a column which the first did not have


def old_file(path: Path, version: int, *, wal: bool = True) -> None:
    """A file as a Geartrain of that layout left it, with three jobs and a promise."""
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        if wal:
            connection.pragma("journal_mode", "WAL")
        for script in schema.MIGRATIONS[:version]:
            connection.execute(script)
        connection.pragma("user_version", version)
        connection.pragma("application_id", schema.APPLICATION_ID)
        columns = [name for name in contract.COLUMNS if version >= SINCE.get(name, 1)]
        marks = ", ".join("?" * len(columns))
        for id in (1, 2, 3):
            row = contract.row(job(id, attempts=id))[: len(columns)]
            connection.execute(f"INSERT INTO jobs ({', '.join(columns)}) VALUES ({marks})", row)
        connection.execute("INSERT INTO meta VALUES ('next_id', 77)")


@pytest.mark.parametrize("version", range(1, KNOWN + 1))
def test_older_layout_is_migrated_with_its_jobs(path: Path, opened: Opened, version: int) -> None:
    old_file(path, version)
    store = SqliteStore(path)
    assert store.open() == 77
    assert rows(store) == [facts(job(id, attempts=id)) for id in (1, 2, 3)]
    store.commit(batch([job(4)], [record(1)]))
    store.close(78)
    store = opened()
    assert (ids(store), records(store)) == ([2, 3, 4], [1])


@pytest.mark.parametrize("version", range(1, KNOWN + 1))
def test_older_layout_is_read_without_being_changed(path: Path, version: int) -> None:
    old_file(path, version)
    with Snapshot(path) as snapshot:
        assert [facts(found) for found in snapshot.jobs(pytest.fail)] == [
            facts(job(id, attempts=id)) for id in (1, 2, 3)
        ]
        assert snapshot.layout == version
    if version > 1:
        assert records(SqliteStore(path)) == []


@pytest.mark.parametrize("version", range(1, KNOWN + 1))
def test_damaged_file_of_an_older_layout_keeps_its_jobs(path: Path, opened: Opened, version: int) -> None:
    """A job must not be lost because the damage was found before the file was brought up to date."""
    old_file(path, version)
    salvage.replace(path, "for the test")
    assert rows(opened()) == [facts(job(id, attempts=id)) for id in (1, 2, 3)]


def test_records_of_layout_6_are_migrated(path: Path, opened: Opened) -> None:
    """There, results were cut at 64 KiB, and nothing was noted about it."""
    old_file(path, 6)
    columns = [name for name in contract.RECORD_COLUMNS if name not in NEW]
    old = [record(1, result=b"x" * 65536), record(2, state=4, reason="why"), record(3, keeps_result=False)]
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.executemany(schema.insert("records", columns), [row[: len(columns)] for row in old])
    assert SqliteStore(path).records(Query()) == old[::-1], "also before the file is migrated"
    store = opened()
    assert store.records(Query()) == old[::-1]
    store.commit(batch(finished=[record(4, result=b"y" * 70_000, keep_until=NOW * 2)]))
    (newest,) = store.records(Query(limit=1))
    assert (newest.full_size, newest.kept_size, newest.keep_until) == (70_000, 70_000, NOW * 2)
    assert store.kept_result(newest) == b"y" * 70_000
    assert prune(store, NOW * 3, 0) == 4
    assert store.prune(NOW * 3, Retention(Quota(0.0, 0), Quota(0.0, 0))) == 0


def test_records_of_layout_11_are_migrated(path: Path, opened: Opened) -> None:
    """There, the time at which a record is removed is a negative `keep_until`."""
    old_file(path, 11)
    columns = [name for name in contract.RECORD_COLUMNS if name != "remove_at"]
    at = contract.RECORD_COLUMNS.index("remove_at")
    old = [record(1, keep_until=-60.0), record(2, keep_until=NOW), record(3), record(4, state=4, keep_until=-90.0)]
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        rows = [(*row[:at], *row[at + 1 :]) for row in old]
        connection.executemany(schema.insert("records", columns), rows)
    expected = [record(4, state=4, remove_at=90.0), record(3), record(2, keep_until=NOW), record(1, remove_at=60.0)]
    with Snapshot(path) as snapshot:
        assert list(snapshot.records())[::-1] == expected
    assert SqliteStore(path).records(Query()) == expected, "also before the file is migrated"
    store = opened()
    assert store.records(Query()) == expected
    assert prune(store, 80.0, 100) == 1
    assert records(store) == [4, 3, 2]


def install_0_1(path: Path) -> None:
    """A file that Geartrain 0.1.0 wrote."""
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.pragma("journal_mode", "WAL")
        connection.execute((Path(__file__).parent / "fixtures" / "store-0.1.sql").read_text())


JOBS_0_1 = [(5, "danga", True), (6, "danga", False), (7, "gearman", True), (8, "danga", False), (9, "danga", False)]
RECORDS_0_1 = [(4, "danga", False), (3, "danga", False), (2, "danga", True), (1, "gearman", True)]


def flags(entries: Iterable[Job | Record]) -> list[tuple[int, str, bool]]:
    return [(entry.id, entry.door, entry.keeps_result) for entry in entries]


def test_file_of_0_1_is_migrated(path: Path, opened: Opened) -> None:
    """Its doors end in "+throw-away" where the result is not kept."""
    install_0_1(path)
    store = SqliteStore(path)
    assert store.open() == 10
    assert flags(store.jobs(Job)) == JOBS_0_1
    assert flags(store.records(Query())) == RECORDS_0_1
    assert records(store, door="danga") == [4, 3, 2]
    assert store.saved_values() == {"periodic/config": b"value"}
    scheduled = next(job for job in store.jobs(Job) if job.id == 8)
    assert (scheduled.payload, scheduled.run_at, scheduled.attempts) == (b"payload 8", 1790086400.0, 1)
    assert scheduled.failed_attempts is not None
    store.commit(batch([job(10, keeps_result=False)], [record(11, keeps_result=False)]))
    store.close(12)
    store = opened()
    assert flags(store.jobs(Job)) == [*JOBS_0_1, (10, "gearman", False)]
    assert flags(store.records(Query())) == [(11, "gearman", False), *RECORDS_0_1]


def test_file_of_0_1_is_read_without_being_changed(path: Path) -> None:
    install_0_1(path)
    with Snapshot(path) as snapshot:
        assert flags(snapshot.jobs(pytest.fail)) == JOBS_0_1
        assert flags(snapshot.records()) == RECORDS_0_1[::-1]
        assert snapshot.layout == 5
    assert flags(SqliteStore(path).records(Query(door="danga"))) == RECORDS_0_1[:3]


def test_damaged_file_of_0_1_keeps_its_jobs(path: Path, opened: Opened) -> None:
    install_0_1(path)
    salvage.replace(path, "for the test")
    store = opened()
    assert flags(store.jobs(Job)) == JOBS_0_1
    assert store.saved_values() == {"periodic/config": b"value"}


def test_invalid_utf8_in_a_file_of_0_1_is_salvaged(path: Path, opened: Opened) -> None:
    install_0_1(path)
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute("UPDATE jobs SET door = CAST(x'ff' || '+throw-away' AS TEXT) WHERE id = 6")
    salvage.replace(path, "for the test")
    assert flags(opened().jobs(Job))[1] == (6, "\N{REPLACEMENT CHARACTER}", False)


@pytest.mark.parametrize("version", range(1, KNOWN))
def test_migration_is_logged(path: Path, opened: Opened, version: int, caplog: pytest.LogCaptureFixture) -> None:
    old_file(path, version)
    with caplog.at_level(logging.INFO, "geartrain.store"):
        opened()
    (entry,) = caplog.records
    assert entry.getMessage() == "store upgraded"
    assert entry.__dict__["fields"] == {"file": str(path), "why": f"from layout {version}"}


@pytest.mark.parametrize("version", range(1, KNOWN))
def test_migration_that_fails_changes_nothing(path: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    old_file(path, version)
    broken = (*schema.MIGRATIONS, "CREATE TABLE half_done (x); THIS IS NOT SQL;")
    monkeypatch.setattr(schema, "MIGRATIONS", broken)
    with pytest.raises(StoreError):
        SqliteStore(path).open()
    monkeypatch.undo()
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        assert connection.pragma("user_version") == version
        assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'half_done'").get == 0
        assert connection.execute("SELECT count(*) FROM jobs").get == 3


def test_newer_layout_is_refused_and_not_changed(path: Path) -> None:
    old_file(path, KNOWN, wal=False)
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.pragma("user_version", KNOWN + 1)
    before = path.read_bytes()
    expected = (
        rf"jobs\.db was written by a newer Geartrain \(layout {KNOWN + 1}, this one knows {KNOWN}\); "
        "run that version, or use another file"
    )
    with pytest.raises(StoreError, match=expected):
        SqliteStore(path).open()
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [0, 1, KNOWN])
def test_database_of_another_program_is_refused_and_not_changed(path: Path, version: int) -> None:
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute("CREATE TABLE recipes (name, text); INSERT INTO recipes VALUES ('soup', 'boil')")
        connection.pragma("user_version", version)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"jobs\.db is not a Geartrain store but another SQLite database"):
        SqliteStore(path).open()
    assert path.read_bytes() == before
    assert not path.with_name("jobs.db-wal").exists()


def test_new_file_has_the_latest_layout_and_our_name(path: Path, opened: Opened) -> None:
    opened()
    with contextlib.closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)) as connection:
        assert connection.pragma("user_version") == KNOWN
        assert connection.pragma("application_id") == int.from_bytes(b"GEAR", "big")
        assert connection.pragma("journal_mode") == "wal"


def test_file_whose_creation_was_interrupted_is_completed(path: Path, opened: Opened) -> None:
    """The server was killed when the file was there and its tables were not."""
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.pragma("journal_mode", "WAL")
    assert path.stat().st_size > 0
    store = opened()
    store.commit(batch([job(1)]))
    assert ids(store) == [1]


def test_folder_is_created(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a" / "b" / "jobs.db")
    assert store.open() == 1
    store.close(1)


def test_time_of_jobs_is_exact(opened: Opened) -> None:
    """Order depends on it: microseconds must not be rounded away."""
    times = [NOW + step / 1_000_000 for step in range(1000)]
    store = opened()
    store.commit(batch(job(id, run_at=time) for id, time in enumerate(times, 1)))
    assert [row[7] for row in rows(opened())] == times


def test_failed_jobs_have_the_columns_of_jobs(opened: Opened, path: Path) -> None:
    opened()
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        tables = [connection.execute(f"PRAGMA table_info({name})").fetchall() for name in ("jobs", "failed_jobs")]
    assert tables[0] == tables[1]
