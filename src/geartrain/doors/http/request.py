"""One request on its way to a handler: its names, its parameters, its body, and the house that it is asked in."""

import contextlib
import math
import urllib.parse
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from geartrain.doors.http import tokens
from geartrain.doors.http.problems import Refusal

if TYPE_CHECKING:
    from geartrain.doors.http.context import HttpContext

JSON: Final = "application/json"
_LONGEST_ERROR: Final = 300  # characters of what was wrong with a body: it may quote the body


class ApiRequest:
    """What a handler gets."""

    __slots__ = ("body", "context", "http", "names", "query", "scopes")

    def __init__(
        self, request: Request, context: "HttpContext", names: list[bytes], scopes: tokens.Scopes, query: Any, body: Any
    ) -> None:
        self.http = request
        self.context = context
        self.names = names  # the parts of the path that are names, decoded
        self.scopes = scopes  # what whoever asks may do
        self.query = query  # an instance of the route's struct
        self.body = body  # the same, or bytes


def json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A value of ours as the answer."""
    return Response(msgspec.json.encode(value), status, headers, JSON)


def nothing() -> Response:
    """Done, and there is nothing to say about it."""
    return Response(status_code=204)


def parameters(request: Request, wanted: Any) -> Any:
    """The parameters after the `?`. Text may hold any bytes: `raw` gives them back."""
    given: dict[str, str] = {}
    text = request.scope["query_string"].decode("utf-8", "surrogateescape")
    pairs = urllib.parse.parse_qsl(text, keep_blank_values=True, errors="surrogateescape")
    for name, value in pairs:
        if name in given:
            raise Refusal("bad-request", f"the parameter {shown(name)} is given twice")
        given[name] = value
    if wanted is None:
        if given:
            raise Refusal("bad-request", f"there is no parameter {shown(next(iter(given)))}")
        return None
    try:
        query = msgspec.convert(given, wanted, strict=False)
    except msgspec.ValidationError as error:
        raise Refusal("bad-request", shown(str(error))) from None
    for name in wanted.__struct_fields__:
        _check(name, getattr(query, name))
    return query


def _check(name: str, value: Any) -> None:
    """What the types do not say. A function's name may be any bytes; everything else that is text is UTF-8."""
    if isinstance(value, float) and not math.isfinite(value):
        raise Refusal("bad-request", f"the parameter {name} must be a finite number")
    if isinstance(value, str) and name != "function" and not raw(value).isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Refusal("bad-request", f"the parameter {name} must be UTF-8") from None


def raw(text: str) -> bytes:
    """The bytes that a parameter had."""
    return text.encode("utf-8", "surrogateescape")


def quoted(name: bytes) -> str:
    """Bytes as a part of a path."""
    return urllib.parse.quote(name, safe="")


def shown(text: str) -> str:
    """Text from outside, as it may stand in an answer."""
    return text[:_LONGEST_ERROR].encode("utf-8", "backslashreplace").decode()


async def raw_body(request: Request, limit: int) -> bytes:
    """The whole body, unless it is larger than the limit."""
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
        raise Refusal("bad-request", "the connection broke before the body was complete") from None
    return b"".join(parts)


async def json_body(request: Request, limit: int, wanted: Any) -> Any:
    """The body as a struct. Other types than JSON are refused: browsers send those across sites without asking."""
    data = await raw_body(request, limit)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON and (data or kind):
        raise Refusal("unsupported-media-type", f"the body must be {JSON}")
    try:
        return msgspec.json.decode(data or b"{}", type=wanted)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:  # ValidationError is a DecodeError
        raise Refusal("bad-request", shown(f"the body: {error}")) from None


def _too_large(limit: int) -> Refusal:
    # The rest of the body is not read, so the connection cannot be used again.
    return Refusal("too-large", f"a body may have at most {limit} bytes (max_packet)", {"Connection": "close"})
