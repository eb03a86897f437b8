"""Access control.

A job server on a developer's machine can be reached by every page that is open in a browser there. Three checks
protect it:

- `Host`: where no token is required, only names of this machine are accepted (`doors/web_access.py`).
- `Origin` and `Sec-Fetch-Site`: changes requested by pages of other sites are refused (CSRF).
- Tokens: if any are configured, all paths but health checks and the files of the dashboard require one.
"""

from collections.abc import Iterable
from typing import Final

from geartrain.doors import web_access
from geartrain.doors.http import tokens
from geartrain.doors.http.problems import Refusal
from geartrain.doors.http.request import Request
from geartrain.doors.web_access import WebAccess
from geartrain.rights import SCOPES, Identity

COOKIE: Final = "geartrain_session"
CHANGES_NOTHING: Final = frozenset({"GET", "HEAD"})
_MOST_NAMES: Final = 100  # a host has few, but each may come with any port
_OWN_SITE: Final = frozenset({"same-origin", "none"})
_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="geartrain"'}


class Guard:
    """Checks every request before its route is handled."""

    def __init__(self, keyring: tokens.Keyring, hosts: Iterable[str]) -> None:
        self.keyring = keyring
        self._access = WebAccess(hosts)
        self.everywhere = False  # other machines can reach the door, by names that we do not know
        self.others_only_submit = False  # other machines can reach the door without a token, to submit jobs
        self._own_names: set[str] = set()  # headers Host that were accepted: to check one takes time

    def check_host(self, request: Request) -> None:
        """Refuse a Host that is not a name of this server."""
        host = request.headers.get("host", "")
        if host in self._own_names or self.keyring.locked:
            return
        error = self._access.host_error(host, self.everywhere)
        if error:
            raise Refusal("misdirected", error)
        if not self.everywhere and len(self._own_names) < _MOST_NAMES:
            self._own_names.add(host)

    def check_origin(self, request: Request) -> None:
        """Refuse changes that a page of another site requests."""
        if request.method in CHANGES_NOTHING:
            return
        self._check_site(request, request.headers.get("origin"))

    def _check_site(self, request: Request, origin: str | None) -> None:
        site = request.headers.get("sec-fetch-site")
        foreign = origin is not None and self._access.origin_error(origin, request.headers.get("host", ""))
        if foreign or (site is not None and site not in _OWN_SITE):
            raise Refusal("forbidden", "cross-site requests must not change anything")

    def check_submission(self, request: Request) -> None:
        """Refuse a page of another site whatever its method, because each of them submits a job.

        Every page can send a GET without an Origin. A client that sends no Host is not a browser.
        """
        authority = request.headers.get("host")
        if authority is None:
            return
        reachable = self.everywhere or self.others_only_submit
        if not self.keyring.locked and not (reachable and web_access.is_own_name(authority)):
            error = self._access.host_error(authority, everywhere=False)
            if error:
                raise Refusal("misdirected", error)
        page = request.headers.get("origin") or request.headers.get("referer")
        self._check_site(request, page and "/".join(page.split("/")[:3]))

    def identity(self, request: Request) -> Identity | None:
        """Who the client is: by its token, its session or its connection; None: it may do everything."""
        headers = request.headers
        if "authorization" not in headers and "cookie" not in headers:
            return connection_identity(request)
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        if scheme:
            identity = self.keyring.by_token(secret.strip()) if scheme.lower() == "bearer" else None
            if identity is None:
                raise Refusal("unauthorized", "unknown token", _CHALLENGE)
            return identity
        session = request.cookie(COOKIE)
        return (self.keyring.by_session(session) if session else None) or connection_identity(request)

    def require(self, identity: Identity | None, needed: tokens.Scopes) -> None:
        """Refuse a client that has none of these scopes."""
        if identity is None or not needed or identity.may_one_of(needed):
            return
        words = " or ".join(sorted(needed))
        if not identity.may_one_of(SCOPES):
            raise Refusal("unauthorized", f"a token with the scope {words} is required", _CHALLENGE)
        raise Refusal("forbidden", f"the scope {words} is required; {identity.name} does not have it")


def connection_identity(request: Request) -> Identity | None:
    """The identity of the connection that a request arrived on: of its certificate, or of its address."""
    assert request.connection is not None
    return request.connection.identity
