"""The requests of an application, carried out in their order.

Neither job_status_res nor job_complete_res names its job, so an application can only tell by the order of the answers.
While it waits for a sync job, packets of these types belong to that job. A request that would be answered with one of
them waits, and so do all requests after it. A new async job is answered with job_create_res, which is unambiguous: it
passes a sync job that runs, unless another request waits before it.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from geartrain.errors import WireError

# What the next request has to wait for.
IDLE: Final = 0
SYNC_JOB: Final = 1  # the end of a sync job
LOOKUP: Final = 2  # a record from the archive

Step = Callable[[], None]

_STEPS: Final = 64  # requests that are carried out before others have their turn
_OVERHEAD: Final = 256  # bytes of memory that a waiting request takes besides its body, about


class RequestOrder:
    """The requests of one connection that have not been carried out."""

    def __init__(self, limit: int) -> None:
        self.state = IDLE
        self._limit = limit  # bytes that may wait
        self._size = 0
        self._waiting: deque[tuple[Step, int, bool]] = deque()

    def add(self, step: Step, size: int, passes_sync_job: bool = False) -> None:
        """Carry out a request now, or after those before it."""
        if not self._waiting and self._may_run(passes_sync_job):
            step()
            return
        size += _OVERHEAD
        if self._size + size > self._limit:
            raise WireError("TOO_MUCH", f"more than {self._limit} bytes of requests wait for the answers before them")
        self._size += size
        self._waiting.append((step, size, passes_sync_job))

    def resume(self) -> bool:
        """The request that the others waited for is answered: carry some of them out. Whether more could be."""
        self.state = IDLE
        return self.run_some()

    def run_some(self) -> bool:
        """Carry out some of the requests that need not wait any more. Whether more could be."""
        waiting = self._waiting
        for _ in range(_STEPS):
            if not self._next_may_run():
                return False
            step, size, _ = waiting.popleft()
            self._size -= size
            step()
        return self._next_may_run()

    def clear(self) -> None:
        """Carry out none of them."""
        self._waiting.clear()
        self._size = 0

    def _next_may_run(self) -> bool:
        return bool(self._waiting) and self._may_run(self._waiting[0][2])

    def _may_run(self, passes_sync_job: bool) -> bool:
        return self.state == IDLE or (passes_sync_job and self.state == SYNC_JOB)
