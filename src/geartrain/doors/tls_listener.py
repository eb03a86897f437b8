"""A listening socket with TLS, which logs handshakes that fail.

The event loop's own servers close a connection whose handshake fails or takes too long without a word, and do not tell
whose it was. So sockets are accepted here. Peers in the middle of a handshake count as connections.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from geartrain.doors.connection import Connection
    from geartrain.doors.door import Door

_ACCEPTED_AT_ONCE: Final = 64  # then others have their turn
_RETRY_SECONDS: Final = 1.0  # after the process or the machine had no descriptor or memory for a connection

_log = logging.getLogger("geartrain.doors")


class TlsListener:
    """Accepts peers of one address, and makes connections of those whose handshake succeeds."""

    def __init__(
        self, door: "Door", listener: socket.socket, context: ssl.SSLContext, connect: Callable[[], "Connection"]
    ) -> None:
        self._door = door
        self._loop = door.tick_loop.loop
        self._listener = listener
        self._context = context
        self._connect = connect
        self._retry: asyncio.TimerHandle | None = None

    def listen(self, backlog: int) -> None:
        """Accept peers from now on."""
        self._listener.listen(backlog)
        self._resume()

    def close(self) -> None:
        """Accept no more peers; handshakes that have begun go on."""
        if self._retry is not None:
            self._retry.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()

    def _resume(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # the socket stays readable: the loop would call this again and again
                self._loop.remove_reader(self._listener)
                self._retry = self._loop.call_later(_RETRY_SECONDS, self._resume)
                if self._door.connection_limit is not None:
                    self._door.connection_limit.check_descriptors()
                return
            self._begin(accepted, f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "unix socket")

    def _begin(self, accepted: socket.socket, peer: str) -> None:
        limit = self._door.connection_limit
        if limit is not None and not limit.admits(self._door.name, peer):
            accepted.close()
            return
        accepted.setblocking(False)
        task = self._loop.create_task(self._shake_hands(accepted, peer))
        self._door.handshakes.add(task)
        task.add_done_callback(self._door.handshakes.discard)

    async def _shake_hands(self, accepted: socket.socket, peer: str) -> None:
        seconds = self._door.limits.stall_timeout
        try:
            await self._loop.connect_accepted_socket(
                self._make_connection, accepted, ssl=self._context, ssl_handshake_timeout=seconds
            )
        except ConnectionAbortedError:
            self._log_failure(peer, f"it took longer than {seconds:g} seconds (stall_timeout)")
        except ssl.SSLError as error:
            self._log_failure(peer, reason(error))
        except OSError:  # nothing is wrong with that: health checks disconnect at once
            fields = {"door": self._door.name, "peer": peer, "why": "the peer disconnected"}
            _log.info("TLS handshake failed", extra={"fields": fields})

    def _make_connection(self) -> Any:
        connection = self._connect()
        connection.admitted = True
        return connection

    def _log_failure(self, peer: str, why: str) -> None:
        _log.warning("TLS handshake failed", extra={"fields": {"door": self._door.name, "peer": peer, "why": why}})


def reason(error: Exception) -> str:
    """Why TLS failed, in OpenSSL's words where it has some."""
    words = (getattr(error, name, None) for name in ("verify_message", "reason", "strerror"))
    return next(filter(None, words), str(error))
