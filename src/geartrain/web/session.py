"""Logging in to the dashboard: a token in exchange for a cookie that no script can read."""

from typing import Annotated, Final

import msgspec
from starlette.responses import Response

import geartrain
from geartrain.web import call, guard, tokens
from geartrain.web.call import Call
from geartrain.web.problems import Refusal

_LONGEST_TOKEN: Final = 1000


class Login(msgspec.Struct, forbid_unknown_fields=True):
    """A token."""

    token: Annotated[str, msgspec.Meta(max_length=_LONGEST_TOKEN)]


class Session(msgspec.Struct, frozen=True):
    """Who one is."""

    locked: bool  # a token is needed here
    scopes: list[str]  # what one may do
    version: str


async def session(asked: Call) -> Response:
    """GET /session."""
    return call.json(_session(asked, asked.house.guard.scopes(asked.request)))


async def log_in(asked: Call) -> Response:
    """POST /login."""
    keyring = asked.house.guard.keyring
    scopes = keyring.scopes_of_token(asked.body.token) if keyring.locked else tokens.EVERYTHING
    if scopes is None:
        raise Refusal("unauthorized", "there is no such token")
    answer = call.json(_session(asked, scopes))
    answer.set_cookie(
        guard.COOKIE,
        keyring.log_in(scopes),
        max_age=int(tokens.SESSION_SECONDS),
        httponly=True,
        samesite="strict",
        secure=asked.request.scope["scheme"] == "https",
    )
    return answer


async def log_out(asked: Call) -> Response:
    """POST /logout."""
    asked.house.guard.keyring.log_out(asked.request.cookies.get(guard.COOKIE, ""))
    answer = call.nothing()
    answer.delete_cookie(guard.COOKIE, httponly=True, samesite="strict")
    return answer


def _session(asked: Call, scopes: tokens.Scopes) -> Session:
    known = geartrain.__version__ if scopes else ""
    return Session(asked.house.guard.keyring.locked, [scope for scope in tokens.SCOPES if scope in scopes], known)
