"""The HTTP door: listens like every other, and hands what comes in to uvicorn.

The libraries that it needs take a tenth of a second to import. So they are imported when the door opens, and not at all
by a server that has none.
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
    """The API and the dashboard."""

    name = "http"

    def __init__(self, tick_loop: tick.TickLoop, limits: door.Limits, options: Options, admin: "Admin") -> None:
        super().__init__(tick_loop, limits)
        self.options = options
        self.admin = admin
        self.app: HttpApp | None = None  # until it opens
        self._uvicorn: Any = None
        self._state: Any = None

    async def open(self, address: Address, sockets: door.Socket) -> Address:
        """Listen. Beyond this machine only with a token, or if it was said that none is wanted."""
        from geartrain.doors.http import auth

        everywhere = not auth.is_loopback(address.host)
        if everywhere and not self.options.tokens and not self.options.without_token:
            raise StartError(
                f"{address} can be reached from other machines, and no token is set: everybody there could do "
                "everything. Set http_tokens or http_tokens_file, or http_without_token if that is what you want"
            )
        if self.app is None:
            self._build()
        assert self.app is not None
        if everywhere:
            self.app.context.guard.everywhere = True
        return await super().open(address, sockets)

    def connect(self, address: Address) -> "Connection":
        """A connection object for a peer that has just come in."""
        from geartrain.doors.http.connection import Exchange, HttpConnection

        return HttpConnection(self, Exchange(self._uvicorn, self._state, self.tick_loop.loop))

    def close(self) -> None:
        """Answer those who wait for something, end the streams, and close every connection."""
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
