"""Sessions of the dashboard: a token is exchanged for a cookie that scripts cannot read."""

from typing import Annotated, Final

import msgspec

import geartrain
from geartrain.audit import LOGIN
from geartrain.doors.http import auth, tokens
from geartrain.doors.http import request as api
from geartrain.doors.http.problems import Refusal
from geartrain.doors.http.request import ApiRequest
from geartrain.doors.http.response import Response
from geartrain.rights import ADMIN, SCOPES, Identity

_LONGEST_TOKEN: Final = 1000


class Login(msgspec.Struct, forbid_unknown_fields=True):
    """The token to log in with."""

    token: Annotated[str, msgspec.Meta(max_length=_LONGEST_TOKEN)]


class SessionView(msgspec.Struct, frozen=True):
    """The access of the client."""

    locked: bool  # whether the server requires a token
    scopes: list[str]  # of the client
    version: str
    user: str = ""  # whom the token or certificate belongs to
    rights: list[str] = []  # of the client, with their patterns: `submit:mail.*`
    logged_in: bool = False  # by a session, which can be ended


def session(request: ApiRequest) -> Response:
    """GET /session."""
    guard = request.context.guard
    logged_in = guard.keyring.by_session(request.http.cookie(auth.COOKIE)) is not None
    return api.json(_session(request, guard.identity(request.http), logged_in))


def log_in(request: ApiRequest) -> Response:
    """POST /login."""
    keyring = request.context.guard.keyring
    anonymous = auth.connection_identity(request.http)
    identity = keyring.by_token(request.body.token) if request.body.token else None
    if identity is None and anonymous is not None:
        raise Refusal("unauthorized", "unknown token")
    audit = request.context.tick_loop.engine.audit
    if audit is not None:
        audit.record(LOGIN, identity=identity, peer=request)
    answer = api.json(_session(request, identity, logged_in=True))
    secure = request.context.proxies.is_https(request.http)
    answer.set_cookie(auth.COOKIE, keyring.log_in(identity), seconds=int(tokens.SESSION_SECONDS), secure=secure)
    return answer


def log_out(request: ApiRequest) -> Response:
    """POST /logout."""
    request.context.guard.keyring.log_out(request.http.cookie(auth.COOKIE))
    answer = api.nothing()
    secure = request.context.proxies.is_https(request.http)
    answer.set_cookie(auth.COOKIE, "", seconds=0, secure=secure)
    return answer


def _session(request: ApiRequest, identity: Identity | None, logged_in: bool) -> SessionView:
    anonymous = auth.connection_identity(request.http)
    scopes = [scope for scope in SCOPES if identity is None or identity.rights.somewhere(scope)]
    return SessionView(
        locked=anonymous is not None,
        scopes=scopes,
        version=geartrain.__version__ if scopes else "",
        user=identity.name if identity is not None else "",
        rights=str(identity.rights).split() if identity is not None else [ADMIN],
        logged_in=logged_in,
    )
