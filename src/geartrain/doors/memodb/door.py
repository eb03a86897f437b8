"""The MemoDB door: its options, and what its pipes share."""

import dataclasses
import functools
import secrets
from collections.abc import Mapping
from typing import Final

from geartrain.address import Address
from geartrain.doors import door, web_access
from geartrain.doors.memodb.connection import MemodbConnection
from geartrain.doors.memodb.waiting_requests import WaitingRequests
from geartrain.doors.memodb.watcher import MemodbWatcher
from geartrain.doors.memodb.worker import MemodbWorker
from geartrain.runtime import tick
from geartrain.wire import memodb as wire
from geartrain.wire import sp, websocket


@dataclasses.dataclass
class Options:
    """Settings of this door. Times are in seconds."""

    heartbeat: float = 10.0  # until a worker that waits for a job gets a heartbeat
    worker_timeout: float = 10.0  # until a worker that does not answer a heartbeat is removed
    queue_timeout: float = 10.0  # until a request that no worker has taken is dropped
    # With more waiting requests a pipe is not read. A program has a few hundred contexts, so this is for faulty peers
    # and large forwarders; it bounds the bookkeeping of a pipe to about 100 MB. 0: no limit.
    requests_per_pipe: int = 100_000
    hosts: tuple[str, ...] = ()  # further host names of this server, for WebSockets
    origins: tuple[str, ...] = ()  # sites whose pages may open WebSockets


_WEBSOCKET: Final = "memodb+ws"
_STREAMS: Final[Mapping[str, bytes]] = {"memodb+tcp": sp.TCP, "memodb+ipc": sp.IPC}  # the first bytes of their messages


class MemodbDoor(door.Door):
    """A broker for clients and workers that use NNG's REQ sockets."""

    name = "memodb"

    def __init__(self, tick_loop: tick.TickLoop, limits: door.Limits, options: Options) -> None:
        super().__init__(tick_loop, limits)
        self.options = options
        self._access = web_access.WebAccess(options.hosts, options.origins)
        self.workers: dict[bytes, MemodbWorker] = {}  # by id
        self.unchecked = WaitingRequests(tick_loop, options.queue_timeout, MemodbWatcher.check)  # of clients
        self.idle = WaitingRequests(tick_loop, options.heartbeat, MemodbWorker.send_heartbeat)  # workers

    def connect(self, address: Address) -> MemodbConnection:
        """A pipe for a new peer; the address tells how its messages are framed."""
        return MemodbConnection(self, self._pipe(address))

    def _pipe(self, address: Address) -> sp.MessagePipe:
        limit = self.limits.max_packet
        if address.scheme != _WEBSOCKET:
            return sp.StreamPipe(_STREAMS[address.scheme], limit)
        everywhere = not web_access.is_loopback(address.host)
        return websocket.WebSocketPipe(address.path, limit, functools.partial(self._access.admit, everywhere))

    def close(self) -> None:
        """Close every pipe."""
        self.unchecked.close()
        self.idle.close()
        super().close()

    def new_id(self) -> bytes:
        """An id for a worker."""
        return secrets.token_bytes(wire.ID_SIZE)
