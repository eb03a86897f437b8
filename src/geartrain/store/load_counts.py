"""What loading a dump counts, and the one rule for conflicts: what is there stays, unless it is to be replaced."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from geartrain.store import dump

Notice = Callable[[str], None]


class Summary(NamedTuple):
    """The result of loading a dump."""

    jobs: int  # loaded
    records: int  # loaded
    replaced: int  # of those loaded, how many replaced something
    present: int  # skipped: the store has the same one
    clashing: int  # skipped: another job has its id, its handle or its unique key
    next_id: int  # the next id of the store
    values: int  # loaded: schedules, settings of functions, configurations of doors


class LoadCounts:
    """Counts what is loaded and what is skipped."""

    def __init__(self, replace: bool, notice: Notice) -> None:
        self.replace = replace
        self.jobs = self.records = self.values = 0  # loaded
        self.replaced = self.present = self.clashing = 0
        self._notice = notice

    def accepts(self, handle: bytes, others: Mapping[bytes, str]) -> bool:
        """Whether to load a job or a record.

        `others` has the handles of those that share something unique with it, and what they share.
        """
        if self.replace:
            self.replaced += bool(others)
            return True
        if others.get(handle) == "id":
            self.present += 1
        elif others:
            reasons = ", ".join(f"{dump.shown(other)} has the same {shared}" for other, shared in others.items())
            self.refuse(f"{dump.shown(handle)} was not loaded: {reasons}")
        return not others

    def refuse(self, reason: str) -> None:
        """Count and report something that cannot be loaded."""
        self.clashing += 1
        self._notice(reason)

    def summary(self, next_id: int) -> Summary:
        return Summary(self.jobs, self.records, self.replaced, self.present, self.clashing, next_id, self.values)
