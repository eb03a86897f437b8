"""Who a peer is: its identity, the rights that it brings to the engine, and what is written down about it.

A new connection has the identity of its address, or one that its certificate or its account proves. A peer may prove
another one later, with a token. Connections are counted for the users that they belong to, and logins are recorded in
the audit log.
"""

import logging

from mypy_extensions import mypyc_attr

from geartrain.audit import LOGIN, OK, REFUSED, Origin
from geartrain.doors import web_access
from geartrain.doors.door import Door
from geartrain.doors.peer_output import PeerOutput
from geartrain.engine.engine import Engine
from geartrain.errors import ForbiddenError, LimitError
from geartrain.rights import READ, Identity
from geartrain.usage import UserUsage

_log = logging.getLogger("geartrain.doors")


@mypyc_attr(allow_interpreted_subclasses=True)
class PeerIdentity(PeerOutput):
    """The peer of one connection. `Connection` reads what it sends."""

    def __init__(self, door: Door) -> None:
        super().__init__(door)
        self.peer = "?"  # its address
        self.identity: Identity | None = None  # None: the peer may do everything
        self.command = ""  # that is being carried out, if the audit log knows it by a name of its own
        self._counted_for: UserUsage | None = None  # the user whose connections include this one

    def begin_tick(self) -> Engine:
        """The engine, with the time of this tick and the rights of this peer."""
        engine = self.tick_loop.begin_tick()
        engine.actor = self.identity
        engine.peer = self
        return engine

    def identify(self) -> str:
        """Find out who has connected, and count the connection for its user. Return why it is one too many, or ""."""
        identity = self.door.identify(self.identity, self.transport)
        if identity is None or identity.usage is None:
            self.identity = identity
            return ""
        is_new = identity is not self.identity  # a protocol sniffer has proved it already
        try:
            self._count_login(identity)
        except LimitError as error:
            return str(error)
        self.identity = identity
        if is_new:
            self.audit(LOGIN)
        return ""

    def authenticate(self, secret: str, user: str = "") -> None:
        """Give the peer the identity that its token stands for; a ForbiddenError if that is unknown, or not `user`."""
        identity = self.door.access.by_token(secret)
        if identity is None or user not in ("", identity.name):
            self.log(logging.WARNING, "unknown token")
            self.audit(LOGIN, REFUSED, why="unknown token")
            raise ForbiddenError("unknown token")
        self.use_identity(identity)

    def use_identity(self, identity: Identity) -> None:
        """The peer has proved who it is; a LimitError if its user has too many connections."""
        self._count_login(identity)
        self.identity = self.engine.actor = identity
        self.audit(LOGIN)

    def count_for(self, usage: UserUsage | None) -> None:
        """Count the connection for this user and no other; a LimitError if the user has too many."""
        counted = self._counted_for
        if usage is counted:
            return
        if usage is not None:
            usage.add_connection()
        if counted is not None:
            counted.connections -= 1
        self._counted_for = usage

    def take_over(self, other: "PeerIdentity") -> None:
        """Become the same peer as a connection that this one replaces."""
        self.identity = other.identity
        self._counted_for, other._counted_for = other._counted_for, None

    def _count_login(self, identity: Identity) -> None:
        try:
            self.count_for(identity.usage)
        except LimitError as error:
            self.log(logging.WARNING, "login refused", str(error))
            self.audit(LOGIN, REFUSED, why=str(error))
            raise

    def may_read(self, function: bytes) -> bool:
        """Whether lists for this peer contain the function; also in later ticks, when others are served between."""
        return self.identity is None or self.identity.rights.allow(READ, function)

    def belongs_to(self, identities: frozenset[Identity]) -> bool:
        """Whether one of these is the peer's identity."""
        return self.identity in identities

    @property
    def is_local(self) -> bool:
        """Whether the peer is on this machine: its address is a loopback one, or it came through a socket file."""
        name = self.transport.get_extra_info("peername")
        return not isinstance(name, tuple) or web_access.is_loopback(name[0].removeprefix("::ffff:"))

    def origin(self) -> Origin:
        """Where the peer is, for the audit log."""
        return Origin(self.door.name, self.peer, self.command)

    def audit(self, verb: str, outcome: str = OK, words: list[bytes] | None = None, why: str = "") -> None:
        """Record something that the peer did, or was refused."""
        audit = self.engine.audit
        if audit is not None:
            arguments = {"words": words} if words else None
            audit.record(verb, outcome, identity=self.identity, peer=self, arguments=arguments, why=why)

    def log(self, level: int, event: str, why: str = "", traceback: bool = False) -> None:
        """One line about this peer."""
        fields = {"door": self.door.name, "peer": self.peer}
        if self.identity is not None:
            fields["who"] = self.identity.name
        if why:
            fields["why"] = why
        _log.log(level, event, exc_info=traceback, extra={"fields": fields})
