"""One HTTP connection: uvicorn's protocol inside a connection of ours.

uvicorn parses requests, keeps connections alive and stops writing to clients that do not read. What it lacks is here
and in `uvicorn_protocol.py`: bounds on what it keeps of a client's requests, and timeouts for clients that send
nothing, stop in the middle of a request, or do not read.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from geartrain.doors.connection import Connection
from geartrain.doors.http.uvicorn_protocol import BODY, IDLE, UvicornProtocol, problem_response
from geartrain.rights import Identity
from geartrain.wire import foreign_protocol

if TYPE_CHECKING:
    from geartrain.doors.http.door import HttpDoor


class HttpConnection(Connection):
    """The connection as the door sees it."""

    def __init__(self, door: "HttpDoor", protocol: UvicornProtocol) -> None:
        super().__init__(door)
        self.protocol = protocol
        self._made = False  # uvicorn's protocol has the transport
        protocol.app_state = {"connection": self}  # which requests find in their scope
        self._unread = 0  # bytes that were not sent at the last check
        self.last_user: Identity | None = None  # of the last request that had an identity

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        if not self.closing:
            self._made = True
            self.protocol.connection_made(transport)

    def belongs_to(self, identities: frozenset[Identity]) -> bool:
        """Whether one of these is the identity of the connection, or the one that its last request with a token had."""
        return super().belongs_to(identities) or self.last_user in identities

    def surplus_error(self, why: str) -> bytes:
        """503, whatever the client is going to ask for."""
        return problem_response("unavailable", why)

    def data_received(self, data: bytes) -> None:
        """uvicorn parses what was read and answers its own errors, so the read loop of other doors is not for here."""
        if self.closing:
            return
        protocol = self.protocol
        if not protocol.begun and (foreign := foreign_protocol.hint(data)):
            self.log(logging.WARNING, "peer refused", f"a connection begins with an HTTP request{foreign}")
            self.closing = True
            self.transport.close()
            return
        protocol.data_received(data)
        if protocol.phase == BODY or self._inflight:
            self.count_inflight(protocol.arrived if protocol.phase == BODY else 0)

    def refuse_inflight(self, text: str) -> None:
        """Refuse the request whose body is arriving."""
        self.closing = True
        self.protocol.refuse("unavailable", text)

    def eof_received(self) -> bool:
        """Close the transport: a client that closes its side does not read the answer."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        if self._made:
            self.protocol.connection_lost(error)
        super().connection_lost(error)

    def pause_writing(self) -> None:
        """uvicorn stops the writing handler. Reading goes on: the request that is answered has been read."""
        self._paused = True
        self.protocol.pause_writing()

    def resume_writing(self) -> None:
        self._paused = False
        self.protocol.resume_writing()

    def close(self) -> None:
        """Close after the current response. Long responses have been ended by the door."""
        self.protocol.shutdown()

    def incomplete(self) -> tuple[int, int]:
        """A client that has sent nothing counts like one that has begun a request: browsers connect in advance."""
        protocol = self.protocol
        if protocol.phase == IDLE or protocol.flow.read_paused:
            return (protocol.begun, 0 if protocol.begun else 1)
        return (protocol.begun, protocol.arrived)

    def timed_out(self) -> None:
        """Refuse a request that does not continue."""
        self.closing = True
        if self.protocol.phase == IDLE:
            self.transport.close()
            return
        self.protocol.refuse("timeout", f"the request did not continue for {self.door.limits.stall_timeout:g} seconds")

    def check_progress(self, checks_per_timeout: int) -> None:
        """Drop a client that reads nothing of its response, besides clients that do not continue a request."""
        waiting = self.transport.get_write_buffer_size() if self._paused else 0
        if waiting and waiting == self._unread:
            self.drop("client does not read")
            return
        self._unread = waiting
        super().check_progress(checks_per_timeout)
