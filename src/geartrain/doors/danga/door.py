"""The door for the draft: what its connections share."""

import dataclasses

from geartrain.address import Address
from geartrain.doors import door
from geartrain.doors.danga.connection import DangaConnection
from geartrain.runtime import records, tick


@dataclasses.dataclass
class Options:
    """How this door speaks the draft."""

    # How much of a result is kept; a longer one that is asked for later is cut, and the log says so.
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
        """A connection object for a peer that has just come in."""
        return DangaConnection(self)
