"""Records, results and failed jobs in PostgreSQL: adding, reading, and removing what exceeds the quotas.

Every server adds records; the leader alone prunes them. Sizes and numbers are counted from time to time, because other
servers add to them as well, and in between only what this server has added is.
"""

import time
from collections.abc import Callable, Container, Sequence
from typing import Any, Final

from psycopg import sql

from geartrain.model import FailedPayload, id_from_handle
from geartrain.store import postgresql_rows as packed
from geartrain.store import rows
from geartrain.store.contract import (
    COLUMNS,
    FAILED,
    RECORD_COLUMNS,
    J,
    Query,
    Quota,
    Record,
    ResultLimits,
    Retention,
)
from geartrain.store.postgresql_budget import Budget
from geartrain.store.postgresql_connection import Connection
from geartrain.store.postgresql_logs import LogTable
from geartrain.store.postgresql_parameters import Array, insert_columns
from geartrain.store.postgresql_schema import one

_PRUNE_BATCH: Final = 5000
_COUNT_SECONDS: Final = 30.0
_LARGEST_VALUE: Final = 512 * 1024 * 1024  # a field of PostgreSQL has at most 1 GB
_PAYLOAD: Final = COLUMNS.index("payload")
# Within a transaction. PostgreSQL knows little of a table that changes so quickly, and would often read all of it.
_BY_INDEX: Final = "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)"

_IS_ORDINARY: Final = f"state <> {FAILED} AND keep_until = 0 AND remove_at = 0"
_IS_FAILED: Final = f"state = {FAILED} AND keep_until = 0 AND remove_at = 0"


class Statements:
    """The statements of one schema, made once."""

    def __init__(self, schema: str) -> None:
        self._schema = schema
        job_names = ", ".join(COLUMNS)
        self.insert_failed = self._sql(insert_columns("failed_jobs", COLUMNS, packed.JOB_TYPES))
        self.insert_rests = self._sql(insert_columns("results", ("id", "rest"), (packed.INT8, packed.BYTEA)))
        self.delete_records = self._sql("DELETE FROM {s}.records WHERE id = ANY(%b)")
        self.delete_rests = self._sql("DELETE FROM {s}.results WHERE id = ANY(%b)")
        self.delete_failed = self._sql("DELETE FROM {s}.failed_jobs WHERE id = ANY(%b)")
        self.rest = self._sql("SELECT rest FROM {s}.results WHERE id = %s")
        self.rest_bytes = self._sql("SELECT coalesce(sum(octet_length(rest)), 0) FROM {s}.results")
        self.failed_bytes = self._sql("SELECT coalesce(sum(octet_length(payload)), 0) FROM {s}.failed_jobs")
        self.oldest_rests = self._sql("SELECT id, octet_length(rest) FROM {s}.results ORDER BY id")
        self.oldest_failed = self._sql("SELECT id, octet_length(payload) FROM {s}.failed_jobs ORDER BY id")
        self.cut_records = self._sql("UPDATE {s}.records SET result_kept = octet_length(result) WHERE id = ANY(%b)")
        self.payloads = self._sql(
            "SELECT id, octet_length(payload), substring(payload FROM 1 FOR %s) FROM {s}.failed_jobs WHERE id = ANY(%b)"
        )
        self.failed_sizes = self._sql("SELECT id, octet_length(payload) FROM {s}.failed_jobs WHERE id = ANY(%b)")
        self.failed = self._sql(f"SELECT {job_names} FROM {{s}}.failed_jobs WHERE id = ANY(%b)")
        self.counts = self._sql(
            f"SELECT count(*) FILTER (WHERE {_IS_ORDINARY}), count(*) FILTER (WHERE {_IS_FAILED}) FROM {{s}}.records"
        )
        oldest = "ORDER BY {order} LIMIT %s"
        self.ordinary = self._sql(
            f"SELECT id, finished_at FROM {{s}}.records WHERE {_IS_ORDINARY} {oldest.format(order='seq')}"
        )
        self.failures = self._sql(
            f"SELECT id, finished_at FROM {{s}}.records WHERE {_IS_FAILED} {oldest.format(order='finished_at')}"
        )
        self.expired = self._sql(
            "SELECT id FROM {s}.records WHERE keep_until > 0 AND keep_until < %s "
            f"AND finished_at < CASE state WHEN {FAILED} THEN %s ELSE %s END {oldest.format(order='keep_until')}"
        )
        self.overdue = self._sql(
            f"SELECT id FROM {{s}}.records WHERE remove_at > 0 AND remove_at < %s {oldest.format(order='remove_at')}"
        )

    def _sql(self, text: str) -> sql.Composed:
        return sql.SQL(text).format(s=sql.Identifier(self._schema))

    def select(self, query: Query) -> tuple[sql.Composed, list[Any]]:
        """The statement of a query, and its values."""
        tests: list[tuple[str, Any]] = [
            ("handle = %b", query.handle), ("function = %b", query.function), ("finished_at >= %s", query.since),
            ("finished_at < %s", query.until), ("id < %s", query.below), ("id >= %s", query.least),
            ("door = %s", query.door),
        ]  # fmt: skip
        conditions = [test for test, value in tests if value]
        values = [value for _, value in tests if value]
        if query.search:
            texts = ("handle", "function", "unique_key", "reason")
            found = [f"position(%b IN {name}) > 0" for name in texts]
            found.append("id IN (SELECT id FROM {s}.failed_jobs WHERE position(%b IN payload) > 0)")
            conditions.append(f"({' OR '.join(found)})")
            values += [query.search] * len(found)
        if id := id_from_handle(query.handle):
            conditions.append("id = %s")  # which has an index
            values.append(id)
        if query.state >= 0:
            conditions.append("state = %s")
            values.append(query.state)
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        order = "id DESC, seq" if query.by_id else "seq"
        text = f"SELECT {', '.join(RECORD_COLUMNS)} FROM {{s}}.records {where} ORDER BY {order} DESC LIMIT %s"
        return self._sql(text), [*values, query.limit]


