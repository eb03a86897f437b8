"""What admin needs of the server around the engine. `server/info.py` implements it."""

from typing import Protocol

from geartrain.admin.views import System


class ServerInfo(Protocol):
    """The server as a process: its doors, its store, its memory."""

    def connections(self) -> int:
        """The number of open connections of all doors."""

    async def system(self) -> System:
        """Version, platform, doors and store."""
