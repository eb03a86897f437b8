"""A row of the table of routes: what the router, access control, the reading of requests and OpenAPI need."""

import dataclasses
import http
from collections.abc import Callable, Coroutine
from typing import Any, Final

from geartrain import rights
from geartrain.doors.http import tokens
from geartrain.doors.http.request import ApiRequest
from geartrain.doors.http.response import Response

API: Final = "/api/v1"

# A handler that must wait for something returns a coroutine.
Answer = Response | Coroutine[Any, Any, Response]
Handler = Callable[[ApiRequest], Answer]

ANYBODY: Final[tokens.Scopes] = frozenset()
READERS: Final = frozenset({rights.READ})
# A client that may submit jobs may also see a job whose handle it knows.
FOLLOWERS: Final = frozenset({rights.READ, rights.SUBMIT})
SUBMITTERS: Final = frozenset({rights.SUBMIT})
WORKERS: Final = frozenset({rights.WORK})
ADMINS: Final = frozenset({rights.ADMIN})
ANY_TOKEN: Final = tokens.EVERYTHING


class RawBytes:
    """The type of a body that is sent or received as bytes."""


class ServerSentEvents:
    """The type of an answer that is a stream of events."""


@dataclasses.dataclass(frozen=True)
class Route:
    """One method of one path."""

    method: str
    path: str
    handler: Handler
    scopes: tokens.Scopes  # one of them is needed
    summary: str
    answer: Any = None  # the type of the JSON; RawBytes, ServerSentEvents, str for text, None for no body
    status: int = 200
    verb: str = ""  # of operators, that it carries out
    query: Any = None  # a struct of the query parameters
    body: Any = None  # a struct, RawBytes, or None for no body
    others: tuple[int, ...] = ()  # other statuses of success, with the same or no body
    problems: tuple[str, ...] = ()  # kinds of problems, besides those that any route may answer with

    @property
    def parts(self) -> list[str]:
        return self.path.lstrip("/").split("/")

    @property
    def names(self) -> list[str]:
        """The names in braces, in order."""
        return [part[1:-1] for part in self.parts if part.startswith("{")]

    @property
    def operation(self) -> str:
        """The operationId of OpenAPI: `post_functions_name_pause`."""
        words = [part.strip("{}") for part in self.path.removeprefix(API).lstrip("/").replace(".", "_").split("/")]
        return "_".join([self.method.lower(), *filter(None, words)])

    @property
    def audit_name(self) -> str:
        """What the audit log calls a request that is refused: the verb, or the scope that it needs."""
        return self.verb or " or ".join(sorted(self.scopes))

    @property
    def phrase(self) -> str:
        return http.HTTPStatus(self.status).phrase
