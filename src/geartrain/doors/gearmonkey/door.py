"""The GearMonkey door: what its connections share."""

import dataclasses
import itertools

from geartrain.address import Address
from geartrain.doors import door
from geartrain.doors.gearmonkey import table
from geartrain.doors.gearmonkey.channels import Channels, Events
from geartrain.doors.gearmonkey.connection import GearmonkeyConnection
from geartrain.doors.gearmonkey.counts import Counts
from geartrain.doors.gearmonkey.jobs import Jobs
from geartrain.doors.gearmonkey.waits import Waits
from geartrain.runtime import tick
from geartrain.runtime.records import RecordArchive


@dataclasses.dataclass
class Options:
    """How this door speaks."""

    version: str  # of Geartrain, by which our own library knows it


class GearmonkeyDoor(door.Door):
    """Redis' protocol, with the engine behind GearMonkey's keys."""

    name = "gearmonkey"

    def __init__(self, tick_loop: tick.TickLoop, limits: door.Limits, options: Options, archive: RecordArchive) -> None:
        super().__init__(tick_loop, limits)
        self.options = options
        self.archive = archive
        self.jobs = Jobs(tick_loop.engine)
        self.counts = Counts(tick_loop.engine)
        self.channels = Channels()
        self.waits = Waits(tick_loop)
        self.scheduled: set[bytes] = set()  # handles of jobs that were queued for a time and are not over
        self.popped: set[bytes] = set()  # handles of jobs that are run by workers of this door
        self.outputs: dict[bytes, bytes] = {}  # by handle: written before the status that ends the job
        self.command_count = len(table.COMMANDS)
        self._numbers = itertools.count(1)
        tick_loop.engine.subscribe(Events(self))
        tick_loop.after.append(self.waits.look_again)

    def connect(self, address: Address) -> GearmonkeyConnection:
        """A connection object for a peer that has just come in."""
        return GearmonkeyConnection(self, next(self._numbers))

    def peers(self) -> list[GearmonkeyConnection]:
        """Everybody who is in, in the order in which they came."""
        peers = [peer for peer in self.connections if isinstance(peer, GearmonkeyConnection)]
        return sorted(peers, key=lambda peer: peer.number)
