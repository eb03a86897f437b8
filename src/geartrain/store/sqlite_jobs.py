"""Jobs in the SQLite file: saving and reading them, and moving rows away that are not valid jobs.

The row of a cold job has None in place of the payload: when it is saved, the payload in the file stays as it is.
"""

import contextlib
import itertools
import json
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

import apsw

from geartrain.store import rows, schema
from geartrain.store.contract import COLUMNS, SHORT_COLUMNS, J, whole_row
from geartrain.store.sqlite_insert import RowInsert
from geartrain.store.transaction import transaction

_SAVE: Final = RowInsert("jobs", COLUMNS, otherwise="OR REPLACE")
_SHORT: Final = len(SHORT_COLUMNS)
_USUAL: Final = [
    value if value == schema.MARK else schema.literal(value) for value in whole_row((schema.MARK,) * _SHORT)
]
_SAVE_SHORT: Final = RowInsert("jobs", COLUMNS, values=_USUAL, otherwise="OR REPLACE")
ReadRows = Callable[[apsw.Connection, int], list[tuple[Any, ...]]]  # that follow this id

_LARGE: Final = 64 * 1024  # bytes of a payload that is not copied together with others
_ROWS_PER_READ: Final = 2000
_FEW_ROWS: Final = 100  # between two looks at whether there is room for more payloads
_COLUMNS: Final = ", ".join(COLUMNS)
_TEXTS: Final = frozenset(index for index, name in enumerate(COLUMNS) if name in schema.TEXTS)
_ID: Final = COLUMNS.index("id")
_PAYLOAD: Final = COLUMNS.index("payload")
_CHANGED: Final = [index for index in range(len(COLUMNS)) if index not in (_ID, _PAYLOAD)]
_CHANGE: Final = f"UPDATE jobs SET {', '.join(f'{COLUMNS[index]} = ?' for index in _CHANGED)} WHERE id = ?"
# A row without its payload, whose size comes last. A handle that ends in a colon is that of no cold job.
_IS_READ: Final = "function = ? OR typeof(payload) <> 'blob' OR substr(handle, -1) = x'3a'"
_COLD_COLUMNS: Final = [f"CASE WHEN {_IS_READ} THEN payload END" if name == "payload" else name for name in COLUMNS]
_COLD: Final = f"{', '.join(_COLD_COLUMNS)}, length(payload)"
_OF_THESE: Final = "id IN (SELECT value FROM json_each(?))"
_REMOVE: Final = "DELETE FROM jobs WHERE id = ?"
_REMOVE_SPAN: Final = "DELETE FROM jobs WHERE id BETWEEN ? AND ?"
_REMOVE_THESE: Final = f"DELETE FROM jobs WHERE {_OF_THESE}"
_SHORTEST_SPAN: Final = 4  # ids; fewer are removed with all others that are scattered
_FIND: Final = f"SELECT id FROM jobs WHERE {_OF_THESE} AND instr(payload, ?)"


def save(connection: apsw.Connection, saved: Sequence[tuple[Any, ...]]) -> None:
    """Save rows, within a transaction, in their order. One row takes one statement."""
    for kind, alike in itertools.groupby(saved, _kind):
        length, is_large = kind
        save_some = _SAVE_SHORT.execute if length == _SHORT else _save_whole
        if is_large:
            for row in alike:
                save_some(connection, [row])
        else:
            save_some(connection, list(alike))


def _kind(row: tuple[Any, ...]) -> tuple[int, bool]:
    """What rows have in common that are saved with one statement."""
    payload = row[_PAYLOAD]
    return len(row), payload is not None and len(payload) > _LARGE


def _save_whole(connection: apsw.Connection, saved: Sequence[tuple[Any, ...]]) -> None:
    if any(row[_PAYLOAD] is None for row in saved):
        newest: dict[int, tuple[Any, ...]] = {}
        for row in saved:
            before = newest.get(row[_ID])
            if before is None or row[_PAYLOAD] is not None:
                newest[row[_ID]] = row
            else:
                newest[row[_ID]] = _with_payload(row, before[_PAYLOAD])
        saved = [row for row in newest.values() if row[_PAYLOAD] is not None]
        changed = [row for row in newest.values() if row[_PAYLOAD] is None]
        connection.executemany(_CHANGE, [(*(row[index] for index in _CHANGED), row[_ID]) for row in changed])
    _SAVE.execute(connection, saved)


