"""The Gearman door: what its connections share."""

import dataclasses

from geartrain.address import Address
from geartrain.doors import door
from geartrain.doors.gearman import linger
from geartrain.doors.gearman.connection import GearmanConnection
from geartrain.model import Expiry
from geartrain.runtime import tick


@dataclasses.dataclass
class Options:
    """How this door speaks Gearman."""

    version: str
    # Whether clients get WORK_EXCEPTION without asking for it.
    exceptions: bool = False
    # What the number in CAN_DO_TIMEOUT counts: gearmand takes milliseconds, Perl's and Go's libraries seconds.
    timeout_unit: str = "milliseconds"
    timeout_action: Expiry = Expiry.FAIL
    # Seconds that an unanswered GRAB_JOB may wait for a job; 0 answers at once.
    linger: float = 0.001


class GearmanDoor(door.Door):
    """Binary clients and workers, and admins that speak text, on one port."""

    name = "gearman"

    def __init__(self, tick_loop: tick.TickLoop, limits: door.Limits, options: Options, control: door.Control) -> None:
        super().__init__(tick_loop, limits)
        self.options = options
        self.control = control
        self.lingers = linger.Lingers(tick_loop, options.linger)

    def connect(self, address: Address) -> GearmanConnection:
        """A connection object for a peer that has just come in."""
        return GearmanConnection(self)

    def gearman_connections(self) -> list[GearmanConnection]:
        """Everybody who is in, in the order of their sockets."""
        peers = [peer for peer in self.connections if isinstance(peer, GearmanConnection)]
        return sorted(peers, key=GearmanConnection.descriptor)

    def close(self) -> None:
        """Close every connection."""
        self.lingers.close()
        super().close()
