"""What the other servers of a cluster have told of their functions and workers, for `status` and `workers`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from geartrain.admin.borrowed_jobs import BorrowedCounts
from geartrain.engine.function import Function


class StatusCounts(NamedTuple):
    """The jobs of a function at their home; those that are borrowed count at theirs."""

    total: int = 0
    running: int = 0
    high: int = 0  # queued, by priority
    normal: int = 0
    low: int = 0

    def plus(self, other: "StatusCounts") -> "StatusCounts":
        return StatusCounts(*(one + two for one, two in zip(self, other, strict=True)))


class WorkerLine(NamedTuple):
    """A connection as `workers` lists it."""

    descriptor: int
    address: bytes
    client_id: bytes
    functions: list[bytes]


NOTHING: Final = StatusCounts()


def own_counts(function: Function, borrowed: BorrowedCounts) -> StatusCounts:
    """The jobs of a function whose home this server is."""
    sizes = [queue.size - count for queue, count in zip(function.queues, borrowed.by_priority, strict=True)]
    total = function.total - borrowed.queued - borrowed.running
    return StatusCounts(total, function.running - borrowed.running, *sizes)


class OtherServersStatus:
    """The last that each of the other servers has told. It is kept while the server lives."""

    def __init__(self, living: Callable[[], Iterable[int]]) -> None:
        self._living = living
        self._functions: dict[int, dict[bytes, StatusCounts]] = {}  # by node
        self._workers: dict[int, list[WorkerLine]] = {}  # by node

    def hear_functions(self, node: int, changed: Mapping[bytes, StatusCounts], gone: Iterable[bytes]) -> None:
        """What has changed at a server."""
        functions = self._functions.setdefault(node, {})
        functions.update(changed)
        for name in gone:
            functions.pop(name, None)

    def hear_workers(self, node: int, workers: list[WorkerLine]) -> None:
        """The connections of a server."""
        self._workers[node] = workers

    def forget(self, node: int) -> None:
        """A server begins to tell from the start."""
        self._functions.pop(node, None)
        self._workers.pop(node, None)

    def functions(self) -> dict[bytes, StatusCounts]:
        """The sums over the other servers."""
        self._forget_dead()
        sums: dict[bytes, StatusCounts] = {}
        for functions in self._functions.values():
            for name, counts in functions.items():
                sums[name] = counts.plus(sums[name]) if name in sums else counts
        return sums

    def workers(self) -> list[WorkerLine]:
        """The connections of the other servers."""
        self._forget_dead()
        return [worker for workers in self._workers.values() for worker in workers]

    def _forget_dead(self) -> None:
        living = set(self._living())
        for node in {*self._functions, *self._workers} - living:
            self.forget(node)
