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

_OVERHEAD: Final = 320  # bytes of memory that a waiting request takes besides its body, about


class RequestOrder:
    """The requests of one connection that have not been carried out."""

    def __init__(self, limit: int) -> None:
        self.state = IDLE
        self._limit = limit  # bytes that may wait
        self.size = 0  # bytes that wait
        self._waiting: deque[tuple[Step, int, bool]] = deque()

    def add(self, step: Step, size: int, passes_sync_job: bool = False) -> None:
        """Carry out a request now, or after those before it."""
        if self.may_pass(passes_sync_job):
            step()
            return
        size += _OVERHEAD
        if self.size + size > self._limit:
            raise WireError("TOO_MUCH", f"more than {self._limit} bytes of requests wait for the answers before them")
        self.size += size
        self._waiting.append((step, size, passes_sync_job))

    def may_pass(self, passes_sync_job: bool) -> bool:
        """Whether a request can be carried out now."""
        return not self._waiting and self._may_run(passes_sync_job)

    def run_next(self) -> bool:
        """Carry out a request that has waited and need not wait any more; false if there is none."""
        if not self._waiting or not self._may_run(self._waiting[0][2]):
            return False
        step, size, _ = self._waiting.popleft()
        self.size -= size
        step()
        return True

    def clear(self) -> None:
        """Carry out none of them."""
        self._waiting.clear()
        self.size = 0

    def _may_run(self, passes_sync_job: bool) -> bool:
        return self.state == IDLE or (passes_sync_job and self.state == SYNC_JOB)
