"""Workers whose request for a job lingers: "no job" is held back for a moment, in which a job may come.

What lingering grabs are for Gearman (`doors/gearman/linger.py`), for a protocol in which a worker asks, is told that
there is no job, goes to sleep, is woken, and asks again: where jobs keep coming, two reads and two writes are saved.

The wait must be short, since a worker of several servers asks them in turn, and it must cost nothing on an idle server:
only a crew that got a job a moment ago lingers, and there is one timer for all workers of the door.
"""

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from geartrain.engine.worker import Worker

if TYPE_CHECKING:
    from geartrain.runtime.tick import TickLoop
    from geartrain.runtime.timers import DelayedCall

# A crew counts as busy for this many linger times after it got a job.
_BUSY_FOR: Final = 50


@mypyc_attr(allow_interpreted_subclasses=True)
class LingeringWorker(Worker):
    """A worker whose request may linger. It is asleep meanwhile, and its `wake` answers the request."""

    __slots__ = ("is_lingering", "is_listed", "lingers_until")

    def __init__(self, door: str, name: bytes = b"", peer: str = "") -> None:
        super().__init__(door, name, peer)
        self.is_lingering = False
        self.lingers_until = 0.0  # when that request, or the last one, is answered in any case
        self.is_listed = False  # in `LingeringWorkers`

    def end_linger(self) -> None:
        """Answer that there is no job."""
        raise NotImplementedError


class LingeringWorkers:
    """The workers of one door whose requests linger.

    A worker is listed once, however often it asks, and a timer goes through the list once per linger time while it is
    not empty. So a request that is answered with a job in time costs hardly anything.
    """

    def __init__(self, tick_loop: "TickLoop", linger: float) -> None:
        self._tick_loop = tick_loop
        self._engine = tick_loop.engine
        self._linger = linger  # seconds; 0: no request lingers
        self._busy_for = linger * _BUSY_FOR
        self._listed: list[LingeringWorker] = []  # those that linger, and some that have got a job
        self._timer: DelayedCall | None = None

    def hold(self, worker: LingeringWorker) -> bool:
        """Let the request of a worker linger if its crew got a job a moment ago; whether it does, or was answered."""
        crew = worker.crew
        now = self._engine.now
        if crew is None or now - crew.last_claim_at >= self._busy_for:
            return False
        worker.is_lingering = True
        worker.lingers_until = now + self._linger
        if not worker.is_listed:
            worker.is_listed = True
            self._listed.append(worker)
        if self._timer is None:
            self._timer = self._tick_loop.timers.call_later(self._linger, self._expire)
        self._engine.sleep(worker)
        return True

    def close(self) -> None:
        """Answer no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._listed.clear()

    def _expire(self) -> None:
        """Answer workers that have waited long enough."""
        now = self._engine.now
        listed = self._listed
        self._listed = []
        for worker in listed:
            if worker.is_lingering and worker.lingers_until > now:
                self._listed.append(worker)
                continue
            worker.is_listed = False
            if worker.is_lingering:
                worker.end_linger()
        self._timer = None
        if self._listed:
            self._timer = self._tick_loop.timers.call_later(self._linger, self._expire)
