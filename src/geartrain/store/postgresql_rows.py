"""Rows in PostgreSQL's binary formats: tuples of COPY, and arrays for `unnest`.

In both of them a value is its length and its bytes, so one function makes it for both. psycopg would spend more time on
each value than PostgreSQL does on the row.

>>> array(INT8, [int8(7)]).hex()
'0000000100000000000000140000000100000001000000080000000000000007'
"""

import hashlib
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from geartrain.model import JobState
from geartrain.store.contract import COLUMNS, RECORD_COLUMNS

COPY_BEGIN: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_END: Final = struct.pack("!h", -1)
NULL: Final = struct.pack("!i", -1)

# Types by their numbers in pg_type.
BOOL: Final = 16
BYTEA: Final = 17
INT8: Final = 20
INT2: Final = 21
TEXT: Final = 25
FLOAT8: Final = 701

_length: Final = struct.Struct("!i").pack
_int8: Final = struct.Struct("!iq").pack
_int2: Final = struct.Struct("!ih").pack
_float8: Final = struct.Struct("!id").pack
_bool: Final = struct.Struct("!i?").pack
_array: Final = struct.Struct("!iiiii").pack
_job_head: Final = struct.Struct("!hiq").pack
_job_middle: Final = struct.Struct("!ihihidid").pack
_job_numbers: Final = struct.Struct("!iqiqid").pack
_job_tail: Final = struct.Struct("!i?idid").pack
_record_middle: Final = struct.Struct("!ihihidididiq").pack
_record_tail: Final = struct.Struct("!i?iqiqidid").pack

JOB_TYPES: Final = (
    INT8, BYTEA, BYTEA, BYTEA, BYTEA, INT2, INT2, FLOAT8, FLOAT8, INT8, INT8, FLOAT8, BYTEA, TEXT, BYTEA, BYTEA,
    BOOL, FLOAT8, FLOAT8, TEXT, BYTEA, BYTEA,
)  # fmt: skip
RECORD_TYPES: Final = (
    INT8, BYTEA, BYTEA, BYTEA, INT2, INT2, FLOAT8, FLOAT8, FLOAT8, INT8, TEXT, TEXT, BYTEA, INT8, BYTEA, BYTEA, BYTEA,
    BOOL, INT8, INT8, FLOAT8, FLOAT8, TEXT,
)  # fmt: skip
JOB_REASON: Final = COLUMNS.index("reason")
RECORD_REASON: Final = RECORD_COLUMNS.index("reason")
_JOB_FIELDS: Final = len(JOB_TYPES) + 1  # with the key
_RECORD_FIELDS: Final = len(RECORD_TYPES)
_DEAD: Final = int(JobState.DEAD)
_KEY_SIZE: Final = 16


def int8(value: int) -> bytes:
    return _int8(8, value)


def int2(value: int) -> bytes:
    return _int2(2, value)


def float8(value: float) -> bytes:
    if math.isnan(value):
        raise ValueError("not a number")
    return _float8(8, value)


def boolean(value: bool) -> bytes:
    return _bool(1, value)


def raw(value: bytes) -> bytes:
    return _length(len(value)) + value


def text(value: str | bytes) -> bytes:
    """Text, for a column of text or, since that cannot hold a NUL, of bytes."""
    data = value if isinstance(value, bytes) else value.encode()
    return _length(len(data)) + data


def nullable(value: bytes | None) -> bytes:
    return NULL if value is None else raw(value)


PACKERS: Final[dict[int, Any]] = {INT8: int8, INT2: int2, FLOAT8: float8, BOOL: boolean, BYTEA: text, TEXT: text}


def array(element: int, values: Sequence[bytes]) -> bytes:
    """An array of one dimension; NULL is no element of one that has none."""
    has_null = int(NULL in values)
    return _array(1, has_null, element, len(values), 1) + b"".join(values)


def columns(types: Sequence[int], rows: Sequence[Sequence[Any]]) -> list[bytes]:
    """The columns of some rows, as arrays."""
    return [
        array(kind, list(map(PACKERS[kind], values)))
        for kind, values in zip(types, zip(*rows, strict=True), strict=True)
    ]


def key(row: Sequence[Any]) -> bytes | None:
    """What identifies a function and unique key in the whole cluster; None for a job that has no key, or is dead."""
    unique = row[3]
    if not unique or row[6] == _DEAD:
        return None
    function = row[2]
    return hashlib.blake2b(_length(len(function)) + function + unique, digest_size=_KEY_SIZE).digest()


def job_tuple(row: Sequence[Any]) -> bytes:
    """A job without a key, as a tuple of COPY. `contract.COLUMNS` has the order."""
    (
        id, handle, function, unique, payload, priority, state, run_at, submitted_at, attempts, count, timeout,
        reducer, door, reason, trials, keeps_result, keep_for, expires_at, user_name,
        partition, after,
    ) = row  # fmt: skip
    if math.isnan(run_at + submitted_at + timeout + keep_for + expires_at):
        raise ValueError("a time of the job is not a number")
    return b"".join(
        (
            _job_head(_JOB_FIELDS, 8, id), _length(len(handle)), handle, _length(len(function)), function,
            _length(len(unique)), unique, _length(len(payload)), payload,
            _job_middle(2, priority, 2, state, 8, run_at, 8, submitted_at),
            _job_numbers(8, attempts, 8, count, 8, timeout), _length(len(reducer)), reducer, text(door), text(reason),
            _length(len(trials)), trials, _job_tail(1, keeps_result, 8, keep_for, 8, expires_at), text(user_name),
            _length(len(partition)), partition, _length(len(after)), after, NULL,
        )
    )  # fmt: skip


def record_tuple(record: Sequence[Any]) -> bytes:
    """A record as a tuple of COPY. `contract.RECORD_COLUMNS` has the order."""
    (
        id, handle, function, unique, priority, state, submitted_at, started_at, finished_at, attempts, door,
        worker_door, worker, code, reason, result, trials, keeps_result, result_size, result_kept, keep_until,
        remove_at, progress,
    ) = record  # fmt: skip
    if math.isnan(submitted_at + started_at + finished_at + keep_until + remove_at):
        raise ValueError("a time of the record is not a number")
    return b"".join(
        (
            _job_head(_RECORD_FIELDS, 8, id), _length(len(handle)), handle, _length(len(function)), function,
            _length(len(unique)), unique,
            _record_middle(2, priority, 2, state, 8, submitted_at, 8, started_at, 8, finished_at, 8, attempts),
            text(door), text(worker_door), _length(len(worker)), worker, _int8(8, code), text(reason),
            _length(len(result)), result, _length(len(trials)), trials,
            _record_tail(1, keeps_result, 8, result_size, 8, result_kept, 8, keep_until, 8, remove_at), text(progress),
        )
    )  # fmt: skip


def copy_rows(tuple_of: Callable[[Sequence[Any]], bytes], rows: Sequence[Sequence[Any]]) -> bytes:
    """All that a COPY of some rows sends; empty if there are none."""
    return b"".join((COPY_BEGIN, *map(tuple_of, rows), COPY_END)) if rows else b""


def from_job(row: Sequence[Any]) -> tuple[Any, ...]:
    """A row as `contract.row` makes it, of one that was read: the reason is text there."""
    return (*row[:JOB_REASON], row[JOB_REASON].decode("utf-8", "replace"), *row[JOB_REASON + 1 :])


def from_record(row: Sequence[Any]) -> tuple[Any, ...]:
    """The same for a record."""
    return (*row[:RECORD_REASON], row[RECORD_REASON].decode("utf-8", "replace"), *row[RECORD_REASON + 1 :])