def remove(connection: apsw.Connection, ids: Collection[int]) -> None:
    """Remove rows, within a transaction: one statement for ids that follow each other, and one for all the others."""
    scattered: list[int] = []
    for first, last in _spans(sorted(ids)):
        if last - first + 1 < _SHORTEST_SPAN:
            scattered.extend(range(first, last + 1))
        else:
            connection.execute(_REMOVE_SPAN, (first, last))
    if scattered:
        connection.execute(_REMOVE_THESE, (json.dumps(scattered),))


def _spans(ids: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of the numbers that follow each other, of sorted ones.

    >>> list(_spans([1, 2, 3, 7, 9, 10]))
    [(1, 3), (7, 7), (9, 10)]
    """
    first = last = ids[0]
    for id in ids[1:]:
        if id > last + 1:
            yield first, last
            first = id
        last = id
    yield first, last


def with_payloads(connection: apsw.Connection, failed: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    """The rows of failed jobs with the payloads of those that are cold; without jobs whose payloads are gone."""
    cold = [row[_ID] for row in failed if row[_PAYLOAD] is None]
    if not cold:
        return failed
    kept = payloads(connection, cold)
    return [
        row if row[_PAYLOAD] is not None else _with_payload(row, kept[row[_ID]])
        for row in failed
        if row[_PAYLOAD] is not None or row[_ID] in kept
    ]


def payloads(connection: apsw.Connection, ids: Sequence[int], longest: int = sys.maxsize) -> dict[int, bytes]:
    """The payloads of jobs, by id, with at most `longest` bytes of each; without those that are gone."""
    payload = "payload" if longest == sys.maxsize else f"substr(payload, 1, {longest})"
    pairs: Any = connection.execute(f"SELECT id, {payload} FROM jobs WHERE {_OF_THESE}", (json.dumps(list(ids)),))
    return {id: value or b"" for id, value in pairs.fetchall()}  # SQLite: a part of an empty value is NULL


def find(connection: apsw.Connection, ids: Sequence[int], text: bytes) -> list[int]:
    """The ids of those of these jobs in whose payloads a text is."""
    return [row[0] for row in connection.execute(_FIND, (json.dumps(list(ids)), text))]


def job(row: tuple[Any, ...], kind: type[J]) -> J:
    """Create a job from a row of `read` or `read_cold`."""
    if len(row) == len(COLUMNS):
        return rows.job(row, kind)
    columns, size = row[:-1], row[-1]
    if columns[_PAYLOAD] is not None:
        return rows.job(columns, kind)
    return rows.job(_with_payload(columns, b""), kind, size)


def _with_payload(row: tuple[Any, ...], payload: bytes | None) -> tuple[Any, ...]:
    return (*row[:_PAYLOAD], payload, *row[_PAYLOAD + 1 :])


def read_few(connection: apsw.Connection, after: int) -> list[tuple[Any, ...]]:
    """Return fewer of the next rows than `read`."""
    return read(connection, after, _FEW_ROWS)


def read(connection: apsw.Connection, after: int, most: int = _ROWS_PER_READ) -> list[tuple[Any, ...]]:
    """Return the next rows. Text that is not UTF-8 stays bytes, so that `rows.job` rejects the row."""
    try:
        statement = f"SELECT {_COLUMNS} FROM jobs WHERE id > ? ORDER BY id LIMIT {most}"
        return connection.execute(statement, (after,)).fetchall()
    except UnicodeDecodeError:
        columns = ", ".join(schema.expressions(connection, "jobs", COLUMNS, raw_text=True))
        statement = f"SELECT {columns} FROM jobs WHERE id > ? ORDER BY id LIMIT {most}"
        return [_with_text(row) for row in connection.execute(statement, (after,))]


def read_cold(connection: apsw.Connection, after: int, warm: bytes) -> list[tuple[Any, ...]]:
    """Return the next rows without their payloads, but for those of the function `warm`, and with their sizes."""
    try:
        statement = f"SELECT {_COLD} FROM jobs WHERE id > ? ORDER BY id LIMIT {_ROWS_PER_READ}"
        return connection.execute(statement, (warm, after)).fetchall()
    except UnicodeDecodeError:
        return read(connection, after)


def _with_text(row: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        return tuple(value.decode() if index in _TEXTS else value for index, value in enumerate(row))
    except UnicodeDecodeError:
        return row


def quarantine(connection: apsw.Connection, row: tuple[Any, ...], problem: str) -> None:
    """Move an invalid row to the table `broken`; if that fails, it is found again at the next start."""
    with contextlib.suppress(apsw.Error), transaction(connection):
        connection.execute(
            f"INSERT INTO broken SELECT ?, ?, {_COLUMNS} FROM jobs WHERE id = ?", (time.time(), problem, row[0])
        )
        connection.execute(_REMOVE, (row[0],))
