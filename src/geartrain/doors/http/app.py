"""The application: access control, then the route, then its handler.

Every error becomes a problem (`problems.py`), so that no request can stop the server.
"""

import contextlib
import email.utils
import functools
import logging
from typing import TYPE_CHECKING, Any, Final

from geartrain.audit import LOGIN, REFUSED
from geartrain.doors.door import Limits
from geartrain.doors.http import gearmand_protocol, problems, routes, static_files, tokens
from geartrain.doors.http import request as api
from geartrain.doors.http.auth import Guard
from geartrain.doors.http.context import HttpContext
from geartrain.doors.http.door import Options
from geartrain.doors.http.problems import Refusal
from geartrain.doors.http.request import ApiRequest, HttpPeer, Request
from geartrain.doors.http.response import Response
from geartrain.doors.http.route import API, Answer, RawBytes, Route, ServerSentEvents
from geartrain.doors.http.router import Router
from geartrain.errors import AdminError, NotDurableError, RequestError
from geartrain.rights import Identity
from geartrain.runtime.tick import TickLoop

if TYPE_CHECKING:
    from geartrain.admin.service import Admin

_CLOSE: Final = {"Connection": "close"}

_log = logging.getLogger("geartrain.http")


class HttpApp:
    """The application of a door."""

    def __init__(self, tick_loop: TickLoop, limits: Limits, options: Options, admin: "Admin") -> None:
        guard = Guard(tokens.Keyring(options.tokens, tick_loop.clock), options.hosts)
        self.context = HttpContext(tick_loop, limits, options, admin, guard)
        self._router = Router(routes.ROUTES)
        self._engine = tick_loop.engine
        self._date = b""
        self._dated = 0  # the second of `_date`
        self._not_durable: dict[tuple[bool, bool, bool], bytes] = {}  # with that date; see `not_durable`

    def close(self) -> None:
        """Answer requests that wait, and refuse new ones: the door closes."""
        self.context.close()

    def date(self) -> bytes:
        """The header Date of a response that is made in this tick."""
        second = int(self._engine.now)
        if second != self._dated:
            self._dated = second
            self._date = email.utils.formatdate(second, usegmt=True).encode()
            self._not_durable.clear()
        return self._date

    def not_durable(self, is_old: bool, keep_alive: bool, without_body: bool) -> bytes:
        """What is sent instead of a response whose changes cannot be written. Each such response has one ready."""
        date = self.date()
        key = (is_old, keep_alive, without_body)
        data = self._not_durable.get(key)
        if data is None:
            response = problems.answer("unavailable", str(NotDurableError()))
            data = self._not_durable[key] = response.encode(date, is_old, keep_alive, without_body)
        return data

    def admit(self, request: Request) -> None:
        """Decide what answers the request when its body has arrived; an exception if it is refused before."""
        context = self.context
        if context.closing.done():
            raise Refusal("unavailable", "the server is stopping", _CLOSE)
        routes, names = self._router.find(request.head.path)
        if not routes and context.options.gearmand_http and gearmand_protocol.is_function(request):
            request.answer = gearmand_protocol.admit(request, context)
            return
        guard = context.guard
        guard.check_host(request)
        guard.check_origin(request)
        if not routes and not request.path.startswith(API):
            request.answer = functools.partial(_static_file, request)
            return
        route = routes.get(request.method)
        if route is None:
            route = _choose(routes, request.method)
        request.route = route
        scopes = route.scopes
        identity: Identity | None = None
        if scopes:
            identity = guard.identity(request)
            if identity is not None:
                HttpPeer(request, context).log_in(identity)
                guard.require(identity, scopes)
        request.names = names
        request.identity = identity
        request.query = api.parameters(request.head.query, route.query)

    def answer(self, request: Request, data: bytes) -> Answer:
        """Answer a request that was admitted, and whose body this is."""
        answer, route = request.answer, request.route
        if answer is not None:
            request.answer = None  # it refers to the request
            return answer(data)
        assert route is not None
        body: Any = None
        if route.body is RawBytes:
            body = data
        elif route.body is not None:
            body = api.json_body(request, data, route.body)
        return route.handler(ApiRequest(request, self.context, request.names, request.identity, request.query, body))

    def problem(self, request: Request, error: Exception) -> Response:
        """The response to a request that was refused, or that failed."""
        if isinstance(error, Refusal):
            if error.kind in ("unauthorized", "forbidden"):
                self._record_refusal(request, error)
            return problems.answer(error.kind, error.detail, error.headers)
        if isinstance(error, AdminError):
            return problems.answer(error.kind, error.text)
        if isinstance(error, RequestError):
            return problems.answer(problems.kind_of(error), str(error))
        if isinstance(error, NotDurableError):
            return problems.answer("unavailable", str(error))
        _log.error("request failed", exc_info=error, extra={"fields": {"path": request.path}})
        return problems.answer("internal", "internal error; see the server's log", _CLOSE)

    def _record_refusal(self, request: Request, refusal: Refusal) -> None:
        audit = self._engine.audit
        if audit is None:
            return
        identity = None
        with contextlib.suppress(Refusal):
            identity = self.context.guard.identity(request)
        name = request.method if request.route is None else request.route.audit_name
        audit.record(
            LOGIN if refusal.kind == "unauthorized" else name or request.method,
            REFUSED,
            identity=identity,
            peer=HttpPeer(request, self.context),
            arguments={"method": request.method, "path": request.path},
            why=refusal.detail,
        )


def _static_file(request: Request, data: bytes) -> Response:
    return static_files.answer(request)


def _choose(routes: dict[str, Route], method: str) -> Route:
    if not routes:
        raise Refusal("not-found", "no such path")
    methods = dict(routes)
    if "GET" in routes and routes["GET"].answer is not ServerSentEvents:  # a stream has no end
        methods["HEAD"] = routes["GET"]
    route = methods.get(method)
    if route is None:
        allowed = ", ".join(sorted(methods))
        raise Refusal("method-not-allowed", f"this path supports {allowed}", {"Allow": allowed})
    return route
