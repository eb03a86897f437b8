"""Records and results in the SQLite file: adding, reading, and removing what exceeds the quotas.

Whoever removes a record here removes all that is kept of the job: the rest of its result, its log, and the job as a
whole if it failed.

A record is *ordinary* if its job did not fail and it has no time of its own (`keep_until`, `remove_at`). Ordinary
records are added at the end and removed at the front. The others stay between them, so there is a place up to which all
ordinary ones are gone.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import apsw

from geartrain.model import JobState
from geartrain.store import schema, sqlite_budget
from geartrain.store.contract import FAILED, RECORD_COLUMNS, Quota, Record, ResultLimits, Retention
from geartrain.store.sqlite_failed_jobs import FailedJobTable
from geartrain.store.sqlite_insert import RowInsert
from geartrain.store.sqlite_logs import LogTable
from geartrain.store.transaction import transaction

_PRUNE_BATCH: Final = 1000
# SQLite refuses larger values than 1,000,000,000 bytes, and a batch that it refuses would never be written.
_LARGEST_VALUE: Final = 512 * 1024 * 1024

_ADD_RECORDS: Final = RowInsert("records", RECORD_COLUMNS)
# How the rows of most records end, from the column `trials` on.
_USUAL_END: Final = (b"", True, 0, 0, 0.0, 0.0, "")
_USUAL: Final = len(RECORD_COLUMNS) - len(_USUAL_END)
_ADD_USUAL: Final = RowInsert(
    "records", RECORD_COLUMNS, values=[*schema.MARK * _USUAL, *map(schema.literal, _USUAL_END)]
)
_ADD_REST: Final = schema.insert("results", ("id", "rest"), otherwise="OR REPLACE")
_HAS_NO_TIME: Final = "keep_until = 0 AND remove_at = 0"
_IS_ORDINARY: Final = f"state <> {FAILED} AND {_HAS_NO_TIME}"
_IS_FAILED: Final = f"state = {FAILED} AND {_HAS_NO_TIME}"  # the condition of the index records_failed
_SELECT_ORDINARY: Final = f"SELECT seq, finished_at FROM records WHERE seq > ? AND {_IS_ORDINARY} ORDER BY seq LIMIT ?"
_SELECT_FAILED: Final = f"SELECT seq, finished_at FROM records WHERE {_IS_FAILED} ORDER BY finished_at LIMIT ?"
_SELECT_EXPIRED: Final = (
    "SELECT seq FROM records WHERE keep_until > 0 AND keep_until < ? "
    f"AND finished_at < CASE state WHEN {FAILED} THEN ? ELSE ? END ORDER BY keep_until LIMIT {_PRUNE_BATCH}"
)
_SELECT_OVERDUE: Final = (
    f"SELECT seq FROM records WHERE remove_at > 0 AND remove_at < ? ORDER BY remove_at LIMIT {_PRUNE_BATCH}"
)


class RecordTable:
    """The tables `records` and `results` of one open file."""

    def __init__(self, limits: ResultLimits) -> None:
        largest = min(limits.largest, _LARGEST_VALUE)
        self._result_limit = min(limits.inline, largest)
        self._largest = largest
        self._total = limits.total
        self.failed_jobs = FailedJobTable(limits.failed)
        self.logs = LogTable(limits.logs)
        self.reset()

    def reset(self) -> None:
        """Count again at the next use: the file was opened, or a change of it failed."""
        self._ordinary: int | None = None  # number of ordinary records
        self._failed: int | None = None  # number of records of failed jobs that have no time of their own
        self._rest_bytes: int | None = None  # of all rows of `results`
        self._ordinary_after = 0  # all ordinary records have a higher `seq`
        self.failed_jobs.reset()
        self.logs.reset()

    def add(self, connection: apsw.Connection, finished: Sequence[Record]) -> None:
        """Add records, within a transaction. A large result is divided between its record and a row of `results`."""
        limit = self._result_limit
        rests = [(record.id, record.result[limit : self._largest]) for record in finished if len(record.result) > limit]
        if rests:
            finished = [self._shortened(record) if len(record.result) > limit else record for record in finished]
        for is_usual, alike in itertools.groupby(finished, _is_usual):
            if is_usual:
                _ADD_USUAL.execute(connection, [record[:_USUAL] for record in alike])
            else:
                _ADD_RECORDS.execute(connection, list(alike))
        if rests:  # after the records, which say how much is kept: the rest of one of them may have to go at once
            self._add_rests(connection, rests)

    def count_added(self, finished: Sequence[Record]) -> None:
        """Count records that were committed."""
        if self._ordinary is None or self._failed is None:
            return
        kept = [record for record in finished if record.state == FAILED or record.keep_until or record.remove_at]
        self._ordinary += len(finished) - len(kept)
        self._failed += sum(not record.keep_until and not record.remove_at for record in kept)

    def remove(self, connection: apsw.Connection, id: int, keep_log: bool = False) -> None:
        """Remove the record of one job with all that is kept of it, within a transaction."""
        self.failed_jobs.remove(connection, [id])
        if not keep_log:
            self.logs.remove(connection, [id])
        length: Any = connection.execute("SELECT length(rest) FROM results WHERE id = ?", (id,)).get
        if length is not None:
            connection.execute("DELETE FROM results WHERE id = ?", (id,))
            if self._rest_bytes is not None:
                self._rest_bytes -= length
        connection.execute("DELETE FROM records WHERE id = ?", (id,))
        self._ordinary = self._failed = None  # to be counted again

    def prune(self, connection: apsw.Connection, now: float, retention: Retention) -> int:
        """Remove a bounded number of records that exceed the quotas; return how many."""
        if self._ordinary is None or self._failed is None:
            self._count(connection)
        assert self._ordinary is not None
        assert self._failed is not None
        ordinary = self._excess_ordinary(connection, now, retention.done)
        failed = _excess(
            lambda most: connection.execute(_SELECT_FAILED, (most,)).fetchall(), now, retention.failed, self._failed
        )
        times = (now, now - retention.failed.seconds, now - retention.done.seconds)
        expired: list[Any] = connection.execute(_SELECT_EXPIRED, times).fetchall()
        overdue: list[Any] = connection.execute(_SELECT_OVERDUE, (now,)).fetchall()
        others = [*failed, *(row[0] for row in (*expired, *overdue))]
        if ordinary or others:
            with transaction(connection):
                self._remove_ordinary(connection, ordinary)
                self._remove(connection, others)
            self._ordinary -= len(ordinary)
            self._failed -= len(failed)
            # SQLite numbers on from the highest that is left.
            newest: Any = connection.execute("SELECT max(seq) FROM records").get
            self._ordinary_after = min(ordinary[-1] if ordinary else self._ordinary_after, newest or 0)
        return len(ordinary) + len(others)

    def _add_rests(self, connection: apsw.Connection, rests: list[tuple[int, bytes]]) -> None:
        """Add the rests of large results, and remove the oldest ones that exceed the total."""
        connection.executemany(_ADD_REST, rests)
        if self._rest_bytes is None:
            self._rest_bytes = sqlite_budget.total(connection, "results", "rest")
        else:
            self._rest_bytes += sum(len(rest) for _, rest in rests)
        if self._rest_bytes > self._total:
            self._remove_oldest_rests(connection, self._rest_bytes - self._total)

    def _remove_oldest_rests(self, connection: apsw.Connection, excess: int) -> None:
        """Remove rests of at least this many bytes; their records say that only the beginning is kept."""
        ids, size = sqlite_budget.oldest(connection, "results", "rest", excess)
        removed = [(id,) for id in ids]
        connection.executemany("DELETE FROM results WHERE id = ?", removed)
        connection.executemany("UPDATE records SET result_kept = length(result) WHERE id = ?", removed)
        assert self._rest_bytes is not None
        self._rest_bytes -= size

    def _shortened(self, record: Record) -> Record:
        kept = min(len(record.result), self._largest)
        return record._replace(
            result=record.result[: self._result_limit], result_size=record.full_size, result_kept=kept
        )

    def _excess_ordinary(self, connection: apsw.Connection, now: float, quota: Quota) -> list[int]:
        assert self._ordinary is not None
        if not self._ordinary:
            return []  # without a walk over all the others

        def oldest(most: int) -> list[Any]:
            rows: list[Any] = connection.execute(_SELECT_ORDINARY, (self._ordinary_after, most)).fetchall()
            if rows:
                self._ordinary_after = rows[0][0] - 1
            return rows

        return _excess(oldest, now, quota, self._ordinary)

    def _remove_ordinary(self, connection: apsw.Connection, numbers: list[int]) -> None:
        if not numbers:
            return
        where = f"seq BETWEEN ? AND ? AND {_IS_ORDINARY}"
        span = (numbers[0], numbers[-1])
        rests = f"SELECT id FROM records WHERE {where} AND result_size > 0"
        connection.execute(f"DELETE FROM results WHERE id IN ({rests})", span)
        if connection.changes():
            self._rest_bytes = None
        self.logs.remove_with_records(connection, where, span)
        connection.execute(f"DELETE FROM records WHERE {where}", span)

    def _remove(self, connection: apsw.Connection, numbers: list[int]) -> None:
        rows = [(number,) for number in numbers]
        if rows:
            self._rest_bytes = None
            ids: list[Any] = [connection.execute("SELECT id FROM records WHERE seq = ?", row).get for row in rows]
            self.failed_jobs.remove(connection, ids)
            self.logs.remove(connection, ids)
            connection.executemany("DELETE FROM results WHERE id = (SELECT id FROM records WHERE seq = ?)", rows)
            connection.executemany("DELETE FROM records WHERE seq = ?", rows)

    def _count(self, connection: apsw.Connection) -> None:
        counts: Any = connection.execute(
            "SELECT (SELECT count(*) FROM records), "
            f"(SELECT count(*) FROM records WHERE {_IS_FAILED}), (SELECT count(*) FROM records WHERE keep_until > 0), "
            "(SELECT count(*) FROM records WHERE remove_at > 0)"
        ).get
        self._ordinary = counts[0] - sum(counts[1:])
        self._failed = counts[1]


def _is_usual(record: Record) -> bool:
    return record[_USUAL:] == _USUAL_END


def ends(connection: apsw.Connection, first: int, last: int) -> dict[int, JobState]:
    """How those jobs with ids in this range have ended that have a record, by id."""
    rows: Any = connection.execute("SELECT id, state FROM records WHERE id BETWEEN ? AND ?", (first, last))
    return {id: JobState(state) for id, state in rows}


def _excess(oldest: Callable[[int], list[Any]], now: float, quota: Quota, count: int) -> list[int]:
    """The numbers of the oldest records that are too old or too many.

    `oldest` returns at most so many rows with `seq` and `finished_at`. Only from the front: if the clock went back,
    records that look old stay until those before them are gone.
    """
    too_many = count - quota.most
    before = now - quota.seconds
    if too_many <= 0 and not any(row[1] < before for row in oldest(1)):
        return []  # which is nearly always so
    old = itertools.takewhile(lambda row: row[1][1] < before or row[0] < too_many, enumerate(oldest(_PRUNE_BATCH)))
    return [row[0] for _, row in old]


def read_rest(connection: apsw.Connection, id: int) -> bytes:
    """The rest of a large result; empty if it was removed, or the file is of an older layout."""
    if not connection.table_exists("main", "results"):
        return b""
    rest: Any = connection.execute("SELECT rest FROM results WHERE id = ?", (id,)).get
    return b"" if rest is None else bytes(rest)
