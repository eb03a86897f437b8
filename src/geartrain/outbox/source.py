"""What a relay needs of a database that has an outbox; one implementation for each kind of database."""

import abc
import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from geartrain.errors import AddressError, GeartrainError
from geartrain.outbox.table import OutboxRow


class OutboxError(GeartrainError):
    """The database of an outbox cannot be used: it is not there, or has no table for the outbox."""


class BatchLimits(NamedTuple):
    """How much a relay takes at a time."""

    rows: int
    size: int  # bytes of payloads; one row may have more


class RefusedRow(NamedTuple):
    """A row that the server did not take."""

    id: int
    reason: str
    delay: float  # seconds until it is tried again


class OutboxCounts(NamedTuple):
    """What is in an outbox."""

    waiting: int
    refused: int  # of those, that the server did not take; they are tried again
    oldest: float  # seconds since the first of them was written; 0: there is none
    reason: str  # why the last of them was refused


class ClaimedRows(abc.ABC):
    """Rows that no other relay takes until they are released."""

    rows: list[OutboxRow]

    @abc.abstractmethod
    async def settle(self, moved: Sequence[int], refused: Sequence[RefusedRow]) -> None:
        """Delete the rows that were moved, note why others were refused, and commit."""


class OutboxSource(abc.ABC):
    """An outbox, on connections of the relay's own. Errors of the database are raised as OutboxError."""

    @abc.abstractmethod
    async def open(self) -> None:
        """Connect, unless connected."""

    @abc.abstractmethod
    def claim(self, limits: BatchLimits) -> contextlib.AbstractAsyncContextManager[ClaimedRows]:
        """The oldest rows that no other relay has, and that are due.

        Before they are returned, it is on disk that they are about to be sent: a relay that finds them after a crash
        knows that they are in doubt. Leaving the block releases them.
        """

    @abc.abstractmethod
    async def changed(self, seconds: float) -> None:
        """Wait until there may be new rows, at most this long."""

    @abc.abstractmethod
    async def counts(self) -> OutboxCounts:
        """What is in the outbox."""

    @abc.abstractmethod
    async def create_table(self) -> None:
        """Create the table, unless there is one."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Close all connections."""


def source_of(url: str) -> OutboxSource:
    """The outbox in the database with this URL: postgresql:// as libpq reads it, or sqlite:///path/to/file."""
    if url.startswith(("postgresql://", "postgres://")):
        from geartrain.outbox.postgresql import PostgresqlSource

        return PostgresqlSource(url)
    if url.startswith("sqlite://") and url.removeprefix("sqlite://"):
        from geartrain.outbox.sqlite import SqliteSource

        return SqliteSource(url.removeprefix("sqlite://"))
    raise AddressError("the database of an outbox is postgresql://user@host/name or sqlite:///path/to/file")
