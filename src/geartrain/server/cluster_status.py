"""What servers of a cluster tell each other once a second: the jobs of each function, and Gearman's connections.

Only what has changed is told.
"""

from typing import Final

import msgspec

from geartrain.admin import borrowed_jobs
from geartrain.doors.gearman.cluster_status import OtherServersStatus, StatusCounts, WorkerLine, own_counts
from geartrain.doors.gearman.door import GearmanDoor
from geartrain.doors.peer.door import PeerDoor
from geartrain.doors.peer.link import PeerLink
from geartrain.server.gossip import Gossip

_SECONDS: Final = 1.0  # between two messages, at least


class _Status(msgspec.Struct, array_like=True, frozen=True):
    functions: list[tuple[bytes, StatusCounts]]  # that have changed
    gone: list[bytes]  # functions that are no more
    workers: list[WorkerLine] | None = None  # None: they are the same
    is_first: bool = False  # everything before it is to be forgotten


_decoder: Final = msgspec.msgpack.Decoder(_Status)


class StatusGossip:
    """Tells the other servers, and hears them."""

    def __init__(self, peers: PeerDoor, gearman: GearmanDoor | None, others: OtherServersStatus) -> None:
        self._peers = peers
        self._gearman = gearman
        self._others = others
        self._engine = peers.tick_loop.engine
        self._functions: dict[bytes, StatusCounts] = {}  # as they were told
        self._workers: list[WorkerLine] = []
        self._gossip = Gossip(peers, "status", _SECONDS, self._look, self._whole, self._hear)
        self.close = self._gossip.close

    def _whole(self) -> bytes:
        return msgspec.msgpack.encode(_Status(list(self._functions.items()), [], self._workers, is_first=True))

    def _look(self) -> None:
        if any(link.is_open for link in self._peers.links.values()):
            status = self._changes()
            if status.functions or status.gone or status.workers is not None:
                self._gossip.tell(msgspec.msgpack.encode(status))

    def _changes(self) -> _Status:
        borrowed = borrowed_jobs.by_function(self._engine)
        told, current = self._functions, {}
        for name, function in self._engine.functions.items():
            if name not in self._engine.builtin_workers:
                own = borrowed.get(name, borrowed_jobs.NONE)
                current[name] = own_counts(function, own)
        changed = [(name, counts) for name, counts in current.items() if told.get(name) != counts]
        gone = [name for name in told if name not in current]
        workers = self._gearman.worker_lines() if self._gearman is not None else []
        is_same = workers == self._workers
        self._functions, self._workers = current, workers
        return _Status(changed, gone, None if is_same else workers)

    def _hear(self, link: PeerLink, content: bytes) -> None:
        status = _decoder.decode(content)
        if status.is_first:
            self._others.forget(link.node)
        self._others.hear_functions(link.node, dict(status.functions), status.gone)
        if status.workers is not None:
            self._others.hear_workers(link.node, status.workers)
