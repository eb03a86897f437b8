"""One server per file, and who has it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from geartrain.errors import StoreError
from geartrain.store.lock import FileLock
from geartrain.store.sqlite import SqliteStore
from tests.contract.stores import killed_writer
from tests.contract.stores.factories import batch, ids, job
from tests.support.store_fixtures import Opened


def test_second_store_in_this_process_is_refused(opened: Opened, path: Path) -> None:
    opened()
    with pytest.raises(StoreError, match=rf"jobs\.db is in use by process {os.getpid()};"):
        SqliteStore(path).open()


def test_refused_store_does_no_harm_to_the_first(opened: Opened, path: Path) -> None:
    first = opened()
    for _ in range(3):
        with pytest.raises(StoreError):
            SqliteStore(path).open()
    first.commit(batch([job(1)]))
    assert ids(first) == [1]


def test_file_is_free_after_close(path: Path) -> None:
    for _ in range(3):
        store = SqliteStore(path)
        store.open()
        store.close(1)


def test_lock_is_released_when_its_holder_is_killed(path: Path) -> None:
    command = [sys.executable, killed_writer.__file__, "sqlite", str(path.parent), "5"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"1\n"
        with pytest.raises(StoreError, match=rf"is in use by process {holder.pid};"):
            SqliteStore(path).open()
        holder.kill()
    store = SqliteStore(path)
    store.open()
    assert ids(store) == [5]
    store.close(6)


def test_store_that_cannot_open_its_file_gives_the_lock_back(path: Path) -> None:
    path.write_text("not a database " * 1000)
    with pytest.raises(StoreError, match=r"jobs\.db is not a Geartrain store; "):
        SqliteStore(path).open()
    path.unlink()
    store = SqliteStore(path)
    store.open()
    store.close(1)


def test_descriptor_is_closed_when_the_lock_is_refused(opened: Opened, path: Path) -> None:
    opened()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with pytest.raises(StoreError):
            SqliteStore(path).open()
    assert len(os.listdir("/proc/self/fd")) == before


def test_lock_file_that_names_nobody(path: Path) -> None:
    """Somebody emptied it, or its holder could not write: the lock counts, not the text."""
    holder = FileLock(path)
    holder.acquire()
    os.truncate(f"{path}.lock", 0)
    with pytest.raises(StoreError, match="is in use by process unknown;"):
        FileLock(path).acquire()
    holder.release()
    holder.release()


def test_lock_is_for_its_owner_alone(opened: Opened, path: Path) -> None:
    opened()
    assert {file.name: file.stat().st_mode & 0o077 for file in path.parent.iterdir()} == dict.fromkeys(
        ("jobs.db", "jobs.db-wal", "jobs.db-shm", "jobs.db.lock"), 0
    )
