"""A byte stream that arrives in pieces, for codecs that cut packets out of it.

What was read is looked at in place; only a packet that is not complete yet is put aside, and it is not joined or
looked at again before enough bytes are there that it can be complete. So a large packet in many pieces is
copied once.
"""

from typing import Final

from mypy_extensions import i64, mypyc_attr

MORE: Final = -1  # what a reader's `next` returns when it needs more bytes


@mypyc_attr(allow_interpreted_subclasses=True)
class Stream:
    """The shared part of every reader; a subclass has `next`, which uses `data`, `_position` and `_wait`."""

    __slots__ = ("_have", "_need", "_parts", "_position", "_resumed", "data", "end", "parts_begun", "start")

    def __init__(self) -> None:
        self.data = b""  # what was read; only what lies between start and end is the current body
        self.start: i64 = 0
        self.end: i64 = 0
        self.parts_begun = 0  # how many packets have arrived in parts: tells a new one from one that stalls
        self._position: i64 = 0
        self._parts: list[bytes] = []  # of a packet that is not complete yet
        self._have = 0
        self._need = 0
        self._resumed = False  # `data` starts with the packet that was incomplete before

    @property
    def waiting(self) -> int:
        """How many bytes of an incomplete packet have arrived."""
        return self._have

    @property
    def begins_with(self) -> bytes:
        """The first byte of what is incomplete."""
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

    def _wait(self, data: bytes, position: int, need: int) -> int:
        """Keep the beginning of a packet, and do not look at it again before it can be complete."""
        self._parts.append(data[position:] if position else data)
        self._have = len(data) - position
        self._need = need
        if position or not self._resumed:
            self.parts_begun += 1
        self.data = b""
        self._position = 0
        return MORE
