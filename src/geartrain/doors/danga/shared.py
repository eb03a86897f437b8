"""One port for both: Gearman, and the draft for peers that speak it.

A peer speaks one protocol as long as it is connected, and its first five bytes say which. This door is only made
when a setting asks for it; the Gearman door behind it is the plain one, and knows nothing of the other.
"""

from typing import Final

from geartrain.address import Address
from geartrain.doors.connection import Connection
from geartrain.doors.danga.door import DangaDoor
from geartrain.doors.door import Door
from geartrain.doors.gearman.door import GearmanDoor
from geartrain.wire import danga as wire

_ENOUGH: Final = 5


class SharedDoor(Door):
    """It has the sockets; the two behind it have the connections of their protocols."""

    name = "gearman"

    def __init__(self, gearman: GearmanDoor, danga: DangaDoor) -> None:
        super().__init__(gearman.tick_loop, gearman.limits)
        self.gearman = gearman
        self.danga = danga
        # Whoever is in is counted, looked after and seen out here, whatever he speaks.
        gearman.connections = danga.connections = self.connections

    def connect(self, address: Address) -> Connection:
        """A connection object for a peer that has just come in and has said nothing yet."""
        return ProtocolSniffer(self, address)

    def close(self) -> None:
        """Close every connection."""
        super().close()
        self.gearman.close()
        self.danga.close()


class ProtocolSniffer(Connection):
    """A peer until it has said enough; then a connection of its protocol takes its place."""

    def __init__(self, door: SharedDoor, address: Address) -> None:
        super().__init__(door)
        self._shared = door
        self._address = address
        self._heard = b""

    def feed(self, data: bytes) -> None:
        """Gather what was read."""
        self._heard += data

    def handle_packets(self) -> None:
        """Hand everything over as soon as it is clear to whom."""
        if len(self._heard) < _ENOUGH and wire.REQUEST.startswith(self._heard[:4]):
            return
        speaks_draft = self._heard.startswith(wire.REQUEST) and self._heard[4]
        door: Door = self._shared.danga if speaks_draft else self._shared.gearman
        self._give_way(door.connect(self._address))

    def incomplete(self) -> tuple[int, int]:
        """Its first packet."""
        return (1, len(self._heard))

    def _give_way(self, successor: Connection) -> None:
        self.input_ended = True
        self.door.connections.discard(self)
        self.transport.set_protocol(successor)
        successor.connection_made(self.transport)
        successor.data_received(self._heard)
