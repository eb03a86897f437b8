"""The stores that are tested against the contract."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import apsw

from geartrain.store.contract import J, ResultLimits, Store
from geartrain.store.memory import MemoryStore
from geartrain.store.postgresql import PostgresqlStore
from geartrain.store.postgresql_connection import Target, connect
from geartrain.store.shared import IdRange
from geartrain.store.sqlite import SqliteStore

FAILING_ID = 666  # while `write_failure` is active, a record with this id cannot be written

DEFAULT_LIMITS = ResultLimits()

WriteFailure = Callable[[], contextlib.AbstractContextManager[None]]


class Backend(NamedTuple):
    """A store in a folder of its own, and a way to make it fail."""

    # Returns a new instance on the same data; a memory store always returns the same instance.
    store: Callable[[], Store]
    # A context in which writing the record with FAILING_ID fails; None: the store cannot fail.
    write_failure: WriteFailure | None


def memory(folder: Path, limits: ResultLimits = DEFAULT_LIMITS) -> Backend:
    store = MemoryStore(limits)
    return Backend(lambda: store, None)


def sqlite(folder: Path, limits: ResultLimits = DEFAULT_LIMITS) -> Backend:
    path = folder / "jobs.db"

    @contextlib.contextmanager
    def write_failure() -> Iterator[None]:
        with contextlib.closing(apsw.Connection(str(path))) as other:
            other.execute(
                f"CREATE TRIGGER write_failure BEFORE INSERT ON records WHEN new.id = {FAILING_ID} "
                "BEGIN SELECT RAISE(ABORT, 'write failure'); END"
            )
            yield
            other.execute("DROP TRIGGER write_failure")

    return Backend(lambda: SqliteStore(path, limits), write_failure)


class WholeStore(PostgresqlStore):
    """A PostgreSQL store that has every job of its schema, whatever its range: the tests choose their own ids."""

    def jobs(self, kind: type[J]) -> Iterator[J]:
        for jobs in self.jobs_of(IdRange(0, 2**63), kind):
            yield from jobs


def postgresql(url: str, limits: ResultLimits = DEFAULT_LIMITS) -> Backend:
    """In a schema of its own."""
    target = Target.of(url)

    @contextlib.contextmanager
    def write_failure() -> Iterator[None]:
        table = f'ALTER TABLE "{target.schema}".records'
        with contextlib.closing(connect(target, 10.0)) as other:
            other.execute(f'{table} ADD CONSTRAINT "write failure" CHECK (id <> {FAILING_ID}) NOT VALID'.encode())
            yield
            other.execute(f'{table} DROP CONSTRAINT "write failure"'.encode())

    return Backend(lambda: WholeStore(url, limits), write_failure)


BACKENDS: dict[str, Callable[..., Backend]] = {"memory": memory, "sqlite": sqlite}  # in a folder
