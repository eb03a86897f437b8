"""Lingering grabs: an answer that is held back for a moment saves four packets.

A worker whose GRAB_JOB finds no job would get NO_JOB, send PRE_SLEEP, get NOOP and grab again. Where jobs keep
arriving, the next one comes within a fraction of a millisecond, so the answer waits that long and is then often the
job itself. The protocol allows it: the answer only comes a little later.

The wait must be short, since a worker of several servers asks them in turn, and it must cost nothing on an idle server:
only a crew that got a job a moment ago lingers, and there is one timer for all grabs of the door.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from geartrain.doors.gearman.worker import GearmanWorker
    from geartrain.runtime.tick import TickLoop
    from geartrain.runtime.timers import DelayedCall

# How long a grab lingers at most for a job whose payload is being read.
_PAYLOAD_SECONDS: Final = 1.0
_SHORTEST_INTERVAL: Final = 0.001  # between two passes, with grabs that linger for nothing else
# A crew counts as busy for this many linger times after it got a job.
_BUSY_FOR: Final = 50


class LingeringGrabs:
    """The grabs of one door that wait for a job.

    A worker is listed once, however often it grabs, and a timer goes through the list once per linger time while it is
    not empty. So a grab that gets its job in time costs hardly anything.
    """

    def __init__(self, tick_loop: "TickLoop", linger: float) -> None:
        self._tick_loop = tick_loop
        self._engine = tick_loop.engine
        self._linger = linger
        self._interval = linger or _SHORTEST_INTERVAL
        self._busy_for = linger * _BUSY_FOR
        self._waiting: list[GearmanWorker] = []  # those that linger, and some that have got a job
        self._timer: DelayedCall | None = None

    def hold(self, worker: "GearmanWorker", kind: int) -> bool:
        """Let the grab of a worker linger if its crew got a job a moment ago; whether it does."""
        crew = worker.crew
        now = self._engine.now
        if crew is None:
            return False
        if crew.waits_for_payload:  # "no job" would be wrong: there are some
            worker.lingers_until = now + _PAYLOAD_SECONDS
        elif now - crew.last_claim_at < self._busy_for:
            worker.lingers_until = now + self._linger
        else:
            return False
        worker.grab = kind
        if not worker.is_lingering:
            worker.is_lingering = True
            self._waiting.append(worker)
        if self._timer is None:
            self._timer = self._tick_loop.timers.call_later(self._interval, self._expire)
        self._engine.sleep(worker, lingers=True)
        return True

    def close(self) -> None:
        """Answer no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._waiting.clear()

    def _expire(self) -> None:
        """Send NO_JOB to workers that have waited long enough."""
        now = self._engine.now
        waiting = self._waiting
        self._waiting = []
        for worker in waiting:
            if worker.grab and worker.lingers_until > now:
                self._waiting.append(worker)
                continue
            worker.is_lingering = False
            if worker.grab:
                worker.end_linger()
        self._timer = None
        if self._waiting:
            self._timer = self._tick_loop.timers.call_later(self._interval, self._expire)
