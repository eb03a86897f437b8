"""What a store does: the whole contract, for memory, SQLite and whatever comes later.

A store keeps the jobs that are not over (background jobs only, dead ones included), each under its id, records of
jobs that are over, and a few values under names. It learns of them in batches; a batch is durable as a whole when
`commit` returns, or not at all when it raises StoreError, and may then be offered again.

A store belongs to one server from `open` to `close`. One that several servers share hands out disjoint ranges of
ids, and gives to each server at `jobs` only what no other living server has.

`open`, `jobs` and `close` are called before and after serving. While serving, `commit` and `prune` come from one
thread of the server's and `records` from any, never from its loop, so they may take their time.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol, TypeVar

from geartrain.model import Job, pack_attempts
from geartrain.model import Record as Record
from geartrain.store.memory_record import MemoryRecord

J = TypeVar("J", bound=Job)


class Batch:
    """Everything that one commit makes durable, in the order in which it happened for each job."""

    __slots__ = ("finished", "ids_until", "saved_jobs", "saved_values")

    def __init__(self) -> None:
        self.saved_jobs: list[tuple[object, ...]] = []  # rows of `row`, each in the place of an older one of its id
        self.finished: list[Record] = []  # the jobs with these ids are over
        self.saved_values: dict[str, bytes] = {}  # values under names, each in the place of an older one
        self.ids_until = 0  # promise never to give out an id below this again; 0: no new promise

    def __bool__(self) -> bool:
        return bool(self.saved_jobs or self.finished or self.saved_values or self.ids_until)


class Query(NamedTuple):
    """Which records to give: those that fit everything that is set, the last that ended first."""

    handle: bytes = b""
    function: bytes = b""
    state: int = -1
    since: float = 0.0  # finished at or after
    until: float = 0.0  # finished before; 0: up to now
    limit: int = 100
    search: bytes = b""  # part of the handle, the function, the unique key or the reason
    door: str = ""  # that submitted it
    below: int = 0  # only ids below this; 0: all
    by_id: bool = False  # the highest id first, instead

    def fits(self, record: Record | MemoryRecord) -> bool:
        """Whether a record is asked for."""
        return (
            (not self.handle or record.handle == self.handle)
            and (not self.function or record.function == self.function)
            and (self.state < 0 or record.state == self.state)
            and record.finished_at >= self.since
            and (not self.until or record.finished_at < self.until)
            and (not self.below or record.id < self.below)
            and (not self.door or record.door == self.door)
            and (not self.search or any(self.search in part for part in _searched(record)))
        )


def _searched(record: Record | MemoryRecord) -> tuple[bytes, ...]:
    return (record.handle, record.function, record.unique, record.reason.encode())


class Store(Protocol):
    """Every store is one of these, and passes tests/contract/stores."""

    durable: bool  # whether a commit outlives the process

    def open(self) -> int:
        """Take the store for this server, or StoreError; returns the first id that was never promised."""

    def jobs(self, kind: type[J]) -> Iterator[J]:
        """Every job that is not over, by id, made as objects of `kind`: a million of them are not copied again.

        What cannot be read is set aside and reported, never raised.
        """

    def saved_values(self) -> dict[str, bytes]:
        """Every value that was kept under a name."""

    def commit(self, batch: Batch) -> None:
        """Make a batch durable, all of it or, with a StoreError, nothing of it."""

    def records(self, query: Query) -> list[Record]:
        """Records of jobs that are over."""

    def prune(self, before: float, keep: int) -> int:
        """Forget some records that finished before a time or are more than `keep`; how many. 0: none are left."""

    def close(self, next_id: int) -> None:
        """Give the store back; ids from `next_id` on were not used."""


# A job as a row. Every store uses this order, so that the loop makes the row once and nobody rearranges it.
COLUMNS = (
    "id", "handle", "function", "unique_key", "payload", "priority", "state", "run_at", "submitted_at",
    "attempts", "count", "timeout", "reducer", "door", "reason", "trials",
    "keeps_result",
)  # fmt: skip

# A record as a row of the SQLite table: the fields of Record in their order, two of them under older names.
_OLDER_NAMES = {"unique": "unique_key", "failed_attempts": "trials"}
RECORD_COLUMNS = tuple(_OLDER_NAMES.get(name, name) for name in Record._fields)


def row(job: Job) -> tuple[object, ...]:
    """A job as it is at this moment; the loop may change it while a batch is being written."""
    return (
        job.id, job.handle, job.function, job.unique, job.payload, job.priority, job.state, job.run_at,
        job.submitted_at, job.attempts, job.count, job.timeout, job.reducer, job.door, job.reason,
        pack_attempts(job.failed_attempts), job.keeps_result,
    )  # fmt: skip
