r"""The Periodic wire from the other side: what a client or a worker sends to a server, and receives from it.

Only today's dialect, which every server of this decade speaks; `periodic.py` has the rest, and what both sides share.

>>> registration(periodic.CLIENT).hex(" ")
'00 52 45 51 00 00 00 01 a5 05 df 1b 01'
>>> answers = AnswerReader()
>>> answers.feed(bytes.fromhex("00524553 00000005 c28ed638 00000001 10"))
>>> answers.next() == periodic.FRAME, answers.data[answers.start:answers.end]
(True, b'\x00\x00\x00\x01\x10')
"""

import struct
import zlib
from typing import Final

from geartrain.errors import WireError
from geartrain.wire import periodic
from geartrain.wire.packet_buffer import MORE, PacketBuffer

_HEADER: Final = struct.Struct(">4sII")
_DELAYS: Final = (0, 2**63 - 1)
LONGEST_NAME: Final = 255  # bytes of a function or a name
LONGEST_TIMEOUT: Final = 2**31 - 1


class AnswerReader(PacketBuffer):
    """Cuts what a server sends into frames."""

    __slots__ = ("max_packet",)

    def __init__(self, max_packet: int = periodic.MAX_PACKET) -> None:
        super().__init__()
        self.max_packet = max_packet

    def next(self) -> int:
        """FRAME, with the payload between `start` and `end`; or MORE."""
        data = self.data
        position = self._position
        left = len(data) - position
        if not left:
            self.data = b""
            self._position = 0
            return MORE
        begun = data[position : position + 4]
        if not periodic.RESPONSE.startswith(begun):
            raise WireError("MAGIC", f"an answer starts with NUL and RES, not with {begun!r}")
        if left < _HEADER.size:
            return self._keep(data, position, left + 1 if left < 4 else _HEADER.size)
        _, size, crc = _HEADER.unpack_from(data, position)
        if size > self.max_packet:
            raise WireError("SIZE", f"a frame of {size} bytes was announced, {self.max_packet} are allowed")
        start = position + _HEADER.size
        end = start + size
        if end > len(data):
            return self._keep(data, position, end - position)
        if zlib.crc32(data[start:end]) != crc:
            raise WireError("CRC", "the CRC of a frame does not match its payload")
        self.start = start
        self.end = self._position = end
        return periodic.FRAME


def registration(kind: int, name: bytes = b"", token: bytes = b"") -> bytes:
    """The first frame: the type of the peer, and for the named types its name and token."""
    named = kind in (periodic.NAMED_CLIENT, periodic.NAMED_WORKER)
    identity = periodic.identity(name, token) if named else b""
    return periodic.frame(periodic.TODAY, periodic.REQUEST, bytes((kind,)) + identity)


def request(message_id: int, command: int, arguments: bytes = b"") -> bytes:
    """Any later frame."""
    payload = b"%b%c%b" % (message_id.to_bytes(4, "big"), command, arguments)
    return periodic.frame(periodic.TODAY, periodic.REQUEST, payload)


def handle(function: bytes, name: bytes) -> bytes:
    """The identity of a job, as an argument."""
    return periodic.short(function) + periodic.short(name)


def put_off(function: bytes, name: bytes, seconds: int) -> bytes:
    """The arguments of SCHED_LATER without a step."""
    return handle(function, name) + periodic.later(min(max(seconds, _DELAYS[0]), _DELAYS[1]), 0)
