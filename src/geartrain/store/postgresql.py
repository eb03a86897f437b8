"""The PostgreSQL store: a journal that several servers share.

Each server writes its own jobs, and others read them when it is lost; nobody queues in the database. A commit is one
transaction that passes the fence (`postgresql_commit.py`).

**Outages.** A commit whose connection is lost is repeated until `patience` is over. Was it committed before the
connection broke? The counter of the node tells: each commit sets it to its own number, so a commit that was carried out
is not carried out again, also if the backend of the lost connection is still at it. After an outage that took longer
than the patience, the caller has undone the batch. If it turns out to have been committed, its jobs are removed first.

**A database that went back in time** (failover to a standby that was behind, a restored backup) has a lower counter
than the last commit. The server still has all its jobs: WentBackError asks for all of them, as one batch.
"""

import contextlib
import logging
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors

import geartrain
from geartrain.errors import StoreError
from geartrain.model import FailedPayload, JobState, LockChange, LockUse
from geartrain.store import contract, postgresql_records, postgresql_xmin, rows
from geartrain.store import postgresql_rows as packed
from geartrain.store.commit_numbers import CommitNumbers
from geartrain.store.postgresql_commit import BatchWriter, LostRaceError, Plan
from geartrain.store.postgresql_connection import Connection, Readers, Target, connect, describe
from geartrain.store.postgresql_locks import LockTable
from geartrain.store.postgresql_nodes import NodeInfo, NodeTable, is_lost
from geartrain.store.postgresql_records import RecordTable
from geartrain.store.postgresql_schema import IS_BEHIND, IS_COMMITTED, IS_FENCED, migrate, read_secret
from geartrain.store.shared import NODE_BITS, SERVING, ClusterView, FencedError, IdRange, Member, Node, WentBackError

_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.5
_LIMITS: Final = contract.ResultLimits()
_MEMBER: Final = Member()
_JOBS_PER_READ: Final = 2000
# The transaction was refused because of another one, and will succeed when that has ended.
_CONFLICTS: Final = (
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.LockNotAvailable,
    errors.UniqueViolation,
)
_WAITS: Final = (errors.DeadlockDetected, errors.LockNotAvailable)  # for a row that another transaction has locked
_INVALID: Final = (struct.error, ValueError, UnicodeError, OverflowError, TypeError)

# Values that were removed stay for a while, so that every server learns of it.
_FORGET_VALUES: Final = "DELETE FROM {s}.kept WHERE value = '' AND saved < clock_timestamp() - interval '1 day'"

T = TypeVar("T")

_log = logging.getLogger("geartrain.store")


# Rows that only have the unique key of a foreground job are nobody's jobs.
_JOBS: Final = f"AND state <> {contract.RESERVED}"


