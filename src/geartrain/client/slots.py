"""How many jobs a worker may have at once, over all its servers.

A worker of several servers must not ask all of them for its one free place: two would answer, and one job would
wait behind the other while other workers are idle. So a link takes a slot before it asks.

>>> slots = Slots(1)
>>> slots.take(), slots.take()
(True, False)
>>> slots.wait(lambda: print("a slot is free"))
>>> slots.give()
a slot is free
"""

from collections import deque
from collections.abc import Callable


class Slots:
    """Places for jobs, and who waits for one, first come first served."""

    __slots__ = ("_waiting", "free", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self.free = total
        self._waiting: deque[Callable[[], None]] = deque()

    def take(self) -> bool:
        """Take a slot, if one is free."""
        if self.free <= 0:
            return False
        self.free -= 1
        return True

    def give(self) -> None:
        """Give a slot back; the first who waits for one is told."""
        self.free += 1
        self.pass_on()

    def pass_on(self) -> None:
        """Tell the next one who waits: somebody who was told does not want it any more."""
        if self._waiting:
            self._waiting.popleft()()

    def wait(self, told: Callable[[], None]) -> None:
        """Be told once, when a slot has come free; somebody else may have taken it again by then."""
        self._waiting.append(told)
