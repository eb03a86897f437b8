"""Damaged files: what can be read is carried over, the file is kept, and ids from before never come back."""

import contextlib
import os
import random
from pathlib import Path

import apsw
import pytest

from geartrain.errors import StoreError
from geartrain.store import salvage
from geartrain.store.sqlite import SqliteStore
from tests.contract.stores.factories import batch, ids, job, record, records, rows
from tests.support import store_files
from tests.support.store_fixtures import Opened

COUNT = 1000
ALL = list(range(1, COUNT + 1))

# A server looks through a file that was not left in good order; in one that was, only reading finds the damage.
both_ways = pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])


def used_before(path: Path) -> None:
    """A server has kept its jobs here: what is there now is what is left of them."""
    path.with_name(path.name + ".lock").touch()


def report(caplog: pytest.LogCaptureFixture) -> dict[str, object]:
    """What the one report of damage says."""
    (entry,) = (entry for entry in caplog.records if entry.levelname == "ERROR")
    assert entry.getMessage() == "store is damaged; readable jobs were copied to a new file"
    fields: dict[str, object] = entry.__dict__["fields"]
    return fields


@pytest.mark.parametrize("content", [b"no database\n" * 1000, bytes(100_000), b"short"], ids=["text", "zeros", "short"])
def test_file_that_is_no_database_is_kept(
    path: Path, opened: Opened, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    used_before(path)
    path.write_bytes(content)
    store = opened()
    assert ids(store) == []
    (kept,) = store_files.aside(path)
    assert kept.read_bytes() == content
    said = report(caplog)
    assert (said["file"], said["kept"], said["jobs"], said["broken"]) == (str(path), str(kept), 0, 0)
    store.commit(batch([job(1)]))
    assert ids(opened()) == [1]


def test_somebody_elses_file_is_left_alone(path: Path, opened: Opened) -> None:
    """A mistyped path must not cost anybody a file."""
    path.write_bytes(b"root:x:0:0")
    with pytest.raises(StoreError, match="is not a Geartrain store; use another file"):
        opened()
    assert path.read_bytes() == b"root:x:0:0"
    assert store_files.aside(path) == []


def test_empty_file_is_a_new_one(path: Path, opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    path.touch()
    store = opened()
    store.commit(batch([job(1)]))
    assert ids(opened()) == [1]
    assert store_files.aside(path) == []
    assert caplog.records == []


@both_ways
@pytest.mark.parametrize("damaged", [1, 3, 20])
def test_pages_in_the_middle(
    path: Path, opened: Opened, damaged: int, clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    store_files.fill(path, COUNT, clean=clean)
    chosen = random.Random(damaged).sample(store_files.job_leaves(path)[1:-1], damaged)
    lost = store_files.jobs_in(path, *chosen)
    assert lost
    for page in chosen:
        store_files.overwrite(path, page)
    store = opened()
    found = rows(store)
    assert [row[0] for row in found] == [id for id in ALL if id not in lost]
    assert all(row[4] == store_files.payload(int(str(row[0]))) for row in found)
    assert store.saved_values() == {"name": b"value"}
    said = report(caplog)
    assert (said["jobs"], said["kept"]) == (COUNT - len(lost), str(store_files.aside(path)[0]))


@both_ways
@pytest.mark.parametrize("position", [0, -1], ids=["first", "last"])
def test_page_at_an_end(path: Path, opened: Opened, position: int, clean: bool) -> None:
    store_files.fill(path, COUNT, clean=clean)
    page = store_files.job_leaves(path)[position]
    lost = store_files.jobs_in(path, page)
    assert lost
    store_files.overwrite(path, page)
    assert ids(opened()) == [id for id in ALL if id not in lost]


@both_ways
def test_ids_with_a_wide_gap_in_them(path: Path, opened: Opened, clean: bool) -> None:
    """Each start after a kill leaves ten million ids out. Damage beside such a gap loses nothing beyond it."""
    early, late = list(range(1, 1001)), list(range(20_000_001, 20_001_001))
    store_files.fill(path, 1000, clean=True)
    store_files.fill(path, 1000, clean=clean, first=late[0])
    (page,) = (page for page in store_files.job_leaves(path) if 1000 in store_files.jobs_in(path, page))
    lost = store_files.jobs_in(path, page)
    store_files.overwrite(path, page)
    assert ids(opened()) == [id for id in early + late if id not in lost]


@both_ways
@pytest.mark.parametrize("left", [0.9, 0.5, 0.1])
@pytest.mark.parametrize("extra", [0, 100, 4000], ids=["at a page", "early in a page", "late in a page"])
def test_file_that_was_cut_off(path: Path, opened: Opened, left: float, extra: int, clean: bool) -> None:
    store_files.fill(path, COUNT, clean=clean)
    size = int(path.stat().st_size * left) // store_files.PAGE * store_files.PAGE
    whole = [page for page in store_files.job_leaves(path) if page * store_files.PAGE <= size]
    readable = store_files.jobs_in(path, *whole)
    os.truncate(path, size + extra)
    store = opened()
    found = set(ids(store))
    assert readable <= found
    assert all(row[4] == store_files.payload(int(str(row[0]))) for row in rows(store) if row[0] in readable)
    assert found <= set(ALL), "nothing is made up"
    store.commit(batch([job(store_files.PROMISED + 1)]))
    assert len(store_files.aside(path)) == 1


@both_ways
def test_first_page(path: Path, opened: Opened, clean: bool) -> None:
    """Without it nothing can be read; the server starts all the same."""
    store_files.fill(path, COUNT, clean=clean)
    store_files.overwrite(path, 1)
    before = path.read_bytes()
    assert ids(opened()) == []
    (kept,) = store_files.aside(path)
    assert kept.read_bytes() == before


def test_file_that_was_emptied_beside_its_log(path: Path, opened: Opened) -> None:
    """SQLite would throw the log away; it holds every job."""
    store_files.fill_log(path, 50)
    os.truncate(path, 0)
    assert ids(opened()) == list(range(1, 51))
    assert len(store_files.aside(path)) == 1


def test_first_page_that_is_in_the_log_as_well(path: Path, opened: Opened) -> None:
    store_files.fill_log(path, 50)
    store_files.overwrite(path, 1)
    assert ids(opened()) == list(range(1, 51))


@pytest.mark.parametrize("left", [0.0, 0.3, 0.7, 0.99])
def test_log_that_was_cut_off_ends_at_its_last_whole_batch(path: Path, opened: Opened, left: float) -> None:
    store = SqliteStore(path)
    store.open()
    for number in range(20):
        store.commit(batch(job(id, payload=store_files.payload(id)) for id in range(number * 5 + 1, number * 5 + 6)))
    main, log = path.read_bytes(), store_files.log(path).read_bytes()
    store.close(101)
    path.write_bytes(main)
    store_files.log(path).write_bytes(log[: int(len(log) * left)])
    found = ids(opened())
    assert found == list(range(1, len(found) + 1))
    assert len(found) % 5 == 0
    assert store_files.aside(path) == [], "a log that ends early is no damage"


@both_ways
def test_ids_from_before_never_come_back(path: Path, clean: bool) -> None:
    store_files.fill(path, COUNT, clean=clean)
    store_files.overwrite(path, store_files.job_leaves(path)[-1])
    store = SqliteStore(path)
    assert store.open() >= store_files.PROMISED
    store.close(store_files.PROMISED)


def test_ids_never_come_back_without_a_promise_that_can_be_read(path: Path) -> None:
    """The clock is what is left. It moves on by more than servers do that are killed again and again."""
    used_before(path)
    seen = 0
    for _ in range(3):
        path.write_bytes(b"nothing" * 1000)
        store = SqliteStore(path)
        first = store.open()
        assert first > seen
        seen = first + 1000
        store.commit(batch(ids_until=seen))
        store.close(seen)


def test_every_damaged_file_is_kept(path: Path, opened: Opened) -> None:
    """Two in the same second must not take each other's name."""
    used_before(path)
    contents = [b"damaged %d\n" % number * 1000 for number in range(3)]
    for content in contents:
        store = SqliteStore(path)
        path.write_bytes(content)
        store.open()
        store.close(1)
    assert [kept.read_bytes() for kept in store_files.aside(path)] == contents


@both_ways
def test_damage_is_found_once(path: Path, opened: Opened, clean: bool) -> None:
    store_files.fill(path, COUNT, clean=clean)
    page = store_files.job_leaves(path)[50]
    lost = store_files.jobs_in(path, page)
    store_files.overwrite(path, page)
    left = [id for id in ALL if id not in lost]
    store = opened()
    assert ids(store) == left
    store.commit(batch([job(store_files.PROMISED)], ids_until=store_files.PROMISED + 1000))
    assert ids(opened()) == [*left, store_files.PROMISED]
    assert ids(opened()) == [*left, store_files.PROMISED]
    assert len(store_files.aside(path)) == 1


def test_damage_that_a_commit_finds_is_repaired_at_the_next_start(path: Path) -> None:
    """The stop that follows must not leave the word that all is well."""
    store_files.fill(path, 100, clean=True)
    store_files.overwrite(path, store_files.root(path, "records"))
    store = SqliteStore(path)
    store.open()
    assert ids(store) == list(range(1, 101))
    with pytest.raises(StoreError, match="malformed"):
        store.commit(batch(finished=[record(1)]))
    store.close(store_files.PROMISED)
    assert store_files.aside(path) == []
    store = SqliteStore(path)
    store.open()
    assert len(store_files.aside(path)) == 1
    store.commit(batch(finished=[record(1)]))
    assert (ids(store), records(store)) == (list(range(2, 101)), [1])
    store.close(store_files.PROMISED)


def test_table_of_values(path: Path, opened: Opened) -> None:
    store_files.fill(path, 100, clean=True)
    store_files.overwrite(path, store_files.root(path, "kept"))
    store = opened()
    assert store.saved_values() == {}
    assert ids(store) == list(range(1, 101))


class PowerCutError(BaseException):
    """Nothing catches it on the way."""


@pytest.mark.parametrize("step", range(6))
def test_salvage_that_is_cut_short_is_finished_by_the_next_start(
    path: Path, opened: Opened, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever rename was the last that happened, no job is lost by it."""
    store_files.fill_log(path, 50)
    log = store_files.log(path).read_bytes()
    store_files.overwrite(path, store_files.root(path, "records"))
    done = 0
    rename = Path.rename

    def rename_or_die(self: Path, target: Path) -> Path:
        nonlocal done
        if done == step:
            raise PowerCutError
        done += 1
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", rename_or_die)
    store = SqliteStore(path)
    with contextlib.suppress(PowerCutError):
        store.open()
        store.close(store_files.PROMISED)
    store._disconnect()
    store._lock.release()
    monkeypatch.undo()
    assert log
    assert ids(opened()) == list(range(1, 51))
    assert not path.with_name("jobs.db.renewed").exists()


def test_salvage_on_a_full_disk_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch, opened: Opened) -> None:
    store_files.fill(path, 100, clean=False)
    store_files.overwrite(path, store_files.root(path, "records"))
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(salvage, "_fill", full)
    with pytest.raises(StoreError, match=r"cannot open .*jobs\.db: database or disk is full"):
        SqliteStore(path).open()
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert ids(opened()) == list(range(1, 101))
