"""Requests as handlers get them: names in the path, query parameters and bodies; and JSON responses."""

import functools
import math
import urllib.parse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from geartrain.audit import LOGIN, Origin
from geartrain.doors.http.problems import Refusal
from geartrain.doors.http.response import Response
from geartrain.engine.engine import Engine
from geartrain.rights import Identity
from geartrain.wire.http import RequestHead

if TYPE_CHECKING:
    from geartrain.doors.http.connection import HttpConnection
    from geartrain.doors.http.context import HttpContext
    from geartrain.doors.http.route import Answer, Route

JSON: Final = "application/json"
_IN_HANDLES: Final = b":-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
# For `bytes.translate`: changes every byte that a handle of ours has not, and no other.
_OF_HANDLES: Final = bytes(byte if byte in _IN_HANDLES else ord("-") for byte in range(256))
_NO_NAMES: Final[list[bytes]] = []
_encode: Final = msgspec.json.Encoder().encode
_LONGEST_ERROR: Final = 300  # characters of an error that may quote the body


class ClientAddress(NamedTuple):
    """The address that a connection comes from."""

    host: str
    port: int


class Request:
    """One request of a connection, until it is answered."""

    __slots__ = (
        "answer",
        "client",
        "connection",
        "disconnected",
        "head",
        "headers",
        "identity",
        "method",
        "names",
        "on_disconnect",
        "query",
        "route",
        "scheme",
    )

    def __init__(
        self,
        head: RequestHead,
        connection: "HttpConnection | None" = None,
        client: ClientAddress | None = None,
        scheme: str = "http",
    ) -> None:
        self.head = head
        self.method = head.method
        self.headers = head.headers
        self.connection = connection
        self.client = client
        self.scheme = scheme
        self.answer: Callable[[bytes], Answer] | None = None  # what answers it if its path is none of the API
        self.route: Route | None = None  # otherwise; and what `ApiRequest` has of it
        self.names: list[bytes] = _NO_NAMES
        self.identity: Identity | None = None
        self.query: Any = None
        self.disconnected = False
        self.on_disconnect: Callable[[], object] | None = None

    @property
    def path(self) -> str:
        """The path, decoded."""
        path = self.head.path.decode("ascii")
        return urllib.parse.unquote(path) if "%" in path else path

    def cookie(self, name: str) -> str:
        """A cookie; empty if there is none of this name."""
        for pair in self.headers.get("cookie", "").split(";"):
            key, _, value = pair.partition("=")
            if key.strip() == name:
                return value.strip()
        return ""

    def disconnect(self) -> None:
        """The client has closed the connection."""
        self.disconnected = True
        if self.on_disconnect is not None:
            self.on_disconnect()


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
        connection = self._request.connection
        assert connection is not None
        if connection.last_user is identity:
            return
        connection.count_for(identity.usage)
        connection.last_user = identity
        audit = self._context.tick_loop.engine.audit
        if audit is not None and "authorization" in self._request.headers:
            audit.record(LOGIN, identity=identity, peer=self)


def json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A response with a JSON body."""
    return Response(_encode(value), status, headers, JSON)


def nothing() -> Response:
    """A response without a body."""
    return Response(status_code=204)


def when_durable(response: Response) -> Response:
    """The response, which is sent when every change so far is on disk."""
    response.is_durable = True
    return response


def parameters(query_string: bytes, struct: Any) -> Any:
    """The query parameters as a struct. Strings may contain any bytes, as surrogate escapes: see `raw`."""
    if not query_string and struct is None:
        return None
    values: dict[str, str] = {}
    text = query_string.decode("utf-8", "surrogateescape")
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


def quoted(name: bytes) -> bytes:
    """Bytes percent-encoded for a path."""
    if name.translate(_OF_HANDLES) == name:  # faster, and every submission needs it
        return name.replace(b":", b"%3A")
    return urllib.parse.quote(name, safe="").encode()


def shown(text: str) -> str:
    """Text of a client for an error message: cut, and valid UTF-8."""
    return text[:_LONGEST_ERROR].encode("utf-8", "backslashreplace").decode()


def json_body(request: Request, data: bytes, struct: Any) -> Any:
    """The body as a struct. Only JSON is accepted: browsers send other types across origins without a preflight."""
    kind = request.headers.get("content-type", "")
    if kind != JSON and (data or kind) and kind.partition(";")[0].strip().lower() != JSON:
        raise Refusal("unsupported-media-type", f"the Content-Type of the body must be {JSON}")
    try:
        return _decoder(struct).decode(data or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:  # ValidationError is a DecodeError
        raise Refusal("bad-request", shown(f"invalid body: {error}")) from None


@functools.cache
def _decoder(struct: Any) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(struct)
