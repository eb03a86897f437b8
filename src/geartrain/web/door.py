"""The HTTP door: listens like every other, and hands what comes in to uvicorn.

The libraries that it needs take a tenth of a second to import. So they are imported when the door opens, and not at all
by a server that has none.
"""

from typing import TYPE_CHECKING, Any

from geartrain.address import Address
from geartrain.doors import door
from geartrain.errors import StartError
from geartrain.runtime import tick
from geartrain.web.options import Options

if TYPE_CHECKING:
    from geartrain.doors.connection import Connection
    from geartrain.steering.steward import Steward
    from geartrain.web.app import App


class HttpDoor(door.Door):
    """The API and the dashboard."""

    name = "http"

    def __init__(self, tick_loop: tick.TickLoop, limits: door.Limits, options: Options, steward: "Steward") -> None:
        super().__init__(tick_loop, limits)
        self.options = options
        self.steward = steward
        self.app: App | None = None  # until it opens
        self._uvicorn: Any = None
        self._state: Any = None

    async def open(self, address: Address, sockets: door.Socket) -> Address:
        """Listen. Beyond this machine only with a token, or if it was said that none is wanted."""
        from geartrain.web import guard

        everywhere = not guard.is_loopback(address.host)
        if everywhere and not self.options.tokens and not self.options.without_token:
            raise StartError(
                f"{address} can be reached from other machines, and no token is set: everybody there could do "
                "everything. Set http_tokens or http_tokens_file, or http_without_token if that is what you want"
            )
        if self.app is None:
            self._build()
        assert self.app is not None
        if everywhere:
            self.app.house.guard.everywhere = True
        return await super().open(address, sockets)

    def connect(self, address: Address) -> "Connection":
        """A connection object for a peer that has just come in."""
        from geartrain.web.connection import Exchange, HttpConnection

        return HttpConnection(self, Exchange(self._uvicorn, self._state, self.tick_loop.loop))

    def close(self) -> None:
        """Answer those who wait for something, end the streams, and close every connection."""
        if self.app is not None:
            self.app.close()
        super().close()

    def _build(self) -> None:
        from uvicorn.server import ServerState

        from geartrain.web import connection
        from geartrain.web.app import App

        self.app = App(self.tick_loop, self.limits, self.options, self.steward)
        self._uvicorn = connection.config(self.app)
        self._state = ServerState()
