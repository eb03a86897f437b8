"""How many jobs a worker may have at once, over all its servers.

A worker of several servers must not request a job for its one free slot from all of them: two would send one, and the
second would wait behind the first while other workers are idle. So a protocol takes a slot before it requests a job.

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
    """Slots for jobs, and the callbacks that wait for one, first come first served."""

    __slots__ = ("_waiting", "free", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self.free = total
        self._waiting: deque[Callable[[], None]] = deque()

    def take(self) -> bool:
        """Take a slot; false if none is free."""
        if self.free <= 0:
            return False
        self.free -= 1
        return True

    def give(self) -> None:
        """Give a slot back, and call the first callback that waits for one."""
        self.free += 1
        self.pass_on()

    def pass_on(self) -> None:
        """Call the next callback: the owner of the one before does not want the slot any more."""
        if self._waiting:
            self._waiting.popleft()()

    def wait(self, callback: Callable[[], None]) -> None:
        """Call this once, when a slot becomes free; another protocol may have taken it by the time of the call."""
        self._waiting.append(callback)
