"""Workers and waiting jobs of the other servers of the cluster, which each tells once a second if they have changed."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from geartrain.doors.gearmonkey.worker_counts import WorkerCounts

if TYPE_CHECKING:
    from geartrain.runtime.tick import TickLoop
    from geartrain.runtime.timers import DelayedCall

_COUNTS: Final = "gearmonkey counts"
_TELL_SECONDS: Final = 1.0


class DistantCount(msgspec.Struct, array_like=True):
    """Of one function, at one server."""

    counted: int  # workers that programs have counted, beyond those that the servers know of each other
    queued: list[int]  # by priority
    scheduled: int = 0


_decoder = msgspec.msgpack.Decoder(dict[bytes, DistantCount])


class DistantCounts:
    """The counts of the other servers."""

    def __init__(self, tick_loop: "TickLoop", workers: WorkerCounts) -> None:
        self._tick_loop = tick_loop
        self._workers = workers
        self._by_node: dict[int, dict[bytes, DistantCount]] = {}
        self._told = b""
        self._timer: DelayedCall | None = None
        tick_loop.others.hearers[_COUNTS] = self._hear
        tick_loop.others.on_link.append(self._introduce)

    def counted(self, function: bytes) -> int:
        """Workers that programs of other servers have counted and that this server does not know otherwise."""
        return sum(self._each(function, lambda counts: counts.counted))

    def queued(self, function: bytes, priority: int) -> int:
        """Jobs in one queue of a function at other servers."""
        return sum(self._each(function, lambda counts: counts.queued[priority]))

    def scheduled(self, function: bytes) -> int:
        """Scheduled jobs of a function at other servers."""
        return sum(self._each(function, lambda counts: counts.scheduled))

    def _each(self, function: bytes, value: Callable[[DistantCount], int]) -> list[int]:
        if not self._by_node:
            return []
        found = [counts.get(function) for counts in self._by_node.values()]
        return [value(counts) for counts in found if counts is not None]

    def close(self) -> None:
        """Tell no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _introduce(self, node: int) -> None:
        """A server can be reached: what was told so far it may not have heard."""
        self._by_node.pop(node, None)
        self._told = b""
        if self._timer is None:
            self._tell()

    def _tell(self) -> None:
        content = msgspec.msgpack.encode(self._own())
        if content != self._told:
            self._told = content
            self._tick_loop.others.tell(_COUNTS, content)
        self._timer = self._tick_loop.timers.call_later(_TELL_SECONDS, self._tell)

    def _own(self) -> dict[bytes, DistantCount]:
        counts = {}
        functions = self._tick_loop.engine.functions
        for name in sorted({*functions, *self._workers.functions()}):
            function = functions.get(name)
            queued = [queue.size for queue in function.queues] if function is not None else [0, 0, 0]
            scheduled = function.scheduled if function is not None else 0
            counted = self._workers.beyond_engine(name)
            if counted or scheduled or any(queued):
                counts[name] = DistantCount(counted, queued, scheduled)
        return counts

    def _hear(self, node: int, content: bytes) -> None:
        self._by_node[node] = _decoder.decode(content)
