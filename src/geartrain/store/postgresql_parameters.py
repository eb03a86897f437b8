"""Parameters of statements that are packed already, and the statements that take them.

PostgreSQL must get ids as an array of numbers: a text that is cast to an array in the statement may be cast again for
every row.
"""

import struct
from collections.abc import Sequence
from typing import Final

from psycopg import adapters
from psycopg.adapt import Dumper
from psycopg.pq import Format

from geartrain.store import postgresql_rows as packed

_NAMES: Final = {
    packed.BOOL: "boolean",
    packed.BYTEA: "bytea",
    packed.INT8: "bigint",
    packed.INT2: "smallint",
    packed.TEXT: "text",
    packed.FLOAT8: "float8",
}


class Array:
    """An array in PostgreSQL's binary format."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    @classmethod
    def of_ids(cls, ids: Sequence[int]) -> "Array":
        """An array of ids."""
        return cls(packed.array(packed.INT8, list(map(packed.int8, ids))) if ids else _EMPTY)


_EMPTY: Final = struct.pack("!iii", 0, 0, packed.INT8)  # no dimension


class _ArrayDumper(Dumper):
    """Sends it as it is. The statement says the type, except where it is ids."""

    format = Format.BINARY

    def dump(self, obj: Array) -> bytes:
        return obj.data


adapters.register_dumper(Array, _ArrayDumper)


def unnested(types: Sequence[int]) -> str:
    """The columns of rows that are sent as arrays.

    >>> unnested((packed.INT8, packed.TEXT))
    'unnest(%b::bigint[], %b::text[])'
    """
    return f"unnest({', '.join(f'%b::{_NAMES[kind]}[]' for kind in types)})"


def insert_columns(table: str, names: Sequence[str], types: Sequence[int]) -> str:
    """The statement that inserts rows that are sent as arrays; `{s}` stands for the schema."""
    return f"INSERT INTO {{s}}.{table} ({', '.join(names)}) SELECT * FROM {unnested(types)}"
