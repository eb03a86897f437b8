"""Bytes that arrive in pieces, for codecs that cut packets out of them.

Packets are read in place. Only an incomplete packet is kept aside, and it is neither joined nor parsed again before
enough bytes have arrived that it can be complete. So a large packet in many pieces is copied once.
"""

from typing import Final

from mypy_extensions import i64, mypyc_attr

MORE: Final = -1  # what a reader's `next` returns when it needs more bytes


@mypyc_attr(allow_interpreted_subclasses=True)
class PacketBuffer:
    """The base of every reader. A subclass has `next`, which uses `data`, `_position` and `_keep`."""

    __slots__ = ("_have", "_need", "_parts", "_position", "_resumed", "data", "end", "split_packets", "start")

    def __init__(self) -> None:
        self.data = b""  # what was read; the current body lies between `start` and `end`
        self.start: i64 = 0
        self.end: i64 = 0
        self.split_packets = 0  # how many packets have arrived in parts: tells a new one from one that stalls
        self._position: i64 = 0  # of the next packet in `data`
        self._parts: list[bytes] = []  # of the incomplete packet
        self._have = 0  # bytes in these parts
        self._need = 0  # bytes with which the packet can be complete
        self._resumed = False  # `data` starts with the packet that was incomplete before

    @property
    def incomplete_size(self) -> int:
        """The number of bytes of an incomplete packet that have arrived."""
        return self._have

    @property
    def first_byte(self) -> bytes:
        """The first byte of the incomplete packet."""
        return self._parts[0][:1] if self._parts else b""

    def feed(self, data: bytes) -> None:
        """Take what was read; `next` has returned MORE before."""
        if self._have:
            self._parts.append(data)
            self._have += len(data)
            if self._have < self._need:
                return
            data = b"".join(self._parts)
            self._parts.clear()
            self._have = 0
            self._resumed = True
        else:
            self._resumed = False
        self.data = data
        self._position = 0

    def discard(self) -> None:
        """Forget the incomplete packet."""
        self._parts.clear()
        self._have = 0

    def _keep(self, data: bytes, position: int, need: int) -> int:
        """Keep an incomplete packet until it has `need` bytes."""
        self._parts.append(data[position:] if position else data)
        self._have = len(data) - position
        self._need = need
        if position or not self._resumed:
            self.split_packets += 1
        self.data = b""
        self._position = 0
        return MORE
