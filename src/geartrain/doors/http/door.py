"""The HTTP door: it listens like every other door.

The modules of its routes take time to import. They are imported when the door opens, and not at all by a server that
has no HTTP door.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from geartrain import rights
from geartrain.address import Address
from geartrain.doors import door, web_access
from geartrain.doors.http.tokens import Tokens
from geartrain.errors import StartError
from geartrain.rights import Identity
from geartrain.runtime import tick

if TYPE_CHECKING:
    from geartrain.admin.service import Admin
    from geartrain.doors.connection import Connection
    from geartrain.doors.http.app import HttpApp


CONTROL: Final = b"geartrain.control"  # the control function: the server executes its jobs itself


@dataclasses.dataclass
class Options:
    """The defaults are safe for a door that is reachable only from this machine."""

    tokens: Mapping[bytes, Identity] = dataclasses.field(default_factory=dict)  # by the digest of a token
    without_token: bool = False  # give all scopes to every client, although other machines can reach the door
    hosts: tuple[str, ...] = ()  # further host names of this server
    worker_lease: float = 60.0  # seconds without a request after which a worker is removed
    trusted_proxies: tuple[str, ...] = ()  # addresses or networks whose X-Forwarded headers are believed
    listeners: int = 1000  # event streams that may be open at the same time
    listeners_per_client: int = 500  # of one client's address
    gearmand_http: bool = False  # a path that is none of ours is a function, as in gearmand's HTTP protocol
    exceptions: bool = False  # send exceptions by that protocol
    metrics_functions: int = 1000  # functions that have metrics of their own
    not_ready: Callable[[], str] = str  # why the server cannot accept jobs; empty if it can


class HttpDoor(door.Door):
    """The HTTP API and the dashboard."""

    name = "http"

    def __init__(self, tick_loop: tick.TickLoop, limits: door.Limits, options: Options, admin: "Admin") -> None:
        super().__init__(tick_loop, limits)
        self.options = options
        self.admin = admin
        self.app: HttpApp | None = None  # until the door opens
        self._submitter = Identity("anonymous", rights.parse([rights.SUBMIT]), control=False)

    async def open(self, address: Address, sockets: door.SocketOptions) -> Address:
        """Listen. On addresses that other machines can reach, tokens are required unless the options say otherwise.

        By gearmand's HTTP protocol other machines may submit jobs without one, and nothing else.
        """
        everywhere = not web_access.is_loopback(address.host)
        has_tokens = bool(self.options.tokens) or self.access.has_tokens
        submit_only = everywhere and not has_tokens and not self.options.without_token
        if submit_only and not self.options.gearmand_http:
            raise StartError(
                f"{address} is reachable from other machines, but no token is configured: every client would have all "
                "scopes. Set http_tokens, http_tokens_file or users_file, or set http_without_token to allow this"
            )
        if self.app is None:
            self._build()
        assert self.app is not None
        guard = self.app.context.guard
        if submit_only:
            guard.others_only_submit = True
        elif everywhere:
            guard.everywhere = True
        return await super().open(address, sockets)

    def anonymous(self, address: Address) -> Identity | None:
        """Clients without a token may do nothing, or everything where no token is needed."""
        if address.may is not None:
            return super().anonymous(address)
        if not self.options.tokens and (web_access.is_loopback(address.host) or self.options.without_token):
            return None
        if self.options.gearmand_http and not self.options.tokens and not self.access.has_tokens:
            return self._submitter
        return Identity("anonymous", rights.parse([]), control=False)

    def identify(self, anonymous: Identity | None, transport: Any) -> Identity | None:
        """As for every door; by gearmand's HTTP protocol only other machines are restricted to submitting."""
        identity = super().identify(anonymous, transport)
        peer = transport.get_extra_info("peername")
        if identity is anonymous and identity is self._submitter and web_access.is_loopback(peer[0]):
            return None
        return identity

    def connect(self, address: Address) -> "Connection":
        """A connection object for a peer that has just come in."""
        from geartrain.doors.http.connection import HttpConnection

        assert self.app is not None
        return HttpConnection(self, self.app)

    def end(
        self, identities: frozenset[Identity], is_revoked: Callable[[Any], bool], caller: Identity | None = None
    ) -> int:
        """Remove the workers of these identities as well, whose requests may be between two connections."""
        if self.app is not None:
            self.app.context.workers.end(identities)
        return super().end(identities, is_revoked, caller)

    def use_tokens(self, fresh: Tokens) -> frozenset[Identity]:
        """Replace the tokens of the settings; returns the identities of those that are no longer valid."""
        return self.app.context.guard.keyring.use(fresh) if self.app is not None else frozenset()

    def close(self) -> None:
        """Answer requests that wait, end event streams, and close every connection."""
        if self.app is not None:
            self.app.close()
        super().close()

    def _build(self) -> None:
        from geartrain.doors.http.app import HttpApp

        self.app = HttpApp(self.tick_loop, self.limits, self.options, self.admin)
        self.app.context.guard.keyring.access = self.access
