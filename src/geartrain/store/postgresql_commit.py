"""One batch as one transaction of PostgreSQL.

The order of its statements matters. The fence comes first: it raises if others have taken this server for dead, so that
nothing after it can be committed.

An insert of a unique key waits for a transaction of another server that inserts or frees that key. Servers that wait
for each other are a deadlock, so whoever waits has smaller keys at most. New jobs come first, sorted by their keys.
Then come rows that end or lose their key, which wait for nobody, and then new jobs with the keys of these rows, which
no other server can have got.

A batch without unique keys is sent as one text (`postgresql_script.py`). Where an answer decides what comes next, the
statements go one by one.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from psycopg import sql

from geartrain.store import postgresql_rows as packed
from geartrain.store import postgresql_script
from geartrain.store.commit_numbers import CommitNumbers
from geartrain.store.contract import COLUMNS, COMMITTED, RECORD_COLUMNS, RESERVED, Batch, CommitOutcome, Twin, whole_row
from geartrain.store.postgresql_connection import Connection
from geartrain.store.postgresql_nodes import NodeTable
from geartrain.store.postgresql_parameters import Array, insert_columns, unnested
from geartrain.store.postgresql_records import RecordTable
from geartrain.store.postgresql_schema import one
from geartrain.store.postgresql_script import Copy
from geartrain.store.shared import NODE_BITS, IdRange

_NO_PLACE: Final = "(0,0)"
# A row that is found by its place is not cleaned up; one in so many fences goes by the primary key.
_FENCES_BY_PLACE: Final = 1000
_ROWS_PER_STATEMENT: Final = 5000
_IDS_LEFT: Final = 2 ** (NODE_BITS - 1)  # of a range, when the next one is begun
KEYED_COLUMNS: Final = (*COLUMNS, "key")
KEYED_TYPES: Final = (*packed.JOB_TYPES, packed.BYTEA)
_DEAD: Final = 6
_WAITS_FOR_KEYS: Final = 3  # times that a whole batch is begun again because another server has one of its keys

Row = tuple[Any, ...]


class LostRaceError(Exception):
    """Another server has the key of a job, and may not have it any more in a moment: begin the batch again."""


class Insertion(NamedTuple):
    """What became of the jobs with keys."""

    twins: dict[int, Twin]  # by id: the jobs of other servers that have their keys
    waiting: dict[bytes, Row]  # by key: jobs whose keys rows of this server have that are about to end
    ids: frozenset[int]  # that were inserted


_NOTHING_INSERTED: Final = Insertion({}, {}, frozenset())


class Plan:
    """What a batch means for the tables."""

    def __init__(self, batch: Batch, records: RecordTable) -> None:
        self.batch = batch
        self.is_whole = batch.is_whole
        ended = {record.id for record in batch.finished}
        ended.update(batch.removed_jobs)
        changed: dict[int, Row] = {row[0]: row for row in batch.changed if row[0] not in ended}  # type: ignore[misc]
        self.new: list[Row] = []  # without a key
        self.keyed: dict[bytes, Row] = {}
        self.revived: dict[bytes, Row] = {}
        self._sort_accepted(batch, ended, changed)
        for row in batch.revived:
            self._add_revived(row, ended, changed)
        self.changed = list(changed.values())
        self.removed = sorted(ended.difference([row[0] for row in batch.accepted]) if batch.accepted else ended)
        self.removed.extend(batch.removed_jobs)
        self.finished, self.rests = records.divide(batch.finished)
        self.failed: Sequence[Row] = batch.failed
        self.job_rows = packed.copy_rows(packed.job_tuple, self.new)
        self.record_rows = packed.copy_rows(packed.record_tuple, self.finished)
        self.outcome: CommitOutcome | None = None  # of this attempt, from the moment at which its commit is sent
        self.sent: CommitOutcome | None = None  # of an earlier attempt whose commit was sent and not answered
        self.is_repeated = False  # an earlier attempt may have been committed: records are replaced
        self.waits_left = _WAITS_FOR_KEYS

    def _sort_accepted(self, batch: Batch, ended: set[int], changed: dict[int, Row]) -> None:
        for accepted in batch.accepted:
            row: Row = whole_row(accepted)
            if ended or changed:
                if row[0] in ended:
                    continue
                row = changed.pop(row[0], row)
            key = packed.key(row)
            if key is None:
                self.new.append(row)
            else:
                self.keyed[key] = row

    def _add_revived(self, row: Row, ended: set[int], changed: dict[int, Row]) -> None:
        if row[0] in ended:
            return
        row = changed.pop(row[0], row)
        key = packed.key(row)
        if key is None:
            changed[row[0]] = row
        else:
            self.revived[key] = row

    def freed(self) -> set[int]:
        """Ids of the rows that have no key any more after this batch."""
        return {*self.removed, *(row[0] for row in self.changed if packed.key(row) is None)}

    def repeat(self, undone: Sequence[int]) -> None:
        """Remove jobs and replace records that may be there, because an earlier attempt may have been carried out."""
        self.removed = sorted({*self.removed, *undone})
        self.is_repeated = True

    @property
    def is_plain(self) -> bool:
        """Whether no answer of PostgreSQL is needed before the commit, and no statement has values but ids."""
        batch = self.batch
        return not (
            self.keyed
            or self.revived
            or self.changed
            or self.rests
            or self.failed
            or self.is_whole
            or self.is_repeated
            or batch.removed_records
            or batch.logs
            or batch.saved_values
            or batch.ids_until
        )


class BatchWriter:
    """Writes plans to one schema, as one node."""

    def __init__(self, schema: str, records: RecordTable, nodes: NodeTable, node: int, place: str) -> None:
        self._schema = schema
        self._records = records
        self._nodes = nodes
        self._node = node
        self._place = place
        self._fences = 0
        self.ids_end = (node + 1) << NODE_BITS
        self._given_out = [IdRange(node << NODE_BITS, self.ids_end)]  # ids of jobs of this server
        self.resynced = 0  # rows that the last whole batch found missing
        names = ", ".join(KEYED_COLUMNS)
        insert = insert_columns("jobs", KEYED_COLUMNS, KEYED_TYPES)
        self._insert_keyed = self._sql(f"{insert} ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING RETURNING id")
        updates = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS[1:])
        key = f"key = CASE WHEN excluded.state = {_DEAD} THEN NULL ELSE jobs.key END"
        self._upsert = self._sql(f"{insert} ON CONFLICT (id) DO UPDATE SET {updates}, {key}")
        self._copy_jobs = self._text(f"COPY {{s}}.jobs ({names}) FROM STDIN (FORMAT BINARY)")
        self._copy_records = self._text(f"COPY {{s}}.records ({', '.join(RECORD_COLUMNS)}) FROM STDIN (FORMAT BINARY)")
        self._fence = self._text("SELECT {s}.fence(")
        self._delete_ids = self._text("DELETE FROM {s}.jobs WHERE id = ANY('{{")
        self._delete = self._sql("DELETE FROM {s}.jobs WHERE id = ANY(%b)")
        self._present = self._sql("SELECT id FROM {s}.jobs WHERE id = ANY(%b)")
        self._delete_range = self._sql("DELETE FROM {s}.jobs WHERE id >= %s AND id < %s RETURNING id")
        self._twins = self._sql("SELECT key, id, handle FROM {s}.jobs WHERE key = ANY(%b::bytea[])")
        self._kept_version = self._sql("UPDATE {s}.meta SET value = value + 1 WHERE name = 'kept' RETURNING value")
        self._save_values = self._sql(
            f"INSERT INTO {{s}}.kept (name, value, version) SELECT *, %s FROM {unnested((packed.TEXT, packed.BYTEA))} "
            "ON CONFLICT (name) DO UPDATE "
            "SET value = excluded.value, version = excluded.version, saved = excluded.saved"
        )

    def _sql(self, text: str) -> sql.Composed:
        return sql.SQL(text).format(s=sql.Identifier(self._schema))

    def _text(self, text: str) -> bytes:
        return self._sql(text).as_bytes()

    def write(self, connection: Connection, plan: Plan, numbers: CommitNumbers) -> CommitOutcome:
        """Commit a plan as the batch that `numbers` has begun."""
        if plan.is_plain:
            return self._write_at_once(connection, plan, numbers)
        self._begin(connection, numbers, plan.batch.known_node, plan.is_whole)
        inserted = self._insert_free(connection, plan) if plan.keyed or plan.revived else _NOTHING_INSERTED
        twins = inserted.twins
        with connection.pipeline():
            self._remove_records(connection, plan, [id for id in plan.batch.removed_records if id not in twins])
            self._end_rows(connection, plan, inserted.ids)
        if plan.is_whole:
            self._delete_all(connection, plan)
        if inserted.waiting:
            twins |= self._insert_with_keys(connection, inserted.waiting)
        if plan.is_repeated and plan.finished:
            ids = [record.id for record in plan.finished]
            self._records.delete(connection, self._records.statements.delete_records, ids)
        if copies := self._copies(plan):
            postgresql_script.run(connection, (), copies)
        if plan.rests:
            self._records.add_rests(connection, plan.rests)
        if plan.failed:
            self._records.add_failed(connection, plan.failed)
        if plan.batch.logs:
            self._records.logs.add(connection, plan.batch.logs)
        version = self._save(connection, plan.batch.saved_values)
        plan.outcome = CommitOutcome(twins, self._more_ids(connection, plan.batch.ids_until), version)
        connection.execute("COMMIT")
        return plan.outcome

    def take(self, connection: Connection, numbers: CommitNumbers, most_jobs: int) -> IdRange | None:
        """Take an orphan range as one batch."""
        self._begin(connection, numbers, self._node)
        ids = self._nodes.take(connection, self._node, most_jobs)
        connection.execute("COMMIT")
        return ids

    def touch(self, connection: Connection, numbers: CommitNumbers) -> None:
        """Commit nothing: after it, no earlier batch can be committed."""
        self._begin(connection, numbers, self._node)
        connection.execute("COMMIT")

    def _begin(self, connection: Connection, numbers: CommitNumbers, known: int, is_whole: bool = False) -> None:
        with connection.pipeline():
            connection.execute("BEGIN")
            fence = connection.execute(self._passing(numbers, known, is_whole))
        self._place = one(fence)[0]

    def _passing(self, numbers: CommitNumbers, known: int, is_whole: bool = False) -> bytes:
        """The statement that passes the fence. It answers where the row of the node is now.

        `known` is the newest node that this server knows of. Before a batch that is whole, the database may lack any
        number of commits.
        """
        self._fences += 1
        place = self._place if self._fences % _FENCES_BY_PLACE else _NO_PLACE
        last = 0 if is_whole else numbers.last
        values = (self._node, place.encode(), numbers.current, known, last)
        return self._fence + b"%d, '%b', %d, %d, %d)::text" % values

    def _write_at_once(self, connection: Connection, plan: Plan, numbers: CommitNumbers) -> CommitOutcome:
        statements = [b"BEGIN", self._passing(numbers, plan.batch.known_node)]
        if plan.removed:
            statements.append(self._delete_ids + b",".join([b"%d" % id for id in plan.removed]) + b"}'::bigint[])")

        def before_commit() -> None:
            plan.outcome = COMMITTED

        [place] = postgresql_script.run(connection, statements, self._copies(plan), [b"COMMIT"], before_commit)
        self._place = place.decode()
        return COMMITTED

    def _copies(self, plan: Plan) -> list[Copy]:
        """Of new jobs without keys, and of records."""
        all_rows = ((self._copy_jobs, plan.job_rows), (self._copy_records, plan.record_rows))
        return [Copy(statement, rows) for statement, rows in all_rows if rows]

    def _end_rows(self, connection: Connection, plan: Plan, inserted: frozenset[int]) -> None:
        """Remove jobs that have ended, and replace those that have changed."""
        removed = [id for id in plan.removed if id not in inserted]  # of an earlier attempt, maybe
        if removed:
            connection.execute(self._delete, [Array.of_ids(removed)])
        if plan.is_whole:
            return
        for rows in _parts(plan.changed):
            connection.execute(self._upsert, keyed_columns(rows))

    def _delete_all(self, connection: Connection, plan: Plan) -> None:
        """Replace all jobs of this node by those of the batch, and count what was missing.

        Rows of a range that is being taken over stay, where the server has not read them yet. A job that this server
        took over in the lost seconds may be in a range that the database gives to another one. If it has the row, that
        one runs the job as well; if not, this server is its only home.
        """
        rows = plan.changed
        complete = [*self._given_out, *(IdRange(low, high) for low, high in plan.batch.restored)]
        for ids in complete:
            self._nodes.cover(connection, self._node, ids)
        ranges = self._nodes.own_ranges(connection, self._node)
        keyed = {key: row for row in rows if (key := packed.key(row)) is not None}
        found = self._find_twins(connection, sorted(keyed)) if keyed else {}
        taken = [key for key, twin in found.items() if not any(ids.low <= twin.id < ids.high for ids in ranges)]
        if taken and plan.waits_left:  # a row of another server that has not written all of its jobs yet, maybe
            plan.waits_left -= 1
            raise LostRaceError
        present: set[int] = set()
        for ids in [part for known in complete for own in ranges if (part := known.part_in(own)) is not None]:
            present.update(row[0] for row in connection.execute(self._delete_range, ids))
        elsewhere = [row[0] for row in rows if not any(ids.low <= row[0] < ids.high for ids in ranges)]
        if elsewhere:
            there = {row[0] for row in connection.execute(self._present, [Array.of_ids(elsewhere)])}
            self._nodes.claim(connection, self._node, [id for id in elsewhere if id not in there])
            present |= there
        self.resynced = sum(row[0] not in present for row in rows)
        # Another server has accepted a job with the key of one that the database had lost. Both were acknowledged, and
        # both run; the newer one keeps the key. A row that has nothing but a key is not needed then.
        keyless = [row for key in taken if (row := keyed.pop(key))[6] != RESERVED]
        keyless += [row for row in rows if packed.key(row) is None]
        for part in _parts([keyed[key] for key in sorted(keyed)]):
            connection.execute(self._upsert, keyed_columns(part))
        for part in _parts(keyless):
            connection.execute(self._upsert, keyless_columns(part))

    def _insert_free(self, connection: Connection, plan: Plan) -> Insertion:
        """Insert the jobs whose keys are free, new ones and those that were dead or failed."""
        freed = plan.freed()
        twins: dict[int, Twin] = {}
        rows = {**plan.keyed, **self._revivable(connection, plan, freed, twins)}
        found = self._insert_with_keys(connection, rows)
        waiting: dict[bytes, Row] = {}
        for key, row in rows.items():
            twin = found.get(row[0])
            if twin is not None and twin.id in freed:
                waiting[key] = row
            elif twin is not None and key in plan.revived:
                raise LostRaceError
            elif twin is not None:
                twins[row[0]] = twin
        return Insertion(twins, waiting, frozenset(row[0] for row in rows.values()) - found.keys())

    def _revivable(
        self, connection: Connection, plan: Plan, freed: set[int], twins: dict[int, Twin]
    ) -> dict[bytes, Row]:
        """Remove the rows of jobs that are queued again, if no job of `twins` has their key. The others stay."""
        if not plan.revived:
            return {}
        found = self._find_twins(connection, sorted(plan.revived))
        taken = {key: twin for key, twin in found.items() if twin.id not in freed}
        twins.update({plan.revived[key][0]: twin for key, twin in taken.items()})
        rows = {key: row for key, row in plan.revived.items() if key not in taken}
        if rows:
            connection.execute(self._delete, [Array.of_ids([row[0] for row in rows.values()])])
        return rows

    def _insert_with_keys(self, connection: Connection, keyed: dict[bytes, Row]) -> dict[int, Twin]:
        """Insert jobs whose keys are free; return the jobs of others that have the keys of the rest."""
        twins: dict[int, Twin] = {}
        left = sorted(keyed)
        while left:
            inserted: set[int] = set()
            for keys in _parts(left):
                answer = connection.execute(self._insert_keyed, keyed_columns([keyed[key] for key in keys]))
                inserted.update(row[0] for row in answer)
            left = [key for key in left if keyed[key][0] not in inserted]
            if left:
                found = self._find_twins(connection, left)
                # A row of the same id is there from an attempt that seemed to have failed.
                twins |= {keyed[key][0]: twin for key, twin in found.items() if twin.id != keyed[key][0]}
                left = [key for key in left if key not in found]  # whose job has ended meanwhile
        return twins

    def _find_twins(self, connection: Connection, keys: Sequence[bytes]) -> dict[bytes, Twin]:
        values = Array(packed.array(packed.BYTEA, list(map(packed.raw, keys))))
        return {key: Twin(id, handle) for key, id, handle in connection.execute(self._twins, [values], binary=True)}

    def _remove_records(self, connection: Connection, plan: Plan, ids: Sequence[int]) -> None:
        if ids:
            self._records.remove(connection, ids, {row[0] for row in plan.batch.revived})

    def _save(self, connection: Connection, values: dict[str, bytes]) -> int:
        """Save values; return their version, or 0. Servers that save values wait for each other."""
        if not values:
            return 0
        version: int = one(connection.execute(self._kept_version))[0]
        columns = packed.columns((packed.TEXT, packed.BYTEA), sorted(values.items()))
        connection.execute(self._save_values, [version, *map(Array, columns)])
        return version

    def _more_ids(self, connection: Connection, ids_until: int) -> int:
        """Begin another range if this one is half used; return its first id, or 0."""
        if ids_until + _IDS_LEFT < self.ids_end or ids_until > self.ids_end:
            return 0
        low = self._nodes.new_range(connection, self._node)
        self.ids_end = low + (1 << NODE_BITS)
        self._given_out.append(IdRange(low, self.ids_end))
        return low + 1


def keyed_columns(rows: Sequence[Row]) -> list[Array]:
    """The values of KEYED_COLUMNS of some jobs, as parameters."""
    columns = packed.columns(packed.JOB_TYPES, rows)
    keys = packed.array(packed.BYTEA, [packed.nullable(packed.key(row)) for row in rows])
    return list(map(Array, [*columns, keys]))


def keyless_columns(rows: Sequence[Row]) -> list[Array]:
    """The same of jobs that have no key, or whose keys other jobs have."""
    columns = packed.columns(packed.JOB_TYPES, rows)
    return list(map(Array, [*columns, packed.array(packed.BYTEA, [packed.nullable(None)] * len(rows))]))


def _parts(items: Sequence[Any]) -> list[Any]:
    return [items[start : start + _ROWS_PER_STATEMENT] for start in range(0, len(items), _ROWS_PER_STATEMENT)]
