"""Gearman packets as a client or worker needs them: it encodes requests, and cuts answers from the stream."""

import struct
from typing import Final

from geartrain.errors import WireError
from geartrain.model import Priority
from geartrain.wire import gearman as wire
from geartrain.wire.packet_buffer import PacketBuffer

_HEADER: Final = struct.Struct(">III")
_HEADER_SIZE: Final = 12
_REQ: Final = 0x00524551
_RES: Final = 0x00524553

GRAB: Final = wire.request(wire.GRAB_JOB_UNIQ)
PRE_SLEEP: Final = wire.request(wire.PRE_SLEEP)

# The packet that submits a job, by whether it is a background job and by its priority.
SUBMITS: Final = {
    (False, Priority.HIGH): wire.SUBMIT_JOB_HIGH,
    (False, Priority.NORMAL): wire.SUBMIT_JOB,
    (False, Priority.LOW): wire.SUBMIT_JOB_LOW,
    (True, Priority.HIGH): wire.SUBMIT_JOB_HIGH_BG,
    (True, Priority.NORMAL): wire.SUBMIT_JOB_BG,
    (True, Priority.LOW): wire.SUBMIT_JOB_LOW_BG,
}


class AnswerReader(PacketBuffer):
    """Cuts a server's answers into packets and lines; used like the server's own reader."""

    def next(self) -> int:
        """The type of the next packet, TEXT for a line, or MORE."""
        data = self.data
        position = self._position
        size = len(data)
        if position == size:
            self.data = b""
            self._position = 0
            return wire.MORE
        if data[position]:
            return self._connection(data, position)
        if size - position < _HEADER_SIZE:
            return self._keep(data, position, _HEADER_SIZE)
        magic, kind, length = _HEADER.unpack_from(data, position)
        if magic != _RES or not 0 < kind <= wire.LAST_TYPE:
            raise WireError("INVALID_MAGIC", "the peer is no Gearman server")
        start = position + _HEADER_SIZE
        end = start + length
        if end > size:
            return self._keep(data, position, _HEADER_SIZE + length)
        self.start = start
        self.end = self._position = end
        return int(kind)

    def _connection(self, data: bytes, position: int) -> int:
        end = data.find(b"\n", position, position + wire.MAX_LINE)
        if end < 0:
            if len(data) - position >= wire.MAX_LINE:
                raise WireError("LINE_TOO_LONG", "the peer is no Gearman server")
            return self._keep(data, position, len(data) - position + 1)
        self.start = position
        self.end = end
        self._position = end + 1
        return wire.TEXT


def about_job(kind: int, handle: bytes, data: bytes) -> bytes:
    """A request whose body is a handle and data."""
    return b"".join((_HEADER.pack(_REQ, kind, len(handle) + 1 + len(data)), handle, b"\0", data))


def submission(kind: int, function: bytes, unique: bytes, payload: bytes) -> bytes:
    """One of the six SUBMIT_JOB packets."""
    size = len(function) + len(unique) + 2 + len(payload)
    return b"".join((_HEADER.pack(_REQ, kind, size), function, b"\0", unique, b"\0", payload))
