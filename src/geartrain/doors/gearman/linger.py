"""Lingering grabs: an answer held back for a moment saves four packets.

A worker whose GRAB_JOB finds nothing would be told NO_JOB, say PRE_SLEEP, be woken by NOOP and grab again. Where
jobs keep arriving, the next one is usually there within a fraction of a millisecond, so the answer waits that
long and is then often the job itself. The protocol allows it: the answer merely comes a little later.

It must stay short, since a worker of several servers asks them in turn, and it must cost nothing while nothing
happens: only crews that got a job a moment ago linger, and there is one timer for all of them.
"""

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from geartrain.doors.gearman.worker import GearmanWorker
    from geartrain.runtime.tick import TickLoop
    from geartrain.runtime.timers import DelayedCall

# A crew counts as busy for this many times the linger after it got a job.
_BUSY_FOR: Final = 50


class Lingers:
    """The grabs of one door that wait for an answer, the oldest first."""

    def __init__(self, tick_loop: "TickLoop", linger: float) -> None:
        self._tick_loop = tick_loop
        self._engine = tick_loop.engine
        self._linger = linger
        self._busy_for = linger * _BUSY_FOR
        self._waiting: deque[tuple[float, int, GearmanWorker]] = deque()
        self._timer: DelayedCall | None = None

    def hold(self, worker: "GearmanWorker", kind: int) -> bool:
        """Keep the grab of a worker that found nothing, if jobs have been arriving; whether it was kept."""
        crew = worker.crew
        now = self._engine.now
        if crew is None or now - crew.last_claim_at >= self._busy_for:
            return False
        worker.grab = kind
        worker.grabs += 1
        self._waiting.append((now + self._linger, worker.grabs, worker))
        if self._timer is None:
            self._timer = self._tick_loop.timers.call_later(self._linger, self._expire)
        self._engine.sleep(worker)
        return True

    def close(self) -> None:
        """Let go of the loop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._waiting.clear()

    def _expire(self) -> None:
        """Tell those who have waited long enough that there is no job."""
        now = self._engine.now
        waiting = self._waiting
        while waiting and waiting[0][0] <= now:
            _, number, worker = waiting.popleft()
            if worker.grab and worker.grabs == number:
                worker.give_up()
        self._timer = None
        if waiting:
            self._timer = self._tick_loop.timers.call_later(self._linger, self._expire)