class RecordTable:
    """The tables `records`, `results` and `failed_jobs`."""

    def __init__(self, schema: str, limits: ResultLimits) -> None:
        self.statements = Statements(schema)
        largest = min(limits.largest, _LARGEST_VALUE)
        self._inline = min(limits.inline, largest)
        self._largest = largest
        self._rests = Budget(limits.total)
        self._payloads = Budget(limits.failed)
        self.logs = LogTable(schema, limits.logs)
        self.reset()

    def reset(self) -> None:
        """Count again at the next use: the store was opened, or a change of it failed."""
        self._counts: tuple[int, int] | None = None  # of ordinary records, and of those of failed jobs
        self._counted_at = 0.0
        self._recount()

    def _recount(self) -> None:
        self._rests.size = self._payloads.size = self.logs.budget.size = None

    def divide(self, finished: Sequence[Record]) -> tuple[Sequence[Record], list[tuple[int, bytes]]]:
        """The records as they are stored, and the rests of results that are too large for them."""
        inline = self._inline
        rests = [
            (record.id, record.result[inline : self._largest]) for record in finished if len(record.result) > inline
        ]
        if rests:
            finished = [self._shortened(record) if len(record.result) > inline else record for record in finished]
        return finished, rests

    def add_rests(self, connection: Connection, rests: list[tuple[int, bytes]]) -> None:
        """Add the rests of large results, within a transaction; the oldest ones that exceed the total are removed."""
        ids = [id for id, _ in rests]
        self.delete(connection, self.statements.delete_rests, ids)
        connection.execute(
            self.statements.insert_rests, list(map(Array, packed.columns((packed.INT8, packed.BYTEA), rests)))
        )
        size = sum(len(rest) for _, rest in rests)
        for removed in self._rests.over(connection, size, self.statements.rest_bytes, self.statements.oldest_rests):
            self.delete(connection, self.statements.delete_rests, removed)
            self.delete(connection, self.statements.cut_records, removed)

    def add_failed(self, connection: Connection, failed: Sequence[tuple[Any, ...]]) -> None:
        """Add failed jobs that are kept whole, within a transaction; the oldest ones that exceed the limit go."""
        self.delete(connection, self.statements.delete_failed, [row[0] for row in failed])
        connection.execute(self.statements.insert_failed, list(map(Array, packed.columns(packed.JOB_TYPES, failed))))
        size = sum(len(row[_PAYLOAD]) for row in failed)
        statements = self.statements
        for removed in self._payloads.over(connection, size, statements.failed_bytes, statements.oldest_failed):
            self.delete(connection, statements.delete_failed, removed)

    def remove(self, connection: Connection, ids: Sequence[int], living: Container[object] = ()) -> None:
        """Remove records with all that is kept of their jobs, within a transaction; `living` jobs keep their logs."""
        self._delete_all(connection, ids, [id for id in ids if id not in living])
        self.reset()

    def _delete_all(self, connection: Connection, ids: Sequence[int], ended: Sequence[int]) -> None:
        statements = self.statements
        for statement in (statements.delete_failed, statements.delete_rests, statements.delete_records):
            self.delete(connection, statement, ids)
        self.logs.remove(connection, ended)

    @staticmethod
    def delete(connection: Connection, statement: sql.Composed, ids: Sequence[int]) -> None:
        connection.execute(statement, [Array.of_ids(ids)])

    def count_added(self, finished: Sequence[Record]) -> None:
        """Count records that were committed."""
        if self._counts is not None:
            ordinary, failed = self._counts
            kept = [record for record in finished if record.state == FAILED or record.keep_until or record.remove_at]
            self._counts = (
                ordinary + len(finished) - len(kept),
                failed + sum(not (record.keep_until or record.remove_at) for record in kept),
            )

    def prune(self, connection: Connection, now: float, retention: Retention) -> int:
        """Remove a bounded number of records that exceed the quotas; return how many."""
        if self._counts is None or time.monotonic() > self._counted_at + _COUNT_SECONDS:
            self._counts = one(connection.execute(self.statements.counts))
            self._counted_at = time.monotonic()
            self._recount()
        assert self._counts is not None
        statements = self.statements
        ordinary_count, failed_count = self._counts
        with connection.transaction():
            connection.execute(_BY_INDEX)
            ordinary = _excess(connection, statements.ordinary, now, retention.done, ordinary_count)
            failed = _excess(connection, statements.failures, now, retention.failed, failed_count)
            times = (now, now - retention.failed.seconds, now - retention.done.seconds, _PRUNE_BATCH)
            others = [row[0] for row in connection.execute(statements.expired, times)]
            others += [row[0] for row in connection.execute(statements.overdue, (now, _PRUNE_BATCH))]
            ids = [*ordinary, *failed, *others]
            if ids:
                self._delete_all(connection, ids, ids)
        if ids:
            self._counts = (ordinary_count - len(ordinary), failed_count - len(failed))
            self._recount()
        return len(ids)

    def _shortened(self, record: Record) -> Record:
        kept = min(len(record.result), self._largest)
        return record._replace(result=record.result[: self._inline], result_size=record.full_size, result_kept=kept)


