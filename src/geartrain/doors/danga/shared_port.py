"""One port for Gearman and for Danga's draft.

A peer speaks one protocol for the whole connection, and its first five bytes tell which. This door exists only if the
setting danga_on_gearman_port is on; the Gearman door behind it is the same as without it.
"""

from typing import Final

from geartrain.address import Address
from geartrain.doors.access import Access
from geartrain.doors.connection import Connection
from geartrain.doors.danga.door import DangaDoor
from geartrain.doors.door import Door
from geartrain.doors.gearman.door import GearmanDoor
from geartrain.wire import danga as wire

_HEAD: Final = 5  # bytes that tell the protocol


class SharedPortDoor(Door):
    """Has the listening sockets; the two doors behind it make the connections."""

    name = "gearman"

    def __init__(self, gearman: GearmanDoor, danga: DangaDoor) -> None:
        super().__init__(gearman.tick_loop, gearman.limits)
        self.gearman = gearman
        self.danga = danga
        # One set for all of them: connections are counted, checked and closed here.
        gearman.connections = danga.connections = self.connections

    def connect(self, address: Address) -> Connection:
        """A connection for a new peer, whose protocol is not known yet."""
        return ProtocolSniffer(self, address)

    def use_access(self, access: Access) -> None:
        """Ask this about peers; the doors behind it do the same."""
        super().use_access(access)
        self.gearman.use_access(access)
        self.danga.use_access(access)

    def close(self) -> None:
        """Close every connection."""
        super().close()
        self.gearman.close()
        self.danga.close()


class ProtocolSniffer(Connection):
    """A connection until the protocol is known; then one of that protocol takes its place."""

    def __init__(self, door: SharedPortDoor, address: Address) -> None:
        super().__init__(door)
        self._shared = door
        self._address = address
        self._received = b""

    def feed(self, data: bytes) -> None:
        """Collect what was read."""
        self._received += data

    def handle_packets(self) -> None:
        """Hand everything to a connection of the right protocol as soon as that is known."""
        if len(self._received) < _HEAD and wire.REQUEST.startswith(self._received[:4]):
            return
        speaks_draft = self._received.startswith(wire.REQUEST) and self._received[4]
        door: Door = self._shared.danga if speaks_draft else self._shared.gearman
        self._hand_over(door.connect(self._address))

    def incomplete(self) -> tuple[int, int]:
        """The first packet."""
        return (1, len(self._received))

    def _hand_over(self, successor: Connection) -> None:
        self.input_ended = True
        self.door.connections.discard(self)
        self.transport.set_protocol(successor)
        successor.take_over(self)
        successor.connection_made(self.transport)
        successor.data_received(self._received)
