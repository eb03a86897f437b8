"""A row of the table of routes: everything that the router, the guard, the reader and the description need to know."""

import dataclasses
import http
from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.responses import Response

from geartrain.doors.http import tokens
from geartrain.doors.http.request import ApiRequest

API: Final = "/api/v1"

Handler = Callable[[ApiRequest], Awaitable[Response]]

ANYBODY: Final[tokens.Scopes] = frozenset()
READERS: Final = frozenset({tokens.READ})
# Whoever may submit may also ask what became of a job whose handle they know.
FOLLOWERS: Final = frozenset({tokens.READ, tokens.SUBMIT})
SUBMITTERS: Final = frozenset({tokens.SUBMIT})
WORKERS: Final = frozenset({tokens.WORK})
ADMINS: Final = frozenset({tokens.ADMIN})
ANY_TOKEN: Final = tokens.EVERYTHING


class RawBytes:
    """Stands for a body that is taken or given as it is."""


class Stream:
    """Stands for an answer that is a stream of server-sent events."""


@dataclasses.dataclass(frozen=True)
class Route:
    """One method of one path."""

    method: str
    path: str
    handler: Handler
    scopes: tokens.Scopes  # one of these is needed
    summary: str
    answer: Any = None  # the type of the JSON; RawBytes, Stream, str for text, None for no body
    status: int = 200
    query: Any = None  # a struct of the parameters after the `?`
    body: Any = None  # a struct, RawBytes, or None for no body
    others: tuple[int, ...] = ()  # other statuses of success, with the same or no body
    problems: tuple[str, ...] = ()  # kinds that this route may answer with, besides what any may

    @property
    def parts(self) -> list[str]:
        return self.path.lstrip("/").split("/")

    @property
    def names(self) -> list[str]:
        """The names in braces, in order."""
        return [part[1:-1] for part in self.parts if part.startswith("{")]

    @property
    def operation(self) -> str:
        """A name for code generators: `post_functions_name_pause`."""
        words = [part.strip("{}") for part in self.path.removeprefix(API).lstrip("/").replace(".", "_").split("/")]
        return "_".join([self.method.lower(), *filter(None, words)])

    @property
    def phrase(self) -> str:
        return http.HTTPStatus(self.status).phrase
