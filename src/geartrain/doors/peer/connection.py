"""One connection to another server: the handshake, and the frames.

Both sides send a Hello with random bytes, and then prove with both sides' random bytes that they know the secret of the
cluster, which is in its database. Until then nothing else is accepted, and no frame may be large.

A link is not slowed down by what it sends: if both sides stopped reading until the other one has read, both would wait
for ever. How much is under way is bounded by the room that servers announce.
"""

import hmac
import logging
import os
from typing import TYPE_CHECKING, Any, Final

from geartrain.doors.connection import PACKETS_PER_CHECK, Connection
from geartrain.doors.peer.link import PeerLink
from geartrain.errors import WireError
from geartrain.wire import peer as wire

if TYPE_CHECKING:
    from geartrain.doors.peer.door import PeerDoor

_HANDSHAKE_LIMIT: Final = 4096  # bytes of a frame
_MICRO: Final = 1_000_000


class PeerConnection(Connection):
    """To or from another server of the cluster."""

    def __init__(self, door: "PeerDoor", dialled: int = 0) -> None:
        super().__init__(door)
        self.peers = door
        self.reader = wire.Reader(_HANDSHAKE_LIMIT)
        self.count_input_of(self.reader)
        self.link: PeerLink | None = None  # from the end of the handshake on
        self.heard_at = door.tick_loop.loop.time()
        self.dialled = dialled  # the node that was dialled; 0: the other side has dialled
        self._own_hello = door.hello(os.urandom(wire.NONCE_BYTES))
        self._hello: wire.Hello | None = None  # of the other side

    def connection_made(self, transport: Any) -> None:
        """Greet the other side."""
        super().connection_made(transport)
        if not self.closing:
            self.tick_loop.begin_tick()
            self.write(wire.encode(self._own_hello))

    def identify(self) -> str:
        """Whoever knows the secret of the cluster may do everything; before that, nothing."""
        self.identity = None
        return ""

    def feed(self, data: bytes) -> None:
        """Give what was read to the codec."""
        self.heard_at = self.tick_loop.loop.time()
        self.reader.feed(data)

    def handle_packets(self) -> None:
        """Hand every complete frame to the link."""
        reader = self.reader
        left = PACKETS_PER_CHECK
        while not self.closing and reader.next():
            frame = reader.frame()
            if frame is not None:
                if self.link is not None:
                    self._handle(self.link, frame)
                else:
                    self._shake_hands(frame)
            left -= 1
            if not left:
                if self.turn_over():
                    return
                left = PACKETS_PER_CHECK

    def _handle(self, link: PeerLink, frame: Any) -> None:
        if isinstance(frame, wire.LinkPing):
            self.write(wire.encode(wire.LinkPong(frame.number)))
        elif isinstance(frame, wire.LinkPong):
            link.round_trip = max(self.tick_loop.loop.time() - frame.number / _MICRO, 0.0)
        else:
            link.handle(frame)

    def ping(self, now: float) -> None:
        """Ask for a sign of life."""
        self.write(wire.encode(wire.LinkPing(int(now * _MICRO))))

    def _shake_hands(self, frame: Any) -> None:
        if self._hello is None and isinstance(frame, wire.Hello):
            self._hello = frame
            self._check(frame)
            digest = wire.proof(self.peers.options.secret, self._own_hello, frame, self.dialled != 0)
            self.write(wire.encode(wire.Proof(digest)))
        elif self._hello is not None and isinstance(frame, wire.Proof):
            digest = wire.proof(self.peers.options.secret, self._hello, self._own_hello, self.dialled == 0)
            if not hmac.compare_digest(digest, frame.digest):
                raise WireError("PROOF", "it does not know the secret of this cluster")
            self._open(self._hello)
        else:
            raise WireError("HANDSHAKE", "a link begins with Hello and Proof")

    def _check(self, hello: wire.Hello) -> None:
        if hello.magic != wire.MAGIC or hello.version < 1 or len(hello.nonce) != wire.NONCE_BYTES:
            raise WireError("HANDSHAKE", "it is not a server of a cluster")
        if self.dialled and hello.node != self.dialled:
            raise WireError("HANDSHAKE", f"node {self.dialled} was expected there, and it is node {hello.node}")
        if hello.node == self._own_hello.node or self.peers.is_gone(hello.node):
            raise WireError("HANDSHAKE", f"node {hello.node} is not a server of this cluster any more")

    def _open(self, hello: wire.Hello) -> None:
        self.reader.use_limit(self.door.limits.max_packet + _HANDSHAKE_LIMIT)
        self.link = self.peers.link(hello.node, hello.name)
        self.log(logging.INFO, "linked to server", hello.name)
        self.link.open(self)

    def lost(self) -> None:
        """The link goes on without a connection, for some time."""
        if self.link is not None:
            self.link.lose(self)

    def incomplete(self) -> tuple[int, int]:
        """Which incomplete frame is arriving, and how many bytes of it are there."""
        return (self.reader.split_packets, self.reader.incomplete_size)

    # Input does not wait for output.

    def turn_over(self) -> bool:
        """Suspend the input, and return true, if its turn is over."""
        if self.suspended:
            return True
        if not self._time_is_over():
            return False
        self.suspend()
        return True

    def pause_writing(self) -> None:
        """The other side reads slowly; read on."""
        self._paused = True

    def _must_wait(self) -> bool:
        return False
