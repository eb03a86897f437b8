"""The Danga door: what its connections share."""

from geartrain.address import Address
from geartrain.doors import door, linger
from geartrain.doors.danga.connection import DangaConnection
from geartrain.runtime import records, tick


class DangaDoor(door.Door):
    """Applications and workers on one port."""

    name = "danga"

    def __init__(
        self, tick_loop: tick.TickLoop, limits: door.Limits, archive: records.RecordArchive, linger_time: float = 0.0
    ) -> None:
        super().__init__(tick_loop, limits)
        self.archive = archive
        self.lingers = linger.LingeringWorkers(tick_loop, linger_time)

    def connect(self, address: Address) -> DangaConnection:
        """A connection for a new peer."""
        return DangaConnection(self)

    def close(self) -> None:
        """Close every connection."""
        self.lingers.close()
        super().close()
