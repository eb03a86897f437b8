"""The jobs that one worker runs, found by their handles."""

from geartrain.engine.job import LiveJob


class Held:
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
