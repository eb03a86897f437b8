"""How long the limited queues of a cluster are: its servers tell each other, ten times a second where that changes.

A limit is about the jobs of a function at all servers. Each one adds what the others told last to its own jobs, so what
they accept within a tenth of a second may exceed the limit.
"""

from typing import Final

import msgspec

from geartrain.admin import borrowed_jobs
from geartrain.doors.peer.door import PeerDoor
from geartrain.doors.peer.link import PeerLink
from geartrain.server.gossip import Gossip

_SECONDS: Final = 0.1  # between two messages, at least


class _QueueLength(msgspec.Struct, array_like=True, frozen=True):
    jobs: int
    is_limited: bool  # by the server that tells; the others tell it theirs, even if they have no limit themselves


_decoder: Final = msgspec.msgpack.Decoder(dict[bytes, _QueueLength])


class QueueLengths:
    """Tells the other servers the jobs of limited functions, and adds theirs to the engine's."""

    def __init__(self, peers: PeerDoor) -> None:
        self._peers = peers
        self._engine = peers.tick_loop.engine
        self._told: dict[bytes, _QueueLength] = {}
        self._heard: dict[int, dict[bytes, _QueueLength]] = {}  # by node
        self._gossip = Gossip(peers, "queue lengths", _SECONDS, self._look, self._whole, self._hear)
        self.close = self._gossip.close

    def _whole(self) -> bytes:
        return msgspec.msgpack.encode(self._told)

    def _look(self) -> None:
        if not self._peers.links and not self._heard:
            return
        borrowed = borrowed_jobs.by_function(self._engine)
        own = self._own(borrowed)
        if own != self._told:
            self._told = own
            self._gossip.tell(self._whole())
        self._add(borrowed)

    def _own(self, borrowed: dict[bytes, borrowed_jobs.BorrowedCounts]) -> dict[bytes, _QueueLength]:
        """The jobs of this server, of functions that it limits or another one does."""
        wanted = {name for lengths in self._heard.values() for name, length in lengths.items() if length.is_limited}
        return {
            name: _QueueLength(function.total - _count(borrowed, name), function.has_limits)
            for name, function in self._engine.functions.items()
            if function.has_limits or name in wanted
        }

    def _hear(self, link: PeerLink, content: bytes) -> None:
        self._heard[link.node] = _decoder.decode(content)
        self._add(borrowed_jobs.by_function(self._engine))

    def _add(self, borrowed: dict[bytes, borrowed_jobs.BorrowedCounts]) -> None:
        """Jobs that this server has borrowed are in its own count, and in that of their home."""
        for node in self._heard.keys() - self._peers.links.keys():
            del self._heard[node]  # its jobs are taken over
        for name, function in self._engine.functions.items():
            if function.has_limits:
                others = sum(lengths[name].jobs for lengths in self._heard.values() if name in lengths)
                function.elsewhere = max(others - _count(borrowed, name), 0)


def _count(borrowed: dict[bytes, borrowed_jobs.BorrowedCounts], name: bytes) -> int:
    counts = borrowed.get(name, borrowed_jobs.NONE)
    return counts.queued + counts.running
