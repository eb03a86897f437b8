"""Cut a Redis' bytes into replies: RESP 2, from a client's side.

>>> replies = ReplyReader()
>>> replies.feed(b"*2" + CRLF + b"$5" + CRLF + b"hel")
>>> replies.next() is MORE
True
>>> replies.feed(b"lo" + CRLF + b":7" + CRLF + b"-ERR no" + CRLF)
>>> replies.next(), replies.next()
([b'hello', 7], ErrorReply(code='ERR', text='no'))
"""

from typing import Any, Final

from geartrain.errors import WireError
from geartrain.wire.resp import ErrorReply

CRLF: Final = b"\r\n"
_PLUS, _MINUS, _COLON, _DOLLAR, _STAR = b"+-:$*"
_LONGEST_LINE: Final = 64 * 1024
_DEEPEST: Final = 32  # arrays in arrays; the replies to our commands have two
_USED_UP: Final = 64 * 1024  # bytes that were parsed and are thrown away together


class More:
    """There is no whole reply yet."""


MORE: Final = More()
_BEGUN: Final = More()


class ReplyReader:
    """Bytes in, replies out: bytes, int, None, ErrorReply, or a list of these."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._at = 0
        self._arrays: list[tuple[list[Any], int]] = []  # incomplete ones, the innermost last, with their sizes

    def feed(self, data: bytes) -> None:
        """Add bytes that arrived."""
        if self._at == len(self._data) or self._at > _USED_UP:
            del self._data[: self._at]
            self._at = 0
        self._data += data

    def next(self) -> Any:
        """The next reply, or MORE. After a WireError the stream cannot be used."""
        while True:
            value = self._part()
            if value is MORE:
                return MORE
            if value is _BEGUN:
                continue
            while self._arrays:
                array, size = self._arrays[-1]
                array.append(value)
                if len(array) < size:
                    break
                self._arrays.pop()
                value = array
            else:
                return value

    def _part(self) -> Any:
        """The next value, or _BEGUN if an array begins here."""
        end = self._data.find(CRLF, self._at)
        if end < 0:
            if len(self._data) - self._at > _LONGEST_LINE:
                raise _error("a line has no end")
            return MORE
        line = bytes(self._data[self._at : end])
        kind, rest = line[0] if line else 0, line[1:]
        if kind == _DOLLAR:
            return self._bulk(_number(rest), end + 2)
        self._at = end + 2
        if kind == _COLON:
            return _number(rest)
        if kind == _STAR:
            return self._array(_number(rest))
        if kind == _PLUS:
            return rest
        if kind == _MINUS:
            code, _, text = rest.decode("utf-8", "replace").partition(" ")
            return ErrorReply(code, text)
        raise _error(f"{line[:20]!r} does not begin a reply")

    def _bulk(self, size: int, start: int) -> Any:
        if size < 0:
            self._at = start
            return None
        if len(self._data) < start + size + 2:
            return MORE
        self._at = start + size + 2
        return bytes(self._data[start : start + size])

    def _array(self, size: int) -> Any:
        if size <= 0:
            return None if size else []
        if len(self._arrays) >= _DEEPEST:
            raise _error("arrays are too deep")
        self._arrays.append(([], size))
        return _BEGUN


def _number(text: bytes) -> int:
    if not text.removeprefix(b"-").isdigit() or len(text) > 20:
        raise _error(f"{text[:20]!r} is no number")
    return int(text)


def _error(text: str) -> WireError:
    return WireError("ERR", f"invalid reply of a Redis: {text}")
