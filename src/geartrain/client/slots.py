"""How many jobs a worker may have at once, over all its connections.

A worker of several servers must not request a job for its one free slot from all of them: two would send one, and the
second would wait behind the first while other workers are idle. So a protocol takes a slot before it requests a job.

>>> slots = Slots(1)
>>> slots.take(), slots.take()
(True, False)
>>> slots.wait(lambda: print("a slot is free"))
>>> slots.give()
a slot is free

A part of the slots is for jobs of one function. A slot of the part is one of the whole, too:

>>> slots = Slots(3)
>>> slow = slots.part(b"slow", 2)
>>> slow.take(), slow.take(), slow.take()
(True, True, False)
>>> slots.take(), slots.take()
(True, False)
"""

from collections import deque
from collections.abc import Callable


class Slots:
    """Slots for jobs, and the callbacks that wait for one, first come first served."""

    __slots__ = ("_free", "_parts", "_waiting", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self._free = total
        self._waiting: deque[Callable[[], None]] = deque()
        self._parts: dict[bytes, SlotPart] = {}

    @property
    def free(self) -> int:
        """How many can be taken."""
        return self._free

    def part(self, name: bytes, total: int) -> "SlotPart":
        """The part of this name, which all connections that ask for it share."""
        part = self._parts.get(name)
        if part is None or part.total != total:
            part = self._parts[name] = SlotPart(self, total)
        return part

    def take(self) -> bool:
        """Take a slot; false if none is free."""
        if self._free <= 0:
            return False
        self._free -= 1
        return True

    def give(self) -> None:
        """Give a slot back, and call the first callback that waits for one."""
        self._free += 1
        self.pass_on()

    def pass_on(self) -> None:
        """Call the next callback: the owner of the one before does not want the slot any more."""
        if self._waiting:
            self._waiting.popleft()()

    def wait(self, callback: Callable[[], None]) -> None:
        """Call this once, when a slot becomes free; another protocol may have taken it by the time of the call."""
        self._waiting.append(callback)


class SlotPart(Slots):
    """At most `total` of the slots of a whole: who takes one takes one of the whole, too.

    Callbacks wait here while the part is full, and with those of the whole while only the whole is. Each slot that is
    given back moves one of them from here to there, so that everybody waits in one line for a slot of the whole. Who is
    called there while the part is full passes the slot of the whole on.
    """

    __slots__ = ("_whole",)

    def __init__(self, whole: Slots, total: int) -> None:
        super().__init__(total)
        self._whole = whole

    @property
    def free(self) -> int:
        return max(min(self._free, self._whole.free), 0)

    def take(self) -> bool:
        if self._free <= 0 or not self._whole.take():
            return False
        self._free -= 1
        return True

    def give(self) -> None:
        self._free += 1
        self._move_next()
        self._whole.give()

    def pass_on(self) -> None:
        if self._free > 0:
            self._move_next()
        self._whole.pass_on()

    def wait(self, callback: Callable[[], None]) -> None:
        if self._free > 0:
            self._wait_for_whole(callback)
            return
        self._waiting.append(callback)
        if self._whole.free > 0:
            self._whole.pass_on()  # the one that waits here now may have been called for that slot

    def _move_next(self) -> None:
        if self._waiting:
            self._wait_for_whole(self._waiting.popleft())

    def _wait_for_whole(self, callback: Callable[[], None]) -> None:
        def called() -> None:
            if self._free > 0:
                callback()
            else:
                self._waiting.appendleft(callback)
                self._whole.pass_on()

        self._whole.wait(called)
