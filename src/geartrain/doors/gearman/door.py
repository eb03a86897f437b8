"""The Gearman door: its options, and what its connections share."""

import dataclasses

from geartrain.address import Address
from geartrain.doors import door
from geartrain.doors.gearman import admin_commands, linger
from geartrain.doors.gearman.cluster_status import OtherServersStatus, WorkerLine
from geartrain.doors.gearman.connection import GearmanConnection
from geartrain.model import Expiry
from geartrain.runtime import tick


@dataclasses.dataclass
class Options:
    """Settings of this door."""

    version: str
    # Send WORK_EXCEPTION to every client, not only to those that asked for it.
    exceptions: bool = False
    # Unit of the number in CAN_DO_TIMEOUT: gearmand takes milliseconds, the libraries of Perl and Go send seconds.
    timeout_unit: str = "milliseconds"
    timeout_action: Expiry = Expiry.FAIL
    # Seconds that a GRAB_JOB may wait for a job; 0: answer at once.
    linger: float = 0.001


class GearmanDoor(door.Door):
    """The binary protocol and the administrative text protocol on one port."""

    name = "gearman"

    def __init__(
        self, tick_loop: tick.TickLoop, limits: door.Limits, options: Options, control: door.ProcessControl
    ) -> None:
        super().__init__(tick_loop, limits)
        self.options = options
        self.control = control
        self.lingers = linger.LingeringGrabs(tick_loop, options.linger)
        self.others: OtherServersStatus | None = None  # of a cluster, whose numbers `status` adds; None: it does not

    def connect(self, address: Address) -> GearmanConnection:
        """A connection for a new peer."""
        return GearmanConnection(self)

    def gearman_connections(self) -> list[GearmanConnection]:
        """The open connections, by file descriptor."""
        peers = [peer for peer in self.connections if isinstance(peer, GearmanConnection)]
        return sorted(peers, key=GearmanConnection.descriptor)

    def worker_lines(self) -> list[WorkerLine]:
        """The connections as `workers` lists them."""
        return [admin_commands.worker_line(peer) for peer in self.gearman_connections() if not peer.closing]

    def close(self) -> None:
        """Close every connection."""
        self.lingers.close()
        super().close()
