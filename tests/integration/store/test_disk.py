"""Disks that are full, and folders that cannot be written."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from geartrain.errors import StoreError
from geartrain.store.sqlite import SqliteStore
from tests.contract.stores.factories import batch, ids, job, record, records, rows

SIZE = 2 * 1024 * 1024
NOBODY = 65534


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A real file system of two MiB."""
    if os.geteuid() != 0:
        pytest.skip("FULL DISK NOT TESTED: only root can mount a small one")
    with tempfile.TemporaryDirectory(prefix="geartrain-disk-") as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder]
        mounting = subprocess.run(mount, capture_output=True, check=False)
        if mounting.returncode:
            pytest.skip(f"FULL DISK NOT TESTED: {mounting.stderr.decode().strip()}")
        yield Path(folder)
        # Lazily: a test that failed may have left a file open.
        subprocess.run(["umount", "--lazy", folder], check=True, capture_output=True)


def fill(folder: Path, left: int = 0) -> Path:
    """Use up the disk, but for so many bytes."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    os.truncate(ballast, ballast.stat().st_size - left)
    return ballast


@pytest.mark.parametrize("left", range(0, 96 * 1024, 12 * 1024))
def test_commit_on_a_full_disk_leaves_nothing_half_written(small_disk: Path, left: int) -> None:
    path = small_disk / "jobs.db"
    store = SqliteStore(path)
    store.open()
    store.commit(batch([job(1), job(2)], ids_until=1000))
    before = rows(store)
    ballast = fill(small_disk, left)
    large = batch([job(1, attempts=9), *(job(id, payload=bytes(20_000)) for id in range(10, 20))], [record(2)])
    with pytest.raises(StoreError, match=r"cannot write .*jobs\.db: .*full"):
        store.commit(large)
    assert (rows(store), records(store)) == (before, [])
    ballast.unlink()
    store.commit(large)
    expected = [1, *range(10, 20)]
    assert (ids(store), records(store)) == (expected, [2])
    store.close(1000)
    store = SqliteStore(path)
    store.open()
    assert (ids(store), records(store)) == (expected, [2])
    store.close(1000)


def test_store_that_was_killed_on_a_full_disk_has_what_was_committed(small_disk: Path, tmp_path: Path) -> None:
    path = small_disk / "jobs.db"
    store = SqliteStore(path)
    store.open()
    committed = []
    for id in range(1, 1000):
        try:
            store.commit(batch([job(id, payload=bytes(10_000))]))
        except StoreError:
            break
        committed.append(id)
    assert 10 < len(committed) < 999
    for name in ("jobs.db", "jobs.db-wal"):
        (tmp_path / name).write_bytes((small_disk / name).read_bytes())
    store.close(1000)
    after = SqliteStore(tmp_path / "jobs.db")
    after.open()
    assert ids(after) == committed
    after.close(1000)


def test_store_that_cannot_open_on_a_full_disk_says_so(small_disk: Path) -> None:
    """And after that, with room again, it has its jobs."""
    path = small_disk / "jobs.db"
    store = SqliteStore(path)
    store.open()
    store.commit(batch([job(1)]))
    store.close(2)
    ballast = fill(small_disk)
    with pytest.raises(StoreError, match=r"cannot (open|write) .*jobs\.db: .*(full|I/O error)"):
        SqliteStore(path).open()
    ballast.unlink()
    store = SqliteStore(path)
    store.open()
    assert ids(store) == [1]
    store.close(2)


@pytest.fixture
def without_rights() -> Iterator[Path]:
    """A folder that cannot be written by whoever runs the test; root becomes nobody for it."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "closed")
        folder.mkdir()
        Path(name).chmod(0o755)
        folder.chmod(0o555)
        if root:
            os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o755)


def test_folder_that_cannot_be_written(without_rights: Path) -> None:
    with pytest.raises(StoreError, match=r"^cannot write .*jobs\.db\.lock: Permission denied$"):
        SqliteStore(without_rights / "jobs.db").open()


def test_folder_that_cannot_be_made(without_rights: Path) -> None:
    with pytest.raises(StoreError, match=r"^cannot create the folder .*/deeper: Permission denied$"):
        SqliteStore(without_rights / "deeper" / "jobs.db").open()


def test_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"^cannot create the folder .*/file: File exists$"):
        SqliteStore(tmp_path / "file" / "jobs.db").open()
