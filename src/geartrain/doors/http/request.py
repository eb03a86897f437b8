"""Reading requests, for handlers: names in the path, query parameters and bodies; and writing JSON answers."""

import contextlib
import math
import urllib.parse
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from geartrain.audit import LOGIN, Origin
from geartrain.doors.http.problems import Refusal
from geartrain.engine.engine import Engine
from geartrain.rights import Identity

if TYPE_CHECKING:
    from geartrain.doors.http.connection import HttpConnection
    from geartrain.doors.http.context import HttpContext

JSON: Final = "application/json"
_LONGEST_ERROR: Final = 300  # characters of an error that may quote the body


class ApiRequest:
    """A request as handlers get it."""

    __slots__ = ("body", "context", "http", "identity", "names", "query")

    def __init__(
        self,
        request: Request,
        context: "HttpContext",
        names: list[bytes],
        identity: Identity | None,
        query: Any,
        body: Any,
    ) -> None:
        self.http = request
        self.context = context
        self.names = names  # the names in the path, decoded
        self.identity = identity  # of the client; None: it may do everything
        self.query = query  # an instance of the route's query struct
        self.body = body  # an instance of the route's body struct, or bytes

    def begin_tick(self) -> Engine:
        """The engine, with the time of this tick and the rights of the client."""
        engine = self.context.tick_loop.begin_tick()
        engine.actor = self.identity
        engine.peer = self
        return engine

    def origin(self) -> Origin:
        """Where the client is, for the audit log."""
        return HttpPeer(self.http, self.context).origin()


class HttpPeer:
    """The client of a request, for the audit log. Behind a trusted proxy it is the proxy's client."""

    def __init__(self, request: Request, context: "HttpContext") -> None:
        self._request = request
        self._context = context

    def origin(self) -> Origin:
        client = self._request.client
        peer = f"{client.host}:{client.port}" if client is not None else "unix socket"
        if client is not None and (forwarded := self._context.proxies.client_of(self._request)) != client.host:
            peer = forwarded
        return Origin("http", peer)

    def log_in(self, identity: Identity) -> None:
        """Count the connection for its user, and record a token once, although each request has it.

        A LimitError if the user has too many connections.
        """
        connection: HttpConnection = self._request.scope["state"]["connection"]
        if connection.last_user is identity:
            return
        connection.count_for(identity.usage)
        connection.last_user = identity
        audit = self._context.tick_loop.engine.audit
        if audit is not None and "authorization" in self._request.headers:
            audit.record(LOGIN, identity=identity, peer=self)


def json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A response with a JSON body."""
    return Response(msgspec.json.encode(value), status, headers, JSON)


def nothing() -> Response:
    """A response without a body."""
    return Response(status_code=204)


def parameters(request: Request, struct: Any) -> Any:
    """The query parameters as a struct. Strings may contain any bytes, as surrogate escapes: see `raw`."""
    values: dict[str, str] = {}
    text = request.scope["query_string"].decode("utf-8", "surrogateescape")
    pairs = urllib.parse.parse_qsl(text, keep_blank_values=True, errors="surrogateescape")
    for name, value in pairs:
        if name in values:
            raise Refusal("bad-request", f"duplicate parameter {shown(name)}")
        values[name] = value
    if struct is None:
        if values:
            raise Refusal("bad-request", f"unknown parameter {shown(next(iter(values)))}")
        return None
    try:
        query = msgspec.convert(values, struct, strict=False)
    except msgspec.ValidationError as error:
        raise Refusal("bad-request", shown(str(error))) from None
    except UnicodeEncodeError:  # a value that becomes a number or one of several words
        raise Refusal("bad-request", "parameters must be UTF-8") from None
    for name in struct.__struct_fields__:
        _check(name, getattr(query, name))
    return query


def _check(name: str, value: Any) -> None:
    """Check what the types do not express. The name of a function may be any bytes; other strings must be UTF-8."""
    if isinstance(value, float) and not math.isfinite(value):
        raise Refusal("bad-request", f"{name} must be a finite number")
    if isinstance(value, str) and name != "function" and not raw(value).isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Refusal("bad-request", f"{name} must be UTF-8") from None


def raw(text: str) -> bytes:
    """The bytes of a parameter."""
    return text.encode("utf-8", "surrogateescape")


def quoted(name: bytes) -> str:
    """Bytes percent-encoded for a path."""
    return urllib.parse.quote(name, safe="")


def shown(text: str) -> str:
    """Text of a client for an error message: cut, and valid UTF-8."""
    return text[:_LONGEST_ERROR].encode("utf-8", "backslashreplace").decode()


async def raw_body(request: Request, limit: int) -> bytes:
    """The whole body; a problem if it is larger than the limit."""
    with contextlib.suppress(ValueError):
        if int(request.headers.get("content-length", "0")) > limit:
            raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise _too_large(limit)
            parts.append(part)
    except ClientDisconnect:
        raise Refusal("bad-request", "the connection was closed before the body was complete") from None
    return b"".join(parts)


async def json_body(request: Request, limit: int, struct: Any) -> Any:
    """The body as a struct. Only JSON is accepted: browsers send other types across origins without a preflight."""
    data = await raw_body(request, limit)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON and (data or kind):
        raise Refusal("unsupported-media-type", f"the Content-Type of the body must be {JSON}")
    try:
        return msgspec.json.decode(data or b"{}", type=struct)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:  # ValidationError is a DecodeError
        raise Refusal("bad-request", shown(f"invalid body: {error}")) from None


def _too_large(limit: int) -> Refusal:
    # The rest of the body is not read, so the connection cannot be used again.
    return Refusal("too-large", f"the body is larger than {limit} bytes (max_packet)", {"Connection": "close"})
