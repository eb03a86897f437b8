"""The stores that have to keep the contract. A new store is one more entry of PLACES."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import apsw

from geartrain.store.contract import Store
from geartrain.store.memory import MemoryStore
from geartrain.store.sqlite import SqliteStore

ACCIDENT_ID = 666  # a record of this id is one that a store under `accident` cannot write


Accident = Callable[[], contextlib.AbstractContextManager[None]]


class Place(NamedTuple):
    """Where a store keeps its things."""

    # An instance on this place: a new one of a durable store, always the same of one that keeps all in memory.
    store: Callable[[], Store]
    # While it is entered, writing the record with ACCIDENT_ID fails; None if the store cannot fail.
    accident: Accident | None


def memory(folder: Path) -> Place:
    store = MemoryStore()
    return Place(lambda: store, None)


def sqlite(folder: Path) -> Place:
    path = folder / "jobs.db"

    @contextlib.contextmanager
    def accident() -> Iterator[None]:
        with contextlib.closing(apsw.Connection(str(path))) as other:
            other.execute(
                f"CREATE TRIGGER accident BEFORE INSERT ON records WHEN new.id = {ACCIDENT_ID} "
                "BEGIN SELECT RAISE(ABORT, 'an accident'); END"
            )
            yield
            other.execute("DROP TRIGGER accident")

    return Place(lambda: SqliteStore(path), accident)


PLACES: dict[str, Callable[[Path], Place]] = {"memory": memory, "sqlite": sqlite}
