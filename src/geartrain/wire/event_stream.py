r"""Server-sent events (`text/event-stream`, HTML Living Standard, section 9.2), as a client reads them.

>>> events = EventStream()
>>> events.feed(b"event: job\nda")
[]
>>> events.feed(b'ta: {"what":"done"}\n\n: a comment\n\n')
[ServerSentEvent(name='job', data='{"what":"done"}')]
"""

import re
from typing import Final, NamedTuple

from geartrain.errors import WireError

MAX_EVENT: Final = 64 * 1024 * 1024  # bytes; a result may be in an event
DEFAULT_NAME: Final = "message"

_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class ServerSentEvent(NamedTuple):
    """One event. Its id and the server's `retry` are not kept: nobody resumes a stream."""

    name: str
    data: str


class EventStream:
    """Cuts what a server sends into events, wherever the pieces end."""

    __slots__ = ("_after_return", "_begun", "_data", "_line", "_name", "_pending", "_size", "max_event")

    def __init__(self, max_event: int = MAX_EVENT) -> None:
        self.max_event = max_event
        self._line: list[bytes] = []  # parts of a line that is not complete yet
        self._pending = 0  # bytes in them
        self._size = 0  # bytes in the complete lines of the event
        self._after_return = False  # the last byte was a carriage return, which a line feed may follow
        self._begun = False  # the first line, which may start with a byte order mark, has been read
        self._name = ""
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """The events that these bytes complete; a WireError if one is too large."""
        events = []
        for line in self._lines(data):
            if line:
                self._field(line)
                continue
            if self._data:
                events.append(ServerSentEvent(self._name or DEFAULT_NAME, "\n".join(self._data)))
            self._name = ""
            self._data = []
            self._size = 0
        self._check_size(self._size + self._pending)
        return events

    def _lines(self, data: bytes) -> list[bytes]:
        """The lines that these bytes complete, without their ends."""
        if self._after_return and data:
            data = data.removeprefix(b"\n")
            self._after_return = False
        if not data:
            return []
        self._after_return = data.endswith(b"\r")
        *lines, rest = _LINE_END.split(data)
        if lines:
            lines[0] = b"".join((*self._line, lines[0]))
            self._line = []
            self._pending = 0
            if not self._begun:
                self._begun = True
                lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
        self._line.append(rest)
        self._pending += len(rest)
        return lines

    def _field(self, line: bytes) -> None:
        self._size += len(line)
        self._check_size(self._size)
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"data":
            self._data.append(value.decode("utf-8", "replace"))

    def _check_size(self, size: int) -> None:
        if size > self.max_event:
            raise WireError("SIZE", f"an event is larger than {self.max_event} bytes")
