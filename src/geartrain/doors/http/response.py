"""Responses, and how they are written: status line, headers and body as one piece of bytes.

Most responses have the same headers, so the bytes of all that do not change are made once for each status and media
type. Names of headers are in lower case, which every HTTP client accepts and HTTP/2 requires.

>>> response = Response(b"{}", 200, media_type="application/json")
>>> response.encode(b"Thu, 01 Jan 1970 00:00:00 GMT").partition(b"\\r\\n")[0]
b'HTTP/1.1 200 OK'
"""

import http
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from geartrain.doors.http.request import Request

# On every response that does not have its own. The files of the dashboard have their own Content-Security-Policy.
HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "cache-control": "no-store",
}
_LINES: Final = {status.value: f"{status.value} {status.phrase}\r\n".encode() for status in http.HTTPStatus}
_WITHOUT_BODY: Final = frozenset({204, 304})

_beginnings: Final[dict[tuple[int, str], bytes]] = {}  # by status and media type


@mypyc_attr(allow_interpreted_subclasses=True)
class Response:
    """What a request is answered with."""

    __slots__ = ("body", "headers", "is_durable", "lines", "media_type", "status_code")

    def __init__(
        self,
        body: bytes = b"",
        status_code: int = 200,
        headers: dict[str, str] | None = None,
        media_type: str = "",
        lines: bytes = b"",
    ) -> None:
        self.body = body
        self.status_code = status_code
        self.headers: dict[str, str] = {}  # besides those of every response
        self.lines = lines  # further headers as they are written, for what is sent a hundred thousand times
        self.media_type = media_type
        self.is_durable = False  # it is sent when every change so far is on disk
        if headers:
            for name, value in headers.items():
                self.headers[name.lower()] = value

    def set_cookie(self, name: str, value: str, *, seconds: int, secure: bool) -> None:
        """Set a cookie that no script can read and no other site can send; 0 seconds delete it."""
        words = [f"{name}={value}", "HttpOnly", f"Max-Age={seconds}", "Path=/", "SameSite=strict"]
        self.headers["set-cookie"] = "; ".join([*words, "Secure"] if secure else words)

    def encode(
        self,
        date: bytes,
        is_old: bool = False,
        keep_alive: bool = True,
        without_body: bool = False,
        chunks: bool = False,
    ) -> bytes:
        """The bytes of the response; only the head, if a stream of chunks follows."""
        body = self.body
        beginning, lines = self._beginning(), self.lines
        has_body = self.status_code not in _WITHOUT_BODY
        if keep_alive and has_body and not (is_old or without_body or chunks):
            return b"HTTP/1.1 %b%bdate: %b\r\ncontent-length: %d\r\n\r\n%b" % (beginning, lines, date, len(body), body)
        parts = [b"HTTP/1.0 " if is_old else b"HTTP/1.1 ", beginning, lines, b"date: ", date, b"\r\n"]
        if chunks:
            if not is_old:
                parts.append(b"transfer-encoding: chunked\r\n")
        elif has_body:
            parts.append(b"content-length: %d\r\n" % len(body))
        if not keep_alive:
            parts.append(b"connection: close\r\n")
        elif is_old:
            parts.append(b"connection: keep-alive\r\n")
        parts.append(b"\r\n")
        if has_body and not (without_body or chunks):
            parts.append(body)
        return b"".join(parts)

    def _beginning(self) -> bytes:
        """Everything between the version and the date."""
        key = (self.status_code, self.media_type)
        own = self.headers
        if own and not own.keys().isdisjoint(HEADERS):
            return _head(self.status_code, self.media_type, own)
        beginning = _beginnings.get(key)
        if beginning is None:
            beginning = _beginnings[key] = _head(self.status_code, self.media_type, {})
        return beginning + _lines(own) if own else beginning


@mypyc_attr(allow_interpreted_subclasses=True)
class StreamResponse(Response):
    """A response whose body is written bit by bit."""

    __slots__ = ()

    async def send(self, request: "Request") -> None:
        """Write the body with `request.connection.send_part`."""
        raise NotImplementedError


# What a handler returns that answers later, with `HttpConnection.respond_later`.
LATER: Final = Response()


def _head(status: int, media_type: str, headers: dict[str, str]) -> bytes:
    lines = {**HEADERS, **headers}
    return _LINES[status] + _lines({"content-type": media_type, **lines} if media_type else lines)


def _lines(headers: dict[str, str]) -> bytes:
    text = "".join([f"{name}: {value}\r\n" for name, value in headers.items() if name != "connection"])
    if text.count("\n") > len(headers):
        raise ValueError("a header has a line break")
    return text.encode("latin-1")
