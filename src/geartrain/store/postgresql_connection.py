"""Connections to PostgreSQL: what a store's URL says, and how connections are made, kept and described.

Nothing of a session is used, so that a pooler may stand between (PgBouncer in transaction mode): no LISTEN, no session
locks, no prepared statements, no SET but within a transaction.

Passwords are for libpq alone. Whatever is logged or shown has the URL without them.
"""

import contextlib
import threading
import urllib.parse
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import psycopg

from geartrain.errors import StoreError
from geartrain.store import url as store_url
from geartrain.store.postgresql_schema import DEFAULT_SCHEMA

_IDLE_MOST: Final = 4  # connections for reading that are kept open
_CONNECT_SECONDS: Final = 5

Connection = psycopg.Connection[Any]


class Target(NamedTuple):
    """A database, and the schema in it."""

    conninfo: str  # for libpq
    schema: str
    shown: str  # the URL without passwords

    @classmethod
    def of(cls, url: str) -> "Target":
        """What a URL names; a StoreError if it is not a URL of PostgreSQL.

        >>> target = Target.of("postgresql://ada:secret@db1,db2/jobs?schema=mail&target_session_attrs=read-write")
        >>> target.schema, target.shown
        ('mail', 'postgresql://ada@db1,db2/jobs?schema=mail&target_session_attrs=read-write')
        """
        parts = urllib.parse.urlsplit(url)
        query = urllib.parse.parse_qsl(parts.query, keep_blank_values=True)
        schema = next((value for name, value in query if name == "schema"), "") or DEFAULT_SCHEMA
        rest = [pair for pair in query if pair[0] != "schema"]
        conninfo = store_url.postgresql_url(parts.netloc, parts.path, rest)
        try:
            psycopg.conninfo.conninfo_to_dict(conninfo)
        except psycopg.ProgrammingError as error:
            why = str(error).strip()
            if store_url.has_password(url):  # libpq quotes what it does not understand
                why = "it cannot be parsed; write special characters in the password as %2F for /, %40 for @, %25 for %"
            raise StoreError(f"invalid store {store_url.shown(url)!r}: {why}") from None
        return cls(conninfo, schema, store_url.shown(url))


def connect(target: Target, lease: float) -> Connection:
    """Open a connection. One whose other end is gone is noticed within the lease."""
    return psycopg.connect(
        target.conninfo,
        autocommit=True,
        prepare_threshold=None,
        connect_timeout=_CONNECT_SECONDS,
        application_name="geartrain",
        keepalives=1,
        keepalives_idle=max(int(lease * 0.3), 1),
        keepalives_interval=1,
        keepalives_count=3,
        tcp_user_timeout=int(lease * 600),
    )


def describe(error: BaseException) -> str:
    """What went wrong, in one line."""
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        return error.diag.message_primary
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


class Readers:
    """Connections for reading, which any thread may borrow."""

    def __init__(self, target: Target, lease: float) -> None:
        self._target = target
        self._lease = lease
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._closed = False

    @contextlib.contextmanager
    def borrow(self) -> Iterator[Connection]:
        """A connection; a StoreError if there is none to be had, or it fails."""
        try:
            connection = self._take()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)
        except psycopg.Error as error:
            raise StoreError(f"cannot read {self._target.shown}: {describe(error)}") from None

    def close(self) -> None:
        """Close all of them; borrowed ones when they are given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> Connection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return connect(self._target, self._lease)
            # One that PostgreSQL or a pooler has ended meanwhile must not fail the reader.
            with contextlib.suppress(psycopg.Error):
                connection.execute("SELECT")
                return connection
            connection.close()

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < _IDLE_MOST and not connection.closed:
                self._idle.append(connection)
                return
        connection.close()
