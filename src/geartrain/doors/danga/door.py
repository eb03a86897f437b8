"""The Danga door: what its connections share."""

from geartrain.address import Address
from geartrain.doors import door
from geartrain.doors.danga.connection import DangaConnection
from geartrain.runtime import records, tick


class DangaDoor(door.Door):
    """Applications and workers on one port."""

    name = "danga"

    def __init__(self, tick_loop: tick.TickLoop, limits: door.Limits, archive: records.RecordArchive) -> None:
        super().__init__(tick_loop, limits)
        self.archive = archive

    def connect(self, address: Address) -> DangaConnection:
        """A connection for a new peer."""
        return DangaConnection(self)
