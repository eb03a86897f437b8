"""Writing a dump of a store, whatever its kind."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from geartrain.model import Job
from geartrain.store import dump, rows
from geartrain.store.contract import Record

_REPORT_EVERY: Final = 1000  # jobs or records

_T = TypeVar("_T", Job, Record)

Progress = Callable[[int], None]
Notice = Callable[[str], None]


class DumpCounts(NamedTuple):
    """The contents of a dump."""

    jobs: int
    records: int
    values: int


class DumpSource(Protocol):
    """A view of a store at one moment."""

    @property
    def next_id(self) -> int:
        """The first id that was never reserved."""

    def require_known_layout(self) -> None:
        """Raise StoreError if the contents cannot be read by this version."""

    def saved_values(self) -> Sequence[tuple[str, bytes]]:
        """Every value that was saved under a name, by name."""

    def jobs(self, notice: Notice) -> Iterator[Job]:
        """Every unfinished job by id; invalid rows are skipped, with a call of `notice`."""

    def records(self, only_whole: bool = False) -> Iterator[Record]:
        """Every record, or those of failed jobs that are kept whole, with all that is kept of its result."""

    def failed_job(self, record: Record) -> Job | None:
        """The job of a record as a whole, if it failed and is kept."""


def write(
    source: DumpSource, with_records: bool, write: Callable[[bytes], object], notice: Notice, progress: Progress
) -> DumpCounts:
    """Write a dump; with the records of all finished jobs, or only of those that failed and are kept whole."""
    counts = [0, 0, 0]
    source.require_known_layout()
    write(dump.header(time.time(), source.next_id))
    values = (dump.value_line(dump.SavedValue(*pair)) for pair in source.saved_values())
    jobs = _lines(source.jobs(notice), dump.job_line, notice)
    records = _lines(
        source.records(only_whole=not with_records),
        lambda record: dump.record_line(record, source.failed_job(record)),
        notice,
    )
    for index, lines in ((2, values), (0, jobs), (1, records)):
        for line in lines:
            write(line)
            counts[index] += 1
            if not counts[index] % _REPORT_EVERY:
                progress(sum(counts))
    write(dump.end(*counts))
    return DumpCounts(*counts)


def _lines(entries: Iterable[_T], encode: Callable[[_T], bytes], notice: Notice) -> Iterator[bytes]:
    """Encode each entry as a line; entries that cannot be encoded are reported and skipped."""
    for entry in entries:
        try:
            yield encode(entry)
        except rows.BrokenRowError as broken:
            notice(f"row {entry.id} skipped: {broken}")
