"""Stores with jobs, and ways to damage them."""

from pathlib import Path
from typing import Any

import apsw

from geartrain.model import Job
from geartrain.store import contract
from geartrain.store.contract import Record
from geartrain.store.sqlite import SqliteStore

NEXT_ID = 5000


def job(id: int, **changes: Any) -> Job:
    made = Job(id, b"H:host:%d" % id, b"reverse", b"", b"test", 1, True, 5.0, 5.0, "gearman")
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def fill(path: Path, *jobs: Job, over: int = 0) -> None:
    """A file with these jobs, and with records of `over` others."""
    store = SqliteStore(path)
    store.open()
    batch = contract.Batch()
    batch.changed = [contract.row(made) for made in jobs]
    batch.finished = [
        Record(id, b"H:host:%d" % id, b"f", b"", 1, 3, 1.0, 2.0, 3.0, 1, "g", "g", b"w", 0, "", b"done")
        for id in range(1000, 1000 + over)
    ]
    store.commit(batch)
    store.close(NEXT_ID)


def change(path: Path, statement: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()


def damage(path: Path) -> None:
    """Overwrite everything but the first page."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
