"""Pops that wait: for a job, or for the end of one, for so long or for ever.

A wait for jobs is a worker that sleeps in the engine. The engine wakes workers for functions, and a pop may want some
priorities of them only, so a worker that would be woken at once for jobs that it does not want is looked at again
after each tick instead.
"""

from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import keys
from geartrain.engine.job import LiveJob
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection
    from geartrain.runtime.tick import TickLoop
    from geartrain.runtime.timers import DelayedCall

OVER: Final = b"OK"  # what stands in a lock when its job is over


class Wait:
    """One connection's pop that found nothing."""

    __slots__ = ("connection", "keys", "over", "timer")

    def __init__(self, connection: "GearmonkeyConnection", wanted: list[keys.Key]) -> None:
        self.connection = connection
        self.keys = wanted
        self.over = False
        self.timer: DelayedCall | None = None

    def expire(self) -> None:
        """It has waited long enough."""
        self.connection.answer_wait(resp.NULL_ARRAY)

    @property
    def for_jobs(self) -> bool:
        return any(key.kind is keys.Kind.QUEUE for key in self.keys)


def claim(connection: "GearmonkeyConnection", function: bytes, priority: int) -> LiveJob | None:
    """Give the connection a job of this queue, if there is one."""
    worker = connection.work()
    worker.offer(function)
    engine = connection.engine
    job = engine.claim(worker) if worker.inbox else engine.claim_from(worker, function, priority)
    if job is not None:
        connection.monkey.popped.add(job.handle)
    return job


def take(connection: "GearmonkeyConnection", key: keys.Key) -> bytes | None:
    """What a pop of this key gives now."""
    if key.kind is keys.Kind.LOCK:
        return OVER if connection.jobs.is_over(key) else None
    if key.last == keys.SCHEDULED:
        raise keys.WRONG_TYPE
    job = claim(connection, key.function, keys.PRIORITIES[key.last])
    return b"%d" % job.id if job is not None else None


def serve(wait: Wait) -> bool:
    """Answer a wait if there is something for it."""
    for key in wait.keys:
        found = take(wait.connection, key)
        if found is not None:
            wait.connection.answer_wait([key.raw, found])
            return True
    return False


class Waits:
    """All waits of a door."""

    def __init__(self, tick_loop: "TickLoop") -> None:
        self._tick_loop = tick_loop
        self._for_locks: dict[tuple[bytes, int], dict[Wait, None]] = {}
        self.choosy: dict[Wait, None] = {}  # there are jobs for them, but not those that they want
        self.count = 0

    def add(self, wait: Wait, seconds: float) -> None:
        """A pop waits; 0 seconds means for ever."""
        self.count += 1
        for key in wait.keys:
            if key.kind is keys.Kind.LOCK:
                self._for_locks.setdefault((key.function, key.id), {})[wait] = None
        if seconds:
            wait.timer = self._tick_loop.timers.call_later(seconds, wait.expire)

    def end(self, wait: Wait) -> None:
        """It was answered, or nobody is there to be answered."""
        wait.over = True
        if wait.timer is not None:
            wait.timer.cancel()
        self.count -= 1
        self.choosy.pop(wait, None)
        for key in wait.keys:
            place = (key.function, key.id) if key.kind is keys.Kind.LOCK else None
            if place in self._for_locks:
                self._for_locks[place].pop(wait, None)
                if not self._for_locks[place]:
                    del self._for_locks[place]

    def concern(self, job: LiveJob) -> bool:
        """Whether somebody waits for the end of this job."""
        return (job.function, job.id) in self._for_locks

    def job_over(self, job: LiveJob) -> None:
        """Answer everybody who waits for the end of this job."""
        for wait in list(self._for_locks.get((job.function, job.id), ())):
            raw = next(key.raw for key in wait.keys if key.kind is keys.Kind.LOCK and key.id == job.id)
            wait.connection.answer_wait([raw, OVER])

    def look_again(self) -> None:
        """After each tick: is there something for those that the engine cannot wake?"""
        if not self.choosy:
            return
        for wait in list(self.choosy):
            if not wait.over:
                del self.choosy[wait]
                wait.connection.work().look()
