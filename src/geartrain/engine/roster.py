"""Every job that is not over, by its id.

Ids are given out one after the other, so jobs are kept in blocks of neighbours instead of each in a dictionary: what
comes or goes next is where the last one was, whatever the number of jobs. A block goes when its last job does; it is
small enough that a job which outlives all its neighbours does not cost much more than itself.
"""

from collections.abc import Iterator
from typing import Final

from mypy_extensions import i64

from geartrain.engine.job import LiveJob

_SHIFT: Final = 6  # a block has 64 places
_PLACES: Final = 64
_MASK: Final = 63
_NOWHERE: Final = -1


class Block:
    """The jobs whose ids differ only in their last bits."""

    __slots__ = ("jobs", "live")

    def __init__(self) -> None:
        self.jobs: list[LiveJob | None] = [None] * _PLACES
        self.live = 0  # how many there are


class Roster:
    """What comes is mostly the newest and what goes the oldest, so the block of each is at hand."""

    __slots__ = ("_blocks", "_coming", "_coming_number", "_going", "_going_number", "_size")

    def __init__(self) -> None:
        self._blocks: dict[int, Block] = {}
        self._coming = self._going = Block()  # that of the last job which came, and which went
        self._coming_number: i64 = _NOWHERE
        self._going_number: i64 = _NOWHERE
        self._size = 0

    def add(self, job: LiveJob) -> None:
        """A job that is not in it."""
        id: i64 = job.id
        number = id >> _SHIFT
        if number != self._coming_number:
            block = self._blocks.get(number)
            if block is None:
                block = self._blocks[number] = Block()
            self._coming = block
            self._coming_number = number
        block = self._coming
        block.jobs[id & _MASK] = job
        block.live += 1
        self._size += 1

    def drop(self, job: LiveJob) -> None:
        """A job that is in it."""
        id: i64 = job.id
        number = id >> _SHIFT
        if number != self._going_number:
            self._going = self._blocks[number]
            self._going_number = number
        block = self._going
        block.jobs[id & _MASK] = None
        block.live -= 1
        self._size -= 1
        if not block.live:
            del self._blocks[number]
            self._going_number = _NOWHERE
            if number == self._coming_number:
                self._coming_number = _NOWHERE

    def get(self, id: int) -> LiveJob | None:
        """The job with that id, if there is one."""
        block = self._blocks.get(id >> _SHIFT)
        return block.jobs[id & _MASK] if block is not None else None

    def values(self) -> Iterator[LiveJob]:
        """All jobs, those of a block in the order of their ids."""
        for block in self._blocks.values():
            for job in block.jobs:
                if job is not None:
                    yield job

    def clear(self) -> None:
        """Give back the room of those who were there; nobody may be."""
        self._blocks = {}

    def __iter__(self) -> Iterator[int]:
        return (job.id for job in self.values())

    def __contains__(self, id: int) -> bool:
        return self.get(id) is not None

    def __len__(self) -> int:
        return self._size
