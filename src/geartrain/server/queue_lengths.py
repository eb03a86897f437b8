"""How long the limited queues of a cluster are: its servers tell each other, ten times a second where that changes.

A limit is about the jobs of a function at all servers. Each one adds what the others told last to its own jobs, so what
they accept within a tenth of a second may exceed the limit.
"""

import time
from typing import Final

import msgspec

from geartrain.admin import borrowed_jobs
from geartrain.doors.peer.door import PeerDoor
from geartrain.doors.peer.link import PeerLink
from geartrain.runtime.timers import DelayedCall
from geartrain.wire import peer as wire

_SECONDS: Final = 0.1  # between two messages, at least
_SHARE: Final = 0.01  # of the time that looking for changes may take, at most
_WHAT: Final = "queue lengths"


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
        self._timer: DelayedCall | None = None
        peers.hearers[_WHAT] = self._hear
        peers.on_link.append(self._begin)
        self._plan(_SECONDS)

    def close(self) -> None:
        """Tell no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _plan(self, seconds: float) -> None:
        self._timer = self._peers.tick_loop.timers.call_later(seconds, self._exchange)

    def _begin(self, link: PeerLink) -> None:
        """Tell a server that has a new link: what was told before may be lost."""
        link.send(wire.Tell(_WHAT, msgspec.msgpack.encode(self._told)))

    def _exchange(self) -> None:
        began = time.perf_counter()
        if self._peers.links or self._heard:
            borrowed = borrowed_jobs.by_function(self._engine)
            own = self._own(borrowed)
            if own != self._told:
                self._told = own
                self._peers.tick_loop.begin_tick()
                self._peers.tell(_WHAT, msgspec.msgpack.encode(own))
            self._add(borrowed)
        self._plan(max(_SECONDS, (time.perf_counter() - began) / _SHARE))

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
