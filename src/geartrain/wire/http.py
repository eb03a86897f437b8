"""HTTP/1.1 requests as a server reads them (RFC 9112): heads, bodies with a length, and chunked bodies.

A request is read in two steps, so that a door can refuse it before its body has arrived: `next_head`, then `next_body`.
What follows in the buffer is the next request (pipelining).

Reading is strict, because a proxy in front of the server must not see other requests in the same bytes than we do
(request smuggling): lines end with CR LF, a name is followed by its colon, nothing is folded, and a body has either one
length or chunks. Every violation is a WireError.

A client sends the same headers with each request. So each connection remembers the last few blocks of headers, without
the length of the body, and parses a block only once. A head that is the same as the one before, to the byte, is not
parsed at all.

>>> reader = RequestReader(1000)
>>> reader.feed(b"POST /a?b=1 HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 2\\r\\n\\r\\nhi")
>>> head = reader.next_head()
>>> head.method, head.path, head.query, head.headers, reader.next_body()
('POST', b'/a', b'b=1', {'host': 'x'}, b'hi')
"""

import re
from typing import Final

from geartrain.errors import WireError

HEAD_LIMIT: Final = 64 * 1024  # bytes of a request line and its headers, and of the lines between chunks
CHUNKED: Final = -1  # the length of a body that comes in chunks

_BLANK_LINE: Final = b"\r\n\r\n"
_CRLF: Final = b"\r\n"
_LONGEST_CHUNK_LINE: Final = 1024
_REMEMBERED: Final = 4  # blocks of headers
_LONGEST_REMEMBERED: Final = 2048  # bytes of one
_MOST_DIGITS: Final = 15  # of a length: more than any memory has

