"""Tables of jobs: all that are not finished by id, and those of one worker by handle."""

from collections.abc import Iterator
from typing import Final

from mypy_extensions import i64

from geartrain.engine.job import LiveJob

_SHIFT: Final = 6  # a block has 64 slots
_SLOTS: Final = 64
_MASK: Final = 63
_NO_BLOCK: Final = -1


class JobBlock:
    """The jobs whose ids differ only in their last six bits."""

    __slots__ = ("jobs", "size")

    def __init__(self) -> None:
        self.jobs: list[LiveJob | None] = [None] * _SLOTS
        self.size: i64 = 0  # how many slots are used


class JobTable:
    """Jobs by id.

    Ids are consecutive, so neighbours share a block instead of having a dictionary entry each. The job that is added
    or removed next mostly belongs to the block of the previous one, so both blocks are cached, and the cost does not
    depend on the number of jobs. A block is removed with its last job, but for the one to which jobs are being added:
    where one job runs at a time, each would make a block of its own. It is small enough that a job which outlives all
    its neighbours does not take much more memory than itself.
    """

    __slots__ = ("_add_block", "_add_number", "_blocks", "_most_blocks", "_remove_block", "_remove_number", "_size")

    def __init__(self) -> None:
        self._blocks: dict[int, JobBlock] = {}
        self._add_block = self._remove_block = JobBlock()  # of the last job that was added, and removed
        self._add_number: i64 = _NO_BLOCK
        self._remove_number: i64 = _NO_BLOCK
        self._size: i64 = 0
        self._most_blocks = 0  # at the same time

    def add(self, job: LiveJob) -> None:
        """Add a job that is not in the table."""
        id: i64 = job.id
        number = id >> _SHIFT
        if number != self._add_number:
            self._add_to_block(number)
        block = self._add_block
        block.jobs[id & _MASK] = job
        block.size += 1
        self._size += 1

    def _add_to_block(self, number: i64) -> None:
        """Jobs are added to another block from now on."""
        before = self._add_number
        if before != _NO_BLOCK and not self._add_block.size:
            del self._blocks[before]
            if self._remove_number == before:
                self._remove_number = _NO_BLOCK
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = JobBlock()
            self._most_blocks = max(self._most_blocks, len(self._blocks))
        self._add_block = block
        self._add_number = number

    def remove(self, job: LiveJob) -> None:
        """Remove a job that is in the table."""
        id: i64 = job.id
        number = id >> _SHIFT
        if number != self._remove_number:
            self._remove_block = self._blocks[number]
            self._remove_number = number
        block = self._remove_block
        block.jobs[id & _MASK] = None
        block.size -= 1
        self._size -= 1
        if not block.size and number != self._add_number:
            del self._blocks[number]
            self._remove_number = _NO_BLOCK

    def get(self, id: int) -> LiveJob | None:
        block = self._blocks.get(id >> _SHIFT)
        return block.jobs[id & _MASK] if block is not None else None

    def values(self) -> Iterator[LiveJob]:
        """All jobs, those of one block in the order of their ids."""
        for block in self._blocks.values():
            for job in block.jobs:
                if job is not None:
                    yield job

    def walk(self) -> Iterator[LiveJob]:
        """The same for a caller that pauses: jobs may be added and removed meanwhile.

        It shows every job that is in the table from the beginning to the end, and some of the others.
        """
        for number in list(self._blocks):
            block = self._blocks.get(number)
            if block is not None:
                for job in block.jobs:
                    if job is not None:
                        yield job

    def shrink(self) -> None:
        """Release the memory of an empty table: a dictionary keeps its size when its entries are deleted."""
        self._blocks = {}
        self._add_number = self._remove_number = _NO_BLOCK
        self._most_blocks = 0

    @property
    def most(self) -> int:
        """How many jobs were in it at once, at most, since it was shrunk last; rounded up to whole blocks."""
        return self._most_blocks * _SLOTS

    def __iter__(self) -> Iterator[int]:
        return (job.id for job in self.values())

    def __contains__(self, id: int) -> bool:
        return self.get(id) is not None

    def __len__(self) -> int:
        return self._size


class HeldJobs:
    """The jobs of one worker, by handle. Nearly always there is at most one, which needs no dictionary."""

    __slots__ = ("_by_handle", "single")

    def __init__(self) -> None:
        self.single: LiveJob | None = None  # the only job; None as well from two at a time on
        self._by_handle: dict[bytes, LiveJob] | None = None  # all jobs, once there were two at a time

    def add(self, job: LiveJob) -> None:
        """Add a job that it does not have."""
        if self._by_handle is not None:
            self._by_handle[job.handle] = job
        elif self.single is None:
            self.single = job
        else:
            self._by_handle = {self.single.handle: self.single, job.handle: job}
            self.single = None

    def get(self, handle: bytes) -> LiveJob | None:
        single = self.single
        if single is not None:
            return single if single.handle == handle else None
        return self._by_handle.get(handle) if self._by_handle is not None else None

    def remove(self, job: LiveJob) -> bool:
        """Remove a job; return whether it was there."""
        if self.single is job:
            self.single = None
            return True
        return self._by_handle is not None and self._by_handle.pop(job.handle, None) is not None

    def jobs(self) -> list[LiveJob]:
        """All jobs in the order in which they were added."""
        if self.single is not None:
            return [self.single]
        return list(self._by_handle.values()) if self._by_handle is not None else []

    def __contains__(self, handle: bytes) -> bool:
        return self.get(handle) is not None

    def __len__(self) -> int:
        if self.single is not None:
            return 1
        return len(self._by_handle) if self._by_handle is not None else 0
