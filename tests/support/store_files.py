"""Files with jobs in them, and ways to damage such files."""

import contextlib
import re
import shutil
from pathlib import Path

import apsw

from geartrain.store.sqlite import SqliteStore
from tests.contract.stores.factories import batch, job

PAGE = 4096
PAYLOAD = 500  # so that a page holds a handful of jobs
PROMISED = 50_000_000

_PAYLOAD = re.compile(rb"([1-9][0-9]*)\.x{490}")


def fill(path: Path, count: int, *, clean: bool, first: int = 1) -> None:
    """A file with so many jobs: left in good order, or by a server that was killed when its log was empty."""
    store = SqliteStore(path)
    store.open()
    for start in range(first, first + count, 500):
        jobs = [job(id, payload=payload(id)) for id in range(start, min(start + 500, first + count))]
        store.commit(batch(jobs, ids_until=PROMISED, name=b"value"))
    with contextlib.closing(apsw.Connection(str(path))) as other:
        other.pragma("wal_checkpoint", "TRUNCATE")
    with_copy = path.with_name("copy")
    shutil.copyfile(path, with_copy)
    store.close(PROMISED)
    if clean:
        with_copy.unlink()
    else:
        with_copy.rename(path)


def fill_log(path: Path, count: int) -> None:
    """A file as a server leaves it that was killed when these jobs were in its log only."""
    store = SqliteStore(path)
    store.open()
    store.commit(batch((job(id, payload=payload(id)) for id in range(1, count + 1)), ids_until=PROMISED))
    copies = {file: file.with_name(file.name + ".copy") for file in (path, log(path))}
    for file, copy in copies.items():
        shutil.copyfile(file, copy)
    store.close(PROMISED)
    for file, copy in copies.items():
        copy.rename(file)


def log(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def payload(id: int) -> bytes:
    return (b"%d." % id).ljust(PAYLOAD, b"x")


def job_leaves(path: Path) -> list[int]:
    """The numbers of the pages that hold jobs, in their order in the table; page 1 is the first of the file."""
    with contextlib.closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)) as connection:
        statement = "SELECT pageno FROM dbstat WHERE name = 'jobs' AND pagetype = 'leaf' ORDER BY path"
        return [number for (number,) in connection.execute(statement)]


def root(path: Path, table: str) -> int:
    """The number of the first page of a table."""
    with contextlib.closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)) as connection:
        return int(connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get)


def jobs_in(path: Path, *pages: int) -> set[int]:
    """Which jobs are in these pages, by their payloads."""
    data = path.read_bytes()
    content = b"".join(data[(page - 1) * PAGE : page * PAGE] for page in pages)
    return set(map(int, _PAYLOAD.findall(content)))


def overwrite(path: Path, page: int, data: bytes = b"\xa5" * PAGE) -> None:
    """Damage a page of the file."""
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(data)


def aside(path: Path) -> list[Path]:
    """The damaged files that were kept, without the files beside them."""
    return sorted(path.parent.glob("jobs.db.damaged-*[0-9]"))
