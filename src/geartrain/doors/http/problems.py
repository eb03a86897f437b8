"""Errors as problem details (RFC 9457).

`kind` is for programs and does not change between versions; `detail` is for people and may change.
"""

import http
from typing import Final

import msgspec

from geartrain.doors.http.response import Response
from geartrain.errors import ForbiddenError, LimitError, QueueFullError, RequestError

MEDIA_TYPE: Final = "application/problem+json"

# By kind. The first six are the kinds of AdminError.
STATUSES: Final[dict[str, int]] = {
    "bad-request": 400,
    "not-found": 404,
    "conflict": 409,
    "unsupported": 501,
    "result-gone": 410,
    "result-cut": 410,
    "unauthorized": 401,
    "forbidden": 403,
    "method-not-allowed": 405,
    "timeout": 408,
    "too-large": 413,
    "unsupported-media-type": 415,
    "misdirected": 421,
    "queue-full": 429,
    "head-too-large": 431,
    "internal": 500,
    "unavailable": 503,
    "not-over": 504,
}


class ProblemDetails(msgspec.Struct, frozen=True):
    """Why a request was refused or failed."""

    type: str
    title: str
    status: int
    detail: str
    kind: str


class Refusal(Exception):  # noqa: N818  # an answer to the client, not an error of the server
    """Raised by handlers to answer a request with a problem."""

    def __init__(self, kind: str, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = headers


def kind_of(error: RequestError) -> str:
    """The kind of a request that the engine refused."""
    if isinstance(error, ForbiddenError):
        return "forbidden"
    if isinstance(error, QueueFullError):
        return "queue-full"
    return "unavailable" if isinstance(error, LimitError) else "bad-request"


def details(kind: str, detail: str) -> ProblemDetails:
    """A problem of this kind."""
    status = STATUSES[kind]
    # RFC 9457: the type about:blank means that the title is the phrase of the status.
    return ProblemDetails("about:blank", http.HTTPStatus(status).phrase, status, detail, kind)


def body(kind: str, detail: str) -> bytes:
    """The JSON of a problem."""
    return msgspec.json.encode(details(kind, detail))


def answer(kind: str, detail: str, headers: dict[str, str] | None = None) -> Response:
    """The response for a problem."""
    return Response(body(kind, detail), STATUSES[kind], headers, MEDIA_TYPE)
