"""Who gets as far as a handler.

Three fences, since a job server on a developer's machine can be reached by every page that their browser shows:

- `Host`: where no token is needed, only names of this very machine are answered, so that a foreign name that was made
  to point here (DNS rebinding) gets nothing;
- `Origin` and `Sec-Fetch-Site`: a change is refused if another site's page asks for it;
- tokens: where there are any, everything but health and the dashboard's own files needs one.
"""

import ipaddress
from collections.abc import Iterable
from typing import Final

from starlette.requests import Request

from geartrain.doors.http import tokens
from geartrain.doors.http.problems import Refusal

COOKIE: Final = "geartrain_session"
CHANGES_NOTHING: Final = frozenset({"GET", "HEAD"})
_LOCAL_NAMES: Final = frozenset({"localhost"})
_OWN_SITE: Final = frozenset({"same-origin", "none"})
_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="geartrain"'}


def is_loopback(host: str) -> bool:
    """Whether an address, or the name `localhost`, can be reached from this machine only."""
    if host.lower() in _LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def host_of(authority: str) -> str:
    """The name in a Host header, without its port.

    >>> host_of("localhost:4780"), host_of("[::1]:4780"), host_of("127.0.0.1")
    ('localhost', '::1', '127.0.0.1')
    """
    if authority.startswith("["):
        return authority[1:].partition("]")[0].lower()
    return authority.partition(":")[0].lower()


class Guard:
    """Asked about every request before anything else."""

    def __init__(self, keyring: tokens.Keyring, hosts: Iterable[str]) -> None:
        self.keyring = keyring
        self._hosts = frozenset(name.lower() for name in hosts)
        self.everywhere = False  # it listens beyond this machine, and has names there that we cannot know

    def check_host(self, request: Request) -> None:
        """Refuse a name that is not ours."""
        if self.keyring.locked or (self.everywhere and not self._hosts):
            return
        host = host_of(request.headers.get("host", ""))
        if host not in self._hosts and not is_loopback(host):
            raise Refusal(
                "misdirected", f"{host!r} is not a name of this server; http_hosts in its settings adds names"
            )

    def check_origin(self, request: Request) -> None:
        """Refuse changes that another site's page asks for."""
        if request.method in CHANGES_NOTHING:
            return
        site = request.headers.get("sec-fetch-site")
        origin = request.headers.get("origin")
        # Only the names are compared: before a proxy that speaks TLS the schemes differ.
        foreign = origin is not None and origin.partition("://")[2].lower() != request.headers.get("host", "").lower()
        if foreign or (site is not None and site not in _OWN_SITE):
            raise Refusal("forbidden", "a page of another site may not change anything here")

    def scopes(self, request: Request) -> tokens.Scopes:
        """What whoever asks may do; nothing at all without a token where one is needed."""
        if not self.keyring.locked:
            return tokens.EVERYTHING
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme:
            found = self.keyring.scopes_of_token(secret.strip()) if scheme.lower() == "bearer" else None
            if found is None:
                raise Refusal("unauthorized", "there is no such token", _CHALLENGE)
            return found
        return self.keyring.scopes_of_session(request.cookies.get(COOKIE, "")) or frozenset()

    def require(self, has: tokens.Scopes, needed: tokens.Scopes) -> None:
        """Refuse who has none of the scopes of which one is needed."""
        if not needed or has & needed:
            return
        words = " or ".join(sorted(needed))
        if not has:
            raise Refusal("unauthorized", f"this needs a token with the scope {words}", _CHALLENGE)
        raise Refusal("forbidden", f"this needs the scope {words}, which your token does not have")
