"""How many jobs ended in which way."""

from geartrain.engine.lifecycle import CANCELLED, DONE, FAILED
from geartrain.model import JobState


class Tally:
    """Attributes rather than a table: compiled, they are plain numbers."""

    __slots__ = ("cancelled", "dead", "done", "failed")

    def __init__(self) -> None:
        self.done = 0
        self.failed = 0
        self.cancelled = 0
        self.dead = 0

    def count(self, state: JobState) -> None:
        """One more."""
        if state is DONE:
            self.done += 1
        elif state is FAILED:
            self.failed += 1
        elif state is CANCELLED:
            self.cancelled += 1
        else:
            self.dead += 1

    @property
    def total(self) -> int:
        """All of them."""
        return self.done + self.failed + self.cancelled + self.dead
