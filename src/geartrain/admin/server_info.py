"""What steering needs of the server around the engine; the server implements it."""

from typing import Protocol

from geartrain.admin.views import System
from geartrain.job_query import JobQuery
from geartrain.model import Record


class ServerInfo(Protocol):
    """What there is besides jobs."""

    def connections(self) -> int:
        """How many peers are in, over all doors."""

    async def system(self) -> System:
        """What runs, and on what."""


class Archive(Protocol):
    """Records of background jobs that are over, as long as they are kept."""

    async def find(self, handle: bytes) -> Record | None:
        """What came of the job with this handle; None if it is unknown, forgotten, or not over."""

    async def newest(self, query: JobQuery, limit: int) -> list[Record]:
        """The records with the highest ids that match, at most `limit`."""
