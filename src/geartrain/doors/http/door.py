"""The HTTP door: it listens like every other door, and passes connections to uvicorn.

The libraries that it needs take a tenth of a second to import. They are imported when the door opens, and not at all
by a server that has no HTTP door.
"""

from typing import TYPE_CHECKING, Any

from geartrain.address import Address
from geartrain.doors import door
from geartrain.doors.http.options import Options
from geartrain.errors import StartError
from geartrain.runtime import tick

if TYPE_CHECKING:
    from geartrain.admin.service import Admin
    from geartrain.doors.connection import Connection
    from geartrain.doors.http.asgi import HttpApp


class HttpDoor(door.Door):
    """The HTTP API and the dashboard."""

    name = "http"

    def __init__(self, tick_loop: tick.TickLoop, limits: door.Limits, options: Options, admin: "Admin") -> None:
        super().__init__(tick_loop, limits)
        self.options = options
        self.admin = admin
        self.app: HttpApp | None = None  # until the door opens
        self._uvicorn: Any = None
        self._state: Any = None

    async def open(self, address: Address, sockets: door.Socket) -> Address:
        """Listen. On addresses that other machines can reach, tokens are required unless the options say otherwise."""
        from geartrain.doors.http import auth

        everywhere = not auth.is_loopback(address.host)
        if everywhere and not self.options.tokens and not self.options.without_token:
            raise StartError(
                f"{address} is reachable from other machines, but no token is configured: every client would have all "
                "scopes. Set http_tokens or http_tokens_file, or set http_without_token to allow this"
            )
        if self.app is None:
            self._build()
        assert self.app is not None
        if everywhere:
            self.app.context.guard.everywhere = True
        return await super().open(address, sockets)

    def connect(self, address: Address) -> "Connection":
        """A connection object for a peer that has just come in."""
        from geartrain.doors.http.connection import HttpConnection, UvicornProtocol

        return HttpConnection(self, UvicornProtocol(self._uvicorn, self._state, self.tick_loop.loop))

    def close(self) -> None:
        """Answer requests that wait, end event streams, and close every connection."""
        if self.app is not None:
            self.app.close()
        super().close()

    def _build(self) -> None:
        from uvicorn.server import ServerState

        from geartrain.doors.http import connection
        from geartrain.doors.http.asgi import HttpApp

        self.app = HttpApp(self.tick_loop, self.limits, self.options, self.admin)
        self._uvicorn = connection.config(self.app)
        self._state = ServerState()