class PostgresqlStore:
    """Jobs, records and values in one schema of a database, and this server as one of its nodes."""

    durable = True
    is_shared = True

    def __init__(self, url: str, limits: contract.ResultLimits = _LIMITS, member: Member = _MEMBER) -> None:
        self.target = Target.of(url)
        self.lease = member.lease
        self.handle_prefix = member.handle_prefix
        self.node = 0
        self.secret = b""
        self.state = SERVING
        self.renewed_at = 0.0
        self.in_doubt = {"committed": 0, "repeated": 0}
        self.resynced = 0
        self.waits_for_lock = False
        self.waiting_since = (
            0.0  # by the monotonic clock: when a commit first failed that is still repeated; 0: none is
        )
        self.record_table = RecordTable(self.target.schema, limits)
        self._info = NodeInfo(member.name, member.machine, geartrain.__version__)
        self.patience = member.patience  # seconds for which a commit is repeated
        self._is_gone = member.is_gone
        self._nodes = NodeTable(self.target.schema)
        self._locks = LockTable(self.target.schema)
        self._readers = Readers(self.target, member.lease)
        self._connection: Connection | None = None  # of the committer's thread
        self._numbers = CommitNumbers(0)
        self._lost_take: set[IdRange] | None = None  # the ranges before a take that was given up, until that is settled

    def open(self) -> int:
        """Create or migrate the tables and become a node; return the first id of its range."""
        try:
            connection = self._connected()
            prefix = migrate(connection, self.target.schema, self.handle_prefix.decode("utf-8", "surrogateescape"))
            self.handle_prefix = prefix.encode("utf-8", "surrogateescape")
            self.secret = read_secret(connection, self.target.schema)
            began = time.monotonic()
            self.node, self.state, place = self._nodes.join(connection, self._info, self.lease, self._is_gone)
            self.renewed_at = began
            self._numbers = CommitNumbers(self.node)
        except psycopg.Error as error:
            self._disconnect()
            raise StoreError(f"cannot open {self.target.shown}: {describe(error)}") from None
        except StoreError:
            self._disconnect()
            raise
        self._writer = BatchWriter(self.target.schema, self.record_table, self._nodes, self.node, place)
        return (self.node << NODE_BITS) + 1

    def jobs(self, kind: type[contract.J]) -> Iterator[contract.J]:
        """The jobs of the ranges that this node has, by id."""
        with self._readers.borrow() as connection:
            ranges = self._nodes.own_ranges(connection, self.node)
        for ids in ranges:
            for jobs in self.jobs_of(ids, kind):
                yield from jobs

    def jobs_of(self, ids: IdRange, kind: type[contract.J]) -> Iterator[list[contract.J]]:
        """The jobs in a range, in parts; invalid rows are moved to the table `broken`."""
        names = ", ".join(contract.COLUMNS)
        statement = self._sql(f"SELECT {names} FROM {{s}}.jobs WHERE id BETWEEN %s AND %s {_JOBS} ORDER BY id LIMIT %s")
        low = ids.low
        while True:
            with self._readers.borrow() as connection:
                values = (low, ids.high - 1, _JOBS_PER_READ)
                chunk = connection.execute(statement, values, binary=True).fetchall()
            jobs = []
            for row in chunk:
                try:
                    jobs.append(rows.job(packed.from_job(row), kind))
                except rows.BrokenRowError as broken:
                    self._quarantine(row[0], str(broken))
            yield jobs
            if len(chunk) < _JOBS_PER_READ:
                return
            low = chunk[-1][0] + 1

    def states(self, ids: Sequence[int]) -> dict[int, JobState]:
        """The states of those of these jobs of any server that have not ended, or have a record."""
        statement = self._sql(
            "SELECT id, state FROM {s}.jobs WHERE id = ANY(%(ids)s) "
            "UNION ALL SELECT id, state FROM {s}.records WHERE id = ANY(%(ids)s)"
        )
        with self._readers.borrow() as connection:
            return {id: JobState(state) for id, state in connection.execute(statement, {"ids": list(ids)})}

    def ends(self, first: int, last: int) -> dict[int, JobState]:
        """How jobs of any server have ended, by id."""
        statement = self._sql("SELECT id, state FROM {s}.records WHERE id BETWEEN %s AND %s")
        with self._readers.borrow() as connection:
            return {id: JobState(state) for id, state in connection.execute(statement, (first, last))}

    def saved_values(self) -> dict[str, bytes]:
        """Every value that was saved under a name, by any server."""
        with self._readers.borrow() as connection:
            return dict(connection.execute(self._sql("SELECT name, value FROM {s}.kept")).fetchall())

    def commit(self, batch: contract.Batch) -> contract.CommitOutcome:
        """Write a batch in one transaction, and repeat it while PostgreSQL cannot be reached."""
        try:
            plan = Plan(batch, self.record_table)
        except _INVALID as error:
            raise StoreError(f"cannot write {self.target.shown}: {describe(error)}") from None
        if self._numbers.is_repeated:
            plan.repeat(self._numbers.undone)
        outcome = self._patiently(plan, lambda connection: self._writer.write(connection, plan, self._numbers))
        self.record_table.count_added(batch.finished)
        if plan.is_whole:
            self.resynced += self._writer.resynced
            fields = {"jobs": self._writer.resynced, "store": self.target.shown}
            _log.error("database went back in time; missing jobs written again", extra={"fields": fields})
        return outcome

    def take(self, most_jobs: int) -> IdRange | None:
        """Take an orphan range, or the first part of one; as a commit of its own."""
        if self._lost_take is not None:
            ids = self._settle_take(self._lost_take)
            if ids is not None:
                return ids
        before: set[IdRange] = set()

        def take(connection: Connection) -> IdRange | None:
            before.update(self._nodes.own_ranges(connection, self.node))
            return self._writer.take(connection, self._numbers, most_jobs)

        try:
            return self._patiently(None, take)
        except _UnheardCommitError:
            return self._taken_since(before)
        except StoreError:
            self._lost_take = before or None
            raise

    def _settle_take(self, before: set[IdRange]) -> IdRange | None:
        """What was taken by a commit that was given up. After another commit, that one cannot be carried out."""
        with contextlib.suppress(_UnheardCommitError):
            self._patiently(None, lambda connection: self._writer.touch(connection, self._numbers))
        ids = self._taken_since(before)
        self._lost_take = None
        return ids

    def _taken_since(self, before: set[IdRange]) -> IdRange | None:
        """The range that this node has since then, beside the one for new jobs."""
        with self._readers.borrow() as connection:
            own = self._nodes.own_ranges(connection, self.node)
        return next((ids for ids in own if ids not in before and ids.high != self._writer.ids_end), None)

    def look(self, version: int) -> ClusterView:
        """Read the nodes, and the values that were saved after `version`."""
        with self._readers.borrow() as connection:
            return self._nodes.look(connection, version)

    def accuse(self, node: Node) -> bool:
        """Fence a node, unless it has committed since."""
        with self._readers.borrow() as connection:
            return self._nodes.accuse(connection, node)

    def serve(self, link: str) -> None:
        """Tell the others that this node serves."""
        with self._readers.borrow() as connection:
            self._nodes.serve(connection, self.node, link)

    def lead(self) -> bool:
        """Become the leader, if there is none."""
        with self._readers.borrow() as connection:
            return self._nodes.lead(connection, self.node)

    def xmin_age(self) -> float:
        """The age of the oldest transaction in the database, in seconds."""
        with self._readers.borrow() as connection:
            return postgresql_xmin.oldest_age(connection)

    def change_locks(self, changes: Sequence[LockChange]) -> list[bool]:
        """Grant and release locks, in one transaction."""
        with self._readers.borrow() as connection:
            return self._locks.change(connection, self.node, changes)

    def lock_uses(self, names: Sequence[bytes]) -> dict[bytes, LockUse]:
        """The use of those of these locks that a job of a living node holds."""
        with self._readers.borrow() as connection:
            return self._locks.uses(connection, names)

    def ask_to_drain(self, name: str) -> bool:
        """Ask the node of that name to stop when its running jobs are done; whether there is one."""
        with self._readers.borrow() as connection:
            return self._nodes.ask_to_drain(connection, name)

    def fence_named(self, name: str) -> bool:
        """Fence the node of that name, alive or not; whether there is one."""
        with self._readers.borrow() as connection:
            return self._nodes.fence_named(connection, name)

    def records(self, query: contract.Query) -> list[contract.Record]:
        """The last that finished first, of all servers."""
        with self._readers.borrow() as connection:
            return postgresql_records.read(connection, self.record_table.statements, query)

    def kept_result(self, record: contract.Record) -> bytes:
        """The result with the rest of a large one."""
        if record.result_kept <= len(record.result):
            return record.result
        with self._readers.borrow() as connection:
            row = connection.execute(self.record_table.statements.rest, (record.id,), binary=True).fetchone()
        return record.result + (row[0] if row is not None else b"")

    def job_log(self, id: int) -> bytes:
        """The log of a job of any server."""
        with self._readers.borrow() as connection:
            return self.record_table.logs.read(connection, id)

    def payloads(self, ids: Sequence[int], longest: int) -> dict[int, FailedPayload]:
        """The payloads of failed jobs."""
        with self._readers.borrow() as connection:
            return postgresql_records.payloads(connection, self.record_table.statements, ids, longest)

    def failed_jobs(self, ids: Sequence[int], kind: type[contract.J], most_bytes: int) -> list[contract.J | None]:
        """The failed jobs with these ids that are kept whole."""
        with self._readers.borrow() as connection:
            statements = self.record_table.statements
            return postgresql_records.failed_jobs(connection, statements, ids, kind, most_bytes)

    def prune(self, now: float, retention: contract.Retention) -> int:
        """Remove a bounded number of records of all servers. The leader calls it."""
        try:
            connection = self._connected()
            connection.execute(self._sql(_FORGET_VALUES))
            return self.record_table.prune(connection, now, retention)
        except psycopg.Error as error:
            self._disconnect()
            raise StoreError(f"cannot write {self.target.shown}: {describe(error)}") from None

    def close(self, next_id: int) -> None:
        """Leave the cluster, so that the others take over at once."""
        try:
            self._nodes.leave(self._connected(), self.node)
        except (psycopg.Error, StoreError) as error:
            fields = {"store": self.target.shown, "why": describe(error)}
            _log.warning("store was not closed cleanly", extra={"fields": fields})
        finally:
            self._disconnect()
            self._readers.close()

    # Committing

    def _patiently(self, plan: Plan | None, attempt: Callable[[Connection], T]) -> T:
        """Commit by `attempt`, and repeat it as long as the connection is the problem and the patience lasts."""
        started, pause = time.monotonic(), _FIRST_PAUSE
        self._numbers.begin()
        while True:
            began = time.monotonic()
            try:
                answer = attempt(self._settled(plan))
            except _UnheardCommitError as unheard:
                # The others have seen the counter move at one of the attempts before; this one has only read it.
                self._succeeded(started, plan is not None)
                if unheard.outcome is None:
                    raise
                return unheard.outcome  # type: ignore[return-value]
            except _INVALID as error:
                self._disconnect()
                raise StoreError(f"cannot write {self.target.shown}: {describe(error)}") from None
            except (psycopg.Error, LostRaceError) as error:
                self._disconnect()
                self.record_table.reset()
                self.waits_for_lock = isinstance(error, _WAITS)
                self._examine(error)
                if plan is not None:
                    if isinstance(error, psycopg.Error) and is_lost(error):  # else PostgreSQL has refused it
                        plan.sent = plan.outcome or plan.sent
                    plan.outcome = None
                if time.monotonic() - started > self.patience:
                    self._give_up(plan, error)
                if not self.waiting_since:
                    self.waiting_since = time.monotonic()
                    fields = {"store": self.target.shown, "why": describe(error)}
                    _log.warning("commit failed, trying again", extra={"fields": fields})
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                self._succeeded(began, plan is not None)
                return answer

    def _succeeded(self, began: float, is_batch: bool) -> None:
        self._numbers.end(is_batch)
        self.renewed_at = began
        self.waits_for_lock = False
        if self.waiting_since:
            fields = {"store": self.target.shown, "seconds": f"{time.monotonic() - self.waiting_since:.1f}"}
            _log.warning("commits work again", extra={"fields": fields})
            self.waiting_since = 0.0

    def _examine(self, error: Exception) -> None:
        """Raise what cannot be mended by repeating the commit."""
        if not isinstance(error, psycopg.Error) or is_lost(error) or isinstance(error, _CONFLICTS):
            return
        if error.sqlstate == IS_FENCED:
            raise FencedError(f"node {self.node} was fenced by another server", self._has_lost_commits()) from None
        if error.sqlstate in (IS_COMMITTED, IS_BEHIND):
            return  # `_settled` finds out
        raise StoreError(f"cannot write {self.target.shown}: {describe(error)}") from None

    def _has_lost_commits(self) -> bool:
        """Whether the database lacks commits of this server that it has acknowledged; also if it cannot be asked."""
        try:
            counter = self._nodes.counter(self._connected(), self.node)
        except (psycopg.Error, StoreError):
            return True
        return counter is None or counter[0] < self._numbers.last

    def _give_up(self, plan: Plan | None, error: Exception) -> None:
        if plan is not None and plan.sent is not None:
            self._numbers.give_up(row[0] for row in plan.batch.accepted)  # type: ignore[misc]
        raise StoreError(f"cannot write {self.target.shown}: {describe(error)}") from None

    def _settled(self, plan: Plan | None) -> Connection:
        """A connection. On a new one, find out first what became of the commits that were not answered."""
        if self._connection is not None and not self._connection.closed:
            return self._connection
        connection = self._connected()
        counter = self._nodes.counter(connection, self.node)
        if counter is None:
            self._require_own_place(connection)
            counter = (0, SERVING)
        try:
            is_carried_out = self._numbers.is_carried_out(*counter, plan is not None and plan.is_whole)
        except WentBackError:
            self._disconnect()
            raise
        if is_carried_out:
            self.in_doubt["committed"] += 1
            raise _UnheardCommitError(plan.sent if plan is not None else None)
        if plan is not None and plan.sent is not None:
            self.in_doubt["repeated"] += 1
        return connection

    def _require_own_place(self, connection: Connection) -> None:
        """Become the same node again in a database from before it joined."""
        ids = IdRange(self.node << NODE_BITS, (self.node + 1) << NODE_BITS)
        self._nodes.reinsert(connection, self.node, self._info, ids)

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self.target, self.lease)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _quarantine(self, id: int, problem: str) -> None:
        _log.error("invalid row moved to table broken", extra={"fields": {"id": id, "why": problem}})
        names = ", ".join((*contract.COLUMNS, "key"))
        statement = self._sql(
            f"WITH row AS (DELETE FROM {{s}}.jobs WHERE id = %s RETURNING {names}) "
            f"INSERT INTO {{s}}.broken (complaint, {names}) SELECT %s, {names} FROM row"
        )
        with self._readers.borrow() as connection:
            connection.execute(statement, (id, problem))

    def _sql(self, text: str) -> Any:
        return psycopg.sql.SQL(text).format(s=psycopg.sql.Identifier(self.target.schema))


class _UnheardCommitError(Exception):
    """A commit was carried out although its answer was lost."""

    def __init__(self, outcome: contract.CommitOutcome | None) -> None:
        super().__init__()
        self.outcome = outcome
