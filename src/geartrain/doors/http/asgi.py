"""The ASGI application: access control, then the route, then headers that every answer has.

Every error becomes a problem (`problems.py`), so that no request can stop the server.
"""

import asyncio
import contextlib
import email.utils
import logging
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response

from geartrain.audit import LOGIN, REFUSED
from geartrain.doors.door import Limits
from geartrain.doors.http import gearmand_protocol, problems, routes, static_files, tokens
from geartrain.doors.http import request as api
from geartrain.doors.http.auth import Guard
from geartrain.doors.http.context import HttpContext
from geartrain.doors.http.door import Options
from geartrain.doors.http.problems import Refusal
from geartrain.doors.http.request import ApiRequest, HttpPeer
from geartrain.doors.http.route import API, RawBytes, Route, ServerSentEvents
from geartrain.doors.http.router import Router
from geartrain.errors import AdminError, NotDurableError, RequestError
from geartrain.runtime.tick import TickLoop

if TYPE_CHECKING:
    from geartrain.admin.service import Admin

# On every answer. The files of the dashboard have a Content-Security-Policy of their own.
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cache-Control": "no-store",
}

_AUDIT_NAME: Final = "geartrain.audit_name"  # of a request, in its scope

_log = logging.getLogger("geartrain.http")


class HttpApp:
    """The ASGI application of a door."""

    def __init__(self, tick_loop: TickLoop, limits: Limits, options: Options, admin: "Admin") -> None:
        guard = Guard(tokens.Keyring(options.tokens, tick_loop.clock), options.hosts)
        self.context = HttpContext(tick_loop, limits, options, admin, guard)
        self._router = Router(routes.ROUTES)

    def close(self) -> None:
        """Answer requests that wait, and refuse new ones: the door closes."""
        self.context.close()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
        except Refusal as refusal:
            if refusal.kind in ("unauthorized", "forbidden"):
                self._record_refusal(request, refusal)
            answer = problems.answer(refusal.kind, refusal.detail, refusal.headers)
        except AdminError as error:
            answer = problems.answer(error.kind, error.text)
        except RequestError as error:
            answer = problems.answer(problems.kind_of(error), str(error))
        except NotDurableError as error:
            answer = problems.answer("unavailable", str(error))
        except asyncio.CancelledError:
            raise
        except Exception:
            _log.exception("request failed", extra={"fields": {"path": scope.get("path")}})
            answer = problems.answer("internal", "internal error; see the server's log", _CLOSE)
        for name, value in _HEADERS.items():
            answer.headers.setdefault(name, value)
        answer.headers["Date"] = email.utils.formatdate(self.context.tick_loop.clock(), usegmt=True)
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        context = self.context
        if context.closing.done():
            raise Refusal("unavailable", "the server is stopping", _CLOSE)
        routes, names = self._router.find(request.scope["raw_path"])
        if not routes and context.options.gearmand_http and gearmand_protocol.is_function(request):
            return await gearmand_protocol.answer(request, context)
        context.guard.check_host(request)
        context.guard.check_origin(request)
        if not routes and not request.scope["path"].startswith(API):
            return static_files.answer(request)
        route = _choose(routes, request.method)
        request.scope[_AUDIT_NAME] = route.audit_name
        identity = context.guard.identity(request) if route.scopes else None
        if identity is not None:
            HttpPeer(request, context).log_in(identity)
        context.guard.require(identity, route.scopes)
        query = api.parameters(request, route.query)
        body = await self._body(request, route)
        return await route.handler(ApiRequest(request, context, names, identity, query, body))

    def _record_refusal(self, request: Request, refusal: Refusal) -> None:
        audit = self.context.tick_loop.engine.audit
        if audit is None:
            return
        identity = None
        with contextlib.suppress(Refusal):
            identity = self.context.guard.identity(request)
        audit.record(
            LOGIN if refusal.kind == "unauthorized" else request.scope.get(_AUDIT_NAME) or request.method,
            REFUSED,
            identity=identity,
            peer=HttpPeer(request, self.context),
            arguments={"method": request.method, "path": request.scope["path"]},
            why=refusal.detail,
        )

    async def _body(self, request: Request, route: Route) -> Any:
        limit = self.context.limits.max_packet
        if route.body is None:
            # A body that is sent anyway must be read, because the next request comes after it.
            return await api.raw_body(request, limit) if request.method not in ("GET", "HEAD") else None
        if route.body is RawBytes:
            return await api.raw_body(request, limit)
        return await api.json_body(request, limit, route.body)


_CLOSE: Final = {"Connection": "close"}


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
