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


class JobBlock:
    """The jobs whose ids differ only in their last bits."""

    __slots__ = ("jobs", "live")

    def __init__(self) -> None:
        self.jobs: list[LiveJob | None] = [None] * _PLACES
        self.live = 0  # how many there are


class JobTable:
    """What comes is mostly the newest and what goes the oldest, so the block of each is at hand."""

    __slots__ = ("_blocks", "_coming", "_coming_number", "_going", "_going_number", "_size")

    def __init__(self) -> None:
        self._blocks: dict[int, JobBlock] = {}
        self._coming = self._going = JobBlock()  # that of the last job which came, and which went
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
                block = self._blocks[number] = JobBlock()
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


class HeldJobs:
    """Nearly always none or one: that needs no table, and is found by looking at it. The first second job makes one."""

    __slots__ = ("_one", "_table")

    def __init__(self) -> None:
        self._one: LiveJob | None = None
        self._table: dict[bytes, LiveJob] | None = None  # where all of them are, once there is a table

    def add(self, job: LiveJob) -> None:
        """One that it does not have yet."""
        if self._table is not None:
            self._table[job.handle] = job
        elif self._one is None:
            self._one = job
        else:
            self._table = {self._one.handle: self._one, job.handle: job}
            self._one = None

    def get(self, handle: bytes) -> LiveJob | None:
        """The job of that handle, if it is among them."""
        one = self._one
        if one is not None:
            return one if one.handle == handle else None
        return self._table.get(handle) if self._table is not None else None

    def drop(self, job: LiveJob) -> bool:
        """Take one out; whether it was there."""
        if self._one is job:
            self._one = None
            return True
        return self._table is not None and self._table.pop(job.handle, None) is not None

    def jobs(self) -> list[LiveJob]:
        """All of them, in the order in which they came."""
        if self._one is not None:
            return [self._one]
        return list(self._table.values()) if self._table is not None else []

    def __contains__(self, handle: bytes) -> bool:
        return self.get(handle) is not None

    def __len__(self) -> int:
        if self._one is not None:
            return 1
        return len(self._table) if self._table is not None else 0
