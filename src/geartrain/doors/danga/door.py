"""The Danga door: its options, and what its connections share."""

import dataclasses

from geartrain.address import Address
from geartrain.doors import door
from geartrain.doors.danga.connection import DangaConnection
from geartrain.runtime import records, tick


@dataclasses.dataclass
class Options:
    """Settings of this door."""

    # Bytes of a result that are kept; longer ones are truncated, and the log says so.
    result_limit: int = 64 * 1024


class DangaDoor(door.Door):
    """Applications and workers on one port."""

    name = "danga"

    def __init__(
        self, tick_loop: tick.TickLoop, limits: door.Limits, options: Options, archive: records.RecordArchive
    ) -> None:
        super().__init__(tick_loop, limits)
        self.options = options
        self.archive = archive

    def connect(self, address: Address) -> DangaConnection:
        """A connection for a new peer."""
        return DangaConnection(self)
