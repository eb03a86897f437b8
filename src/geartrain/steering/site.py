"""What steering needs of the server around the engine; the server implements it."""

from typing import NamedTuple, Protocol

from geartrain.model import Record
from geartrain.steering.views import System


class Waiting(Protocol):
    """Who waits until something is durable."""

    def settle(self, ticket: int, failed: bool) -> None:
        """Everything up to this ticket is durable, or could not be made so."""


class Site(Protocol):
    """Time, the beat, and what there is besides jobs."""

    def clock(self) -> float:
        """The time, in seconds of the epoch."""

    def soon(self) -> None:
        """Have a beat: something has changed."""

    def hold(self, waiting: Waiting) -> int:
        """A ticket for everything that has been journalled so far; 0 if all of it is durable."""

    def connections(self) -> int:
        """How many peers are in, over all doors."""

    async def system(self) -> System:
        """What runs, and on what."""


class Query(NamedTuple):
    """Which jobs that are over to give: those with the highest ids that fit everything that is set."""

    state: int = -1
    function: bytes = b""
    search: bytes = b""  # part of a handle, a function, a unique key or a reason
    door: str = ""
    since: float = 0.0  # finished at or after
    until: float = 0.0  # finished before; 0: up to now
    below: int = 0  # only ids below this; 0: all
    limit: int = 100


class Archive(Protocol):
    """Records of background jobs that are over, as long as they are kept."""

    async def find(self, handle: bytes) -> Record | None:
        """What came of the job with this handle; None if it is unknown, forgotten, or not over."""

    async def newest(self, query: Query) -> list[Record]:
        """The newest that fit, by their ids."""
