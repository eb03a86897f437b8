"""What steering needs of the server around the engine; the server implements it."""

from typing import Protocol

from geartrain.admin.views import System
from geartrain.model import Record
from geartrain.runtime.records import RecordQuery


class Waiting(Protocol):
    """Who waits until something is durable."""

    def settle(self, ticket: int, failed: bool) -> None:
        """Everything up to this ticket is durable, or could not be made so."""


class ServerInfo(Protocol):
    """Time, the beat, and what there is besides jobs."""

    def clock(self) -> float:
        """The time, in seconds of the epoch."""

    def schedule_tick(self) -> None:
        """Have a beat: something has changed."""

    def hold(self, waiting: Waiting) -> int:
        """A ticket for everything that has been journalled so far; 0 if all of it is durable."""

    def connections(self) -> int:
        """How many peers are in, over all doors."""

    async def system(self) -> System:
        """What runs, and on what."""


class Archive(Protocol):
    """Records of background jobs that are over, as long as they are kept."""

    async def find(self, handle: bytes) -> Record | None:
        """What came of the job with this handle; None if it is unknown, forgotten, or not over."""

    async def newest(self, query: RecordQuery) -> list[Record]:
        """The newest that fit, by their ids."""
