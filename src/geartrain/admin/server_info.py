"""What admin needs of the server around the engine. `server/info.py` and `runtime/records.py` implement it."""

from typing import Protocol

from geartrain.admin.views import System
from geartrain.job_query import JobQuery
from geartrain.model import Record


class ServerInfo(Protocol):
    """The server as a process: its doors, its store, its memory."""

    def connections(self) -> int:
        """The number of open connections of all doors."""

    async def system(self) -> System:
        """Version, platform, doors and store."""


class Archive(Protocol):
    """Records of background jobs that have ended, as long as they are kept."""

    async def find(self, handle: bytes) -> Record | None:
        """The record of the job with this handle; None if it is unknown, pruned, or has not ended."""

    async def newest(self, query: JobQuery, limit: int) -> list[Record]:
        """The records with the highest ids that match, at most `limit`."""