def _excess(connection: Connection, statement: sql.Composed, now: float, quota: Quota, count: int) -> list[int]:
    """The ids of the oldest records that are too old or too many.

    Only from the front: if the clock went back, records that look old stay until those before them are gone.
    """
    if not count:
        return []
    too_many, before = count - quota.most, now - quota.seconds
    oldest = connection.execute(statement, (1,)).fetchone()
    if oldest is None or (too_many <= 0 and oldest[1] >= before):
        return []
    most = _PRUNE_BATCH if oldest[1] < before else min(too_many, _PRUNE_BATCH)
    ids: list[int] = []
    for number, (id, finished_at) in enumerate(connection.execute(statement, (most,))):
        if finished_at >= before and number >= too_many:
            break
        ids.append(id)
    return ids


def payloads(
    connection: Connection, statements: Statements, ids: Sequence[int], longest: int
) -> dict[int, FailedPayload]:
    """The payloads of failed jobs, with at most `longest` bytes of each."""
    answer = connection.execute(statements.payloads, (min(longest, _LARGEST_VALUE), Array.of_ids(ids)))
    return {id: FailedPayload(size, data) for id, size, data in answer}


def failed_jobs(
    connection: Connection, statements: Statements, ids: Sequence[int], kind: type[J], most_bytes: int
) -> list[J | None]:
    """The failed jobs with these ids, until the payloads exceed `most_bytes`; a row that cannot be read is None."""
    sizes: dict[int, int] = dict(connection.execute(statements.failed_sizes, (Array.of_ids(ids),)).fetchall())
    wanted: list[int] = []
    for id in ids:
        wanted.append(id)
        most_bytes -= sizes.get(id, 0)
        if most_bytes < 0:
            break
    found: dict[int, J | None] = {}
    for row in connection.execute(statements.failed, (Array.of_ids(wanted),), binary=True):
        try:
            found[row[0]] = rows.failed_job(packed.from_job(row), kind)
        except rows.BrokenRowError:
            found[row[0]] = None
    return [found.get(id) for id in wanted]


def read(connection: Connection, statements: Statements, query: Query) -> list[Record]:
    """The records of a query."""
    statement, values = statements.select(query)
    convert: Callable[[Any], Record] = rows.record
    return [convert(packed.from_record(row)) for row in connection.execute(statement, values, binary=True)]