# RFC 9110, section 5.6.2.
_TOKEN: Final = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_VISIBLE: Final = bytes(range(0x21, 0x7F))
_IN_TARGET: Final = _VISIBLE.replace(b"#", b"")  # a client keeps the fragment for itself
_CONTROLS: Final = bytes([*range(0x09), *range(0x0A, 0x20), 0x7F])  # all but the tab
_HEX: Final = re.compile(rb"[0-9A-Fa-f]{1,15}")
# The beginning of a request line, as far as it has arrived.
_BEGINNING: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,40}(?: [!-~]*(?: [HTP/1.0]*\r?)?)?")
_ABSOLUTE: Final = re.compile(rb"https?://([^/?@]+)(/[^?]*)?(?:\?(.*))?", re.IGNORECASE)
_VERSION: Final = re.compile(rb"HTTP/[0-9]\.[0-9]")
_METHODS: Final = {name.encode(): name for name in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")}
# The usual ways of writing the header that differs from request to request.
_LENGTH: Final = b"\r\nContent-Length: "
_LENGTH_IN_LOWER_CASE: Final = b"\r\ncontent-length: "

# What of a request is read next.
_HEAD, _BODY, _CHUNK_SIZE, _CHUNK, _CHUNK_END, _TRAILER = range(6)


class RequestHeaders:
    """The headers of requests, and what they say about the connection. Shared by requests that have the same ones."""

    __slots__ = ("expects_continue", "fields", "has_length", "length", "options")

    def __init__(self, fields: dict[str, str], length: int, options: frozenset[str]) -> None:
        # The length is that of a request, and not of the others that share these headers.
        self.has_length = fields.pop("content-length", None) is not None
        self.fields = fields
        self.length = length  # of the body
        self.options = options  # of the header Connection
        self.expects_continue = fields.get("expect", "").lower() == "100-continue"


class RequestHead:
    """The first line of a request, and its headers."""

    __slots__ = ("expects_continue", "headers", "is_old", "keep_alive", "length", "method", "path", "query")

    def __init__(
        self, method: str, path: bytes, query: bytes, is_old: bool, block: RequestHeaders, length: int
    ) -> None:
        self.method = method
        self.path = path  # as it was sent
        self.query = query  # without the question mark
        self.is_old = is_old  # HTTP/1.0
        self.headers = block.fields  # by name in lower case; several of one name are joined
        self.length = length  # of the body
        self.expects_continue = block.expects_continue and not is_old
        options = block.options
        # An upgrade is ignored. But what the client sends next may be of the other protocol.
        self.keep_alive = ("keep-alive" in options if is_old else "close" not in options) and "upgrade" not in options


class RequestReader:
    """The requests in the bytes of one connection."""

    __slots__ = (
        "_at",
        "_body",
        "_data",
        "_last_bytes",
        "_last_head",
        "_left",
        "_line_is_valid",
        "_lines",
        "_partial",
        "_phase",
        "_searched",
        "_with_length",
        "_without_length",
        "begun",
        "body_limit",
    )

    def __init__(self, body_limit: int) -> None:
        self.body_limit = body_limit  # bytes
        self.begun = 0  # number of requests of which something has arrived
        self._data = b""  # what was read
        self._at = 0  # where its unread part begins
        self._partial = bytearray()  # of a head whose end has not arrived
        self._searched = 0  # bytes of it that have no blank line
        self._line_is_valid = False  # its first line has arrived and was checked
        self._phase = _HEAD
        self._body = bytearray()  # as much as has arrived
        self._left = 0  # bytes of the body, or of the chunk, that have not arrived
        self._lines = 0  # bytes of chunk sizes and trailers
        self._with_length: dict[bytes, RequestHeaders] = {}  # by their bytes without the length
        self._without_length: dict[bytes, RequestHeaders] = {}
        self._last_bytes = b""  # of the last head that may be met again, with its blank line; empty: there was none
        self._last_head: RequestHead | None = None

    def feed(self, data: bytes) -> None:
        """Add what was read. Everything that is complete should have been taken before."""
        if self._partial:
            self._partial += data
        elif self._at < len(self._data):
            self._data = self._data[self._at :] + data
            self._at = 0
        else:
            self._data = data
            self._at = 0

    @property
    def has_more(self) -> bool:
        """Whether anything has arrived that was not taken."""
        return self._at < len(self._data) or len(self._partial) > 0

    @property
    def is_reading_body(self) -> bool:
        """Whether the head was taken and the body was not."""
        return self._phase != _HEAD

    @property
    def arrived(self) -> int:
        """Bytes of an incomplete request that are kept: of its head, or else of its body."""
        if self._phase == _HEAD:
            return len(self._partial)
        return len(self._body) + self._lines + 1

    # Heads

    def next_head(self) -> RequestHead | None:
        """The head of the next request; None if it has not arrived completely. Take its body before the next head."""
        if self._partial and not self._end_of_partial():
            return None
        data, at = self._data, self._at
        if at == len(data):
            return None
        last = self._last_bytes
        if last and data[at : at + len(last)] == last:
            head = self._last_head
            assert head is not None
            self._at = at + len(last)
            return self._begin_body(head)
        if data[at : at + 1] in (b"\r", b"\n"):  # empty lines before a request are allowed
            at = len(data) - len(data[at:].lstrip(_CRLF))
        end = data.find(_BLANK_LINE, at)
        if end < 0:
            self._keep_partial(data[at:])
            return None
        if end - at > HEAD_LIMIT:
            raise _too_large_head()
        self._at = end + len(_BLANK_LINE)
        head = self._head(data[at:end])
        if self._at - at <= _LONGEST_REMEMBERED and not head.expects_continue:  # which changes while it is answered
            self._last_bytes = data[at : self._at]
            self._last_head = head
        return self._begin_body(head)

    def _begin_body(self, head: RequestHead) -> RequestHead:
        """The body is read next."""
        if self._searched:
            self._searched = 0  # it was counted when it began
        else:
            self.begun += 1
        self._left = head.length
        self._lines = 0
        self._phase = _CHUNK_SIZE if head.length == CHUNKED else _BODY
        return head

    def _end_of_partial(self) -> bool:
        """Whether the end of the partial head has arrived; then all of it is moved to `_data`."""
        partial = self._partial
        if partial.find(_BLANK_LINE, max(self._searched - 3, 0)) < 0:
            self._check_partial()
            return False
        self._data = bytes(partial)
        self._at = 0
        self._partial = bytearray()
        return True

    def _keep_partial(self, data: bytes) -> None:
        self._data = b""
        self._at = 0
        if data:
            self._partial = bytearray(data)
            self._searched = 0
            self._line_is_valid = False
            self.begun += 1
            self._check_partial()

    def _check_partial(self) -> None:
        """Refuse at once what cannot become a request."""
        partial = self._partial
        if len(partial) > HEAD_LIMIT:
            raise _too_large_head()
        if not self._line_is_valid:
            end = partial.find(b"\n", self._searched)
            if end >= 0:
                if partial[end - 1 : end] != b"\r":
                    raise _bad("lines must end with CR LF")
                _request_line(bytes(partial[: end - 1]))
                self._line_is_valid = True
            elif not self._searched and _BEGINNING.fullmatch(partial) is None:
                raise _bad("not a request line")
        if partial.find(b"\n\n", max(self._searched - 1, 0)) >= 0:
            raise _bad("lines must end with CR LF")
        self._searched = len(partial)

    def _head(self, head: bytes) -> RequestHead:
        line_end = head.find(_CRLF)
        if line_end < 0:
            line, block = head, b""
        else:
            line, block = head[:line_end], head[line_end:]
        method, target, is_old = _request_line(line)
        fields, length = self._fields(block)
        if is_old and length == CHUNKED:
            raise _bad("HTTP/1.0 has no Transfer-Encoding")
        if target.startswith(b"/"):
            path, _, query = target.partition(b"?")
        elif method == "OPTIONS" and target == b"*":
            path, query = target, b""
        else:
            match = _ABSOLUTE.fullmatch(target)
            if match is None:
                raise _bad("the target must be a path")
            path, query = match[2] or b"/", match[3] or b""
            # RFC 9112, section 3.2.2: the header Host is ignored.
            own = {**fields.fields, "host": match[1].decode("ascii")}
            fields = RequestHeaders(own, fields.length, fields.options)
        return RequestHead(method, path, query, is_old, fields, length)

    def _fields(self, block: bytes) -> tuple[RequestHeaders, int]:
        """The headers of a block, each line of which begins with CR LF; and the length of the body."""
        start = block.find(_LENGTH)
        if start < 0:
            start = block.find(_LENGTH_IN_LOWER_CASE)
        if start < 0:
            fields = self._without_length.get(block)
            if fields is None:
                fields = _parse_fields(block)
                if not fields.has_length and fields.length != CHUNKED:
                    _remember(self._without_length, block, fields)
            return fields, fields.length
        digits_at = start + len(_LENGTH)
        end = block.find(_CRLF, digits_at)
        digits = block[digits_at:] if end < 0 else block[digits_at:end]
        rest = block[:start] if end < 0 else block[:start] + block[end:]
        fields = self._with_length.get(rest)
        if fields is None or not digits.isdigit() or len(digits) > _MOST_DIGITS:
            # A block with a length has only one, so what is remembered has none besides the one that was cut out.
            fields = _parse_fields(block)
            _remember(self._with_length, rest, fields)
            return fields, fields.length
        return fields, int(digits)

    # Bodies

    def next_body(self) -> bytes | None:
        """The body of the request whose head was taken last; None if it has not arrived completely."""
        if self._phase != _BODY:
            return self._next_chunks()
        left = self._left
        if not left:
            self._phase = _HEAD
            return b"" if not self._body else self._take_body()
        if left + len(self._body) > self.body_limit:
            raise self._too_large()
        at = self._at
        end = at + left
        if end <= len(self._data):
            self._at = end
            self._phase = _HEAD
            if not self._body:
                return self._data[at:end]
            self._body += self._data[at:end]
            return self._take_body()
        self._left = left - (len(self._data) - at)
        self._body += self._data[at:] if at else self._data
        self._data = b""
        self._at = 0
        return None

    def _take_body(self) -> bytes:
        body = bytes(self._body)
        self._body = bytearray()
        return body

    def _next_chunks(self) -> bytes | None:
        while self._phase != _HEAD:
            if self._phase == _CHUNK:
                piece = self._data[self._at : self._at + self._left]
                if not piece:
                    return None
                self._body += piece
                self._at += len(piece)
                self._left -= len(piece)
                if not self._left:
                    self._phase = _CHUNK_END
                continue
            line = self._next_line()
            if line is None:
                return None
            self._end_line(line)
        return self._take_body()

    def _next_line(self) -> bytes | None:
        at = self._at
        end = self._data.find(_CRLF, at)
        if end < 0:
            if len(self._data) - at > _LONGEST_CHUNK_LINE:
                raise _bad("the line of a chunk is too long")
            return None
        if end - at > _LONGEST_CHUNK_LINE:
            raise _bad("the line of a chunk is too long")
        self._at = end + len(_CRLF)
        self._lines += end - at
        if self._lines > HEAD_LIMIT:
            raise _too_large_head()
        return self._data[at:end]

    def _end_line(self, line: bytes) -> None:
        """A line between chunks, or behind them."""
        if self._phase == _CHUNK_END:
            if line:
                raise _bad("a chunk is longer than its size")
            self._phase = _CHUNK_SIZE
        elif self._phase == _TRAILER:
            if not line:
                self._phase = _HEAD
            else:
                _parse_field(line)  # it must be a header, and means nothing to us
        else:
            digits, _, extension = line.partition(b";")
            if _HEX.fullmatch(digits) is None or len(extension.translate(None, _CONTROLS)) != len(extension):
                raise _bad("the size of a chunk is not a hexadecimal number")
            self._left = int(digits, 16)
            if self._left + len(self._body) > self.body_limit:
                raise self._too_large()
            self._phase = _CHUNK if self._left else _TRAILER

    def _too_large(self) -> WireError:
        return WireError("TOO_LARGE", f"the body is larger than {self.body_limit} bytes (max_packet)")


def _request_line(line: bytes) -> tuple[str, bytes, bool]:
    """The method, the target, and whether the version is HTTP/1.0."""
    parts = line.split(b" ")
    if len(parts) != 3:
        raise _bad("the request line must have a method, a target and a version")
    word, target, version = parts
    method = _METHODS.get(word)
    if method is None:
        if not word or word.translate(None, _TOKEN):
            raise _bad("the method is not a word")
        method = word.decode("ascii")
    if not target or target.translate(None, _IN_TARGET):
        raise _bad("the target has bytes that must be percent-encoded")
    if version == b"HTTP/1.1":
        return method, target, False
    if version == b"HTTP/1.0":
        return method, target, True
    if _VERSION.fullmatch(version) is None:
        raise _bad("the request line does not end with a version of HTTP")
    raise _bad("the version must be HTTP/1.1 or HTTP/1.0")


def _parse_fields(block: bytes) -> RequestHeaders:
    fields: dict[str, str] = {}
    for line in block.split(_CRLF)[1:]:
        name, value = _parse_field(line)
        if name in fields:
            if name in ("host", "content-length", "transfer-encoding"):
                raise _bad(f"there are two headers {name}")
            # RFC 9110, section 5.2; RFC 9113, section 8.2.3 for cookies.
            value = fields[name] + ("; " if name == "cookie" else ", ") + value
        fields[name] = value
    return RequestHeaders(fields, _length(fields), _options(fields.get("connection", "")))


def _parse_field(line: bytes) -> tuple[str, str]:
    name, colon, value = line.partition(b":")
    if not colon or not name or name.translate(None, _TOKEN):  # a folded line begins with a space
        raise _bad("a header must be a name, a colon and a value")
    if len(value.translate(None, _CONTROLS)) != len(value):
        raise _bad("a header has a control character")
    return name.decode("ascii").lower(), value.strip(b" \t").decode("latin-1")


def _length(fields: dict[str, str]) -> int:
    encoding = fields.get("transfer-encoding")
    length = fields.get("content-length")
    if encoding is not None:
        if length is not None:
            raise _bad("Content-Length and Transfer-Encoding exclude each other")
        if encoding.lower() != "chunked":
            raise _bad("the only Transfer-Encoding of requests is chunked")
        return CHUNKED
    if length is None:
        return 0
    if not length.isascii() or not length.isdigit() or len(length) > _MOST_DIGITS:
        raise _bad("Content-Length is not a number")
    return int(length)


def _options(connection: str) -> frozenset[str]:
    return frozenset(option.strip().lower() for option in connection.split(",")) if connection else frozenset()


def _remember(blocks: dict[bytes, RequestHeaders], block: bytes, fields: RequestHeaders) -> None:
    if len(block) <= _LONGEST_REMEMBERED:
        if len(blocks) >= _REMEMBERED:
            blocks.clear()
        blocks[block] = fields


def _bad(text: str) -> WireError:
    return WireError("BAD_REQUEST", f"not a valid HTTP request: {text}")


def _too_large_head() -> WireError:
    return WireError("HEAD_TOO_LARGE", f"the request line and headers are larger than {HEAD_LIMIT} bytes")
