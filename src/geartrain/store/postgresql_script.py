"""A transaction of PostgreSQL as one text, with the rows of its COPYs.

psycopg sends one statement after the other, and waits before and after the rows of a COPY. Where no statement needs the
answer of the one before it, that waiting costs both sides more than the rows do: the text of a whole transaction with
its COMMIT takes one round trip, and one more for each COPY. If a statement fails, PostgreSQL drops the rest of it.
Poolers pass it on as they do any query.
"""

import select
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import psycopg
from psycopg import errors, pq

from geartrain.store.postgresql_connection import Connection

_FAILED: Final = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE)


class Copy(NamedTuple):
    """A COPY from the client."""

    statement: bytes
    rows: bytes  # in PostgreSQL's binary format, as a whole


def run(
    connection: Connection,
    statements: Sequence[bytes],
    copies: Sequence[Copy],
    last: Sequence[bytes] = (),
    before_last: Callable[[], None] | None = None,
) -> list[bytes]:
    """Run statements, COPYs and the last statements; return the first values of the rows that are answered.

    `before_last` is called at the last moment at which PostgreSQL cannot have begun with the last ones yet.
    """
    exchange = _Exchange(connection.pgconn)
    if before_last is not None and not copies:
        before_last()
    exchange.ask(b";".join((*statements, *[copy.statement for copy in copies], *last)))
    for copy in copies:
        exchange.await_copy()
        if before_last is not None and copy is copies[-1]:
            before_last()
        exchange.send_rows(copy.rows)
    exchange.finish()
    return exchange.values


class _Exchange:
    """One query under way on a connection."""

    def __init__(self, connection: pq.abc.PGconn) -> None:
        self._connection = connection
        self._readable = select.poll()
        self._readable.register(connection.socket, select.POLLIN)
        self._ready = select.poll()
        self._ready.register(connection.socket, select.POLLIN | select.POLLOUT)
        self.values: list[bytes] = []

    def ask(self, text: bytes) -> None:
        self._connection.send_query(text)
        self._flush()

    def await_copy(self) -> None:
        """Read answers until PostgreSQL wants the rows of a COPY."""
        while (result := self._next_result()) is not None:
            if result.status == pq.ExecStatus.COPY_IN:
                return
            self._note(result)
        raise psycopg.OperationalError("PostgreSQL has not asked for the rows of a COPY")

    def send_rows(self, rows: bytes) -> None:
        self._connection.put_copy_data(rows)
        self._connection.put_copy_end()
        self._flush()

    def finish(self) -> None:
        """Read all answers that are left."""
        while (result := self._next_result()) is not None:
            self._note(result)

    def _next_result(self) -> pq.abc.PGresult | None:
        while self._connection.is_busy():
            self._readable.poll()
            self._connection.consume_input()
        return self._connection.get_result()

    def _note(self, result: pq.abc.PGresult) -> None:
        if result.status in _FAILED:
            raise errors.error_from_result(result)
        if result.status == pq.ExecStatus.TUPLES_OK and result.ntuples:
            self.values.append(result.get_value(0, 0) or b"")

    def _flush(self) -> None:
        """Send what libpq has gathered. PostgreSQL may have an answer before it reads on."""
        while self._connection.flush():
            events = self._ready.poll()
            if any(event != select.POLLOUT for _, event in events):
                self._connection.consume_input()
