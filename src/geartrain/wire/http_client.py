"""HTTP/1.1 answers as a client reads them (RFC 9112): heads, bodies with a length or in chunks, or to the end of input.

The parts of a body can be had as they arrive. Each answer is read to its end before the next one begins.

>>> reader = AnswerReader()
>>> reader.feed(b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n2\\r\\nhi\\r\\n0\\r\\n\\r\\n")
>>> reader.next_part(), reader.next_part(), reader.next_part(), reader.status, reader.keeps_connection
(b'hi', b'', None, 200, True)
"""

import re
from typing import Final

from geartrain.errors import WireError

HEAD_LIMIT: Final = 64 * 1024  # bytes of a status line and its headers, or of the lines between chunks

_BLANK_LINE: Final = b"\r\n\r\n"
_CRLF: Final = b"\r\n"
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\r\n]*)?")
_BEGINNING: Final = b"HTTP/1."
# Only these headers say where an answer ends. The first byte of a block of headers is the end of the line before.
_HEADER: Final = re.compile(
    rb"\r\n(content-length|transfer-encoding|connection):[ \t]*([^\r\n]*?)[ \t]*(?=\r\n|$)", re.IGNORECASE
)
_LENGTH: Final = re.compile(rb"[0-9]{1,15}")
_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?")
_FIRST_FINAL: Final = 200  # statuses below are followed by another head
_WITHOUT_BODY: Final = (204, 304)

# What is read next.
_HEAD, _BODY, _CHUNK, _CHUNK_END, _SIZE, _TRAILER, _TO_THE_END, _END = range(8)


class AnswerReader:
    """Bytes in, parts of bodies out."""

    __slots__ = ("_at", "_data", "_left", "_next", "keeps_connection", "status")

    def __init__(self) -> None:
        self.status = 0  # of the answer whose parts are read
        self.keeps_connection = True  # whether another request may follow this answer
        self._data = bytearray()
        self._at = 0  # where the unread bytes begin
        self._next = _HEAD
        self._left = 0  # bytes of the body or chunk

    def feed(self, data: bytes) -> None:
        """Add bytes that arrived."""
        if self._at:
            del self._data[: self._at]
            self._at = 0
        self._data += data

    def end_input(self) -> None:
        """The server has closed the connection, which ends a body without a length."""
        if self._next == _TO_THE_END:
            self._next = _END

    def next_part(self) -> bytes | None:
        """The next part of a body; empty at the end of an answer; None if more bytes are needed.

        After a WireError the connection cannot be used.
        """
        while True:
            step = self._next
            if step == _END:
                self._next = _HEAD
                return b""
            if step in (_BODY, _CHUNK, _TO_THE_END):
                part = self._take_part()
                if part is not None or self._next == step:
                    return part
            elif step == _HEAD:
                if not self._read_head():
                    return None
            elif not self._read_line():
                return None

    def _take_part(self) -> bytes | None:
        """What has arrived of the body or chunk."""
        arrived = len(self._data) - self._at
        size = arrived if self._next == _TO_THE_END else min(arrived, self._left)
        part = bytes(self._data[self._at : self._at + size])
        self._at += size
        if self._next != _TO_THE_END:
            self._left -= size
            if not self._left:
                self._next = _END if self._next == _BODY else _CHUNK_END
        return part or None

    def _read_head(self) -> bool:
        """Read a head, if the whole of it has arrived."""
        end = self._data.find(_BLANK_LINE, self._at)
        if end < 0:
            beginning = bytes(self._data[self._at : self._at + len(_BEGINNING)])
            if not _BEGINNING.startswith(beginning) and not beginning.startswith(_BEGINNING):
                raise _bad(f"{beginning!r} does not begin an answer")
            self._check_length()
            return False
        head = bytes(self._data[self._at : end])
        self._at = end + len(_BLANK_LINE)
        line = _STATUS_LINE.match(head)
        if line is None or head[line.end() : line.end() + 2] not in (b"", _CRLF):
            raise _bad(f"{head[:40]!r} does not begin an answer")
        status = int(line[2])
        if status >= _FIRST_FINAL:
            self.status = status
            self._begin_body(head[line.end() :], line[1] == b"1")
        return True

    def _begin_body(self, headers: bytes, newest: bool) -> None:
        """Find out how long the body is, and what becomes of the connection."""
        length, chunked = -1, False
        options: set[bytes] = set()
        for name, value in _HEADER.findall(headers):
            name, value = name.lower(), value.lower()
            if name == b"content-length":
                if not _LENGTH.fullmatch(value) or length not in (-1, int(value)):
                    raise _bad(f"the length of a body is {value[:40]!r}")
                length = int(value)
            elif name == b"transfer-encoding":
                if value != b"chunked":
                    raise _bad(f"a body has the unknown encoding {value[:40]!r}")
                chunked = True
            else:
                options.update(option.strip() for option in value.split(b","))
        if chunked and length >= 0:
            raise _bad("a body has a length and chunks")
        if self.status in _WITHOUT_BODY:
            length, chunked = 0, False
        self.keeps_connection = b"close" not in options and (newest or b"keep-alive" in options)
        self._left = max(length, 0)
        self._next = _SIZE if chunked else _BODY if length > 0 else _END if length == 0 else _TO_THE_END
        if self._next == _TO_THE_END:
            self.keeps_connection = False

    def _read_line(self) -> bool:
        """Read a line between chunks, if the whole of it has arrived."""
        end = self._data.find(_CRLF, self._at)
        if end < 0:
            self._check_length()
            return False
        line = bytes(self._data[self._at : end])
        self._at = end + len(_CRLF)
        if self._next == _SIZE:
            size = _CHUNK_SIZE.fullmatch(line)
            if size is None:
                raise _bad(f"{line[:40]!r} is not the size of a chunk")
            self._left = int(size[1], 16)
            self._next = _CHUNK if self._left else _TRAILER
        elif self._next == _TRAILER:
            if not line:
                self._next = _END
        elif line:
            raise _bad("a chunk is longer than its size")
        else:
            self._next = _SIZE
        return True

    def _check_length(self) -> None:
        if len(self._data) - self._at > HEAD_LIMIT:
            raise _bad(f"a head has more than {HEAD_LIMIT} bytes")


def _bad(text: str) -> WireError:
    return WireError("HTTP", text)
