"""An application's requests, each in its turn.

Neither job_status_res nor job_complete_res says which job it is about, so an application can only tell by the
order. While it waits for a sync job everything of that kind belongs to that job; whatever else would be answered
with such a packet waits, and so does all that came after it. A new async job is answered with job_create_res,
which cannot be mistaken, and passes a sync job that runs unless something waits before it.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from geartrain.errors import WireError

FREE: Final = 0
STREAMING: Final = 1  # a sync job is outstanding
ASKING: Final = 2  # the archive is being asked

Step = Callable[[], None]

# What a waiting request takes besides its bytes, roughly.
_OVERHEAD: Final = 256


class Turns:
    """What one connection asked for and was not answered yet."""

    def __init__(self, limit: int) -> None:
        self.busy = FREE
        self._limit = limit  # bytes that may wait
        self._size = 0
        self._waiting: deque[tuple[Step, int, bool]] = deque()

    def take(self, step: Step, size: int, passes: bool = False) -> None:
        """Do it now, or when its turn comes; `passes`: a running sync job does not hold it up."""
        if not self._waiting and self._may_go(passes):
            step()
            return
        size += _OVERHEAD
        if self._size + size > self._limit:
            raise WireError("TOO_MUCH", f"more than {self._limit} bytes of requests wait for their turn")
        self._size += size
        self._waiting.append((step, size, passes))

    def proceed(self) -> None:
        """What the others waited for is answered."""
        self.busy = FREE
        waiting = self._waiting
        while waiting and self._may_go(waiting[0][2]):
            step, size, _ = waiting.popleft()
            self._size -= size
            step()

    def clear(self) -> None:
        """Nobody waits for an answer any more."""
        self._waiting.clear()
        self._size = 0

    def _may_go(self, passes: bool) -> bool:
        return self.busy == FREE or (passes and self.busy == STREAMING)
