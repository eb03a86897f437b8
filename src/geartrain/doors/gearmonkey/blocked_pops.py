"""Blocking pops that wait: for a job, or for the end of one, with or without a timeout.

A connection whose pop waits for jobs is a worker that sleeps in the engine. The engine wakes workers by function, while
a pop may be for some priorities only. A worker that would be woken at once, for jobs that its pop is not for, is
checked again after each tick instead.
"""

from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import keys
from geartrain.doors.gearmonkey.distant_subscribers import DistantSubscribers, Listening
from geartrain.engine.job import LiveJob
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection
    from geartrain.runtime.tick import TickLoop
    from geartrain.runtime.timers import DelayedCall

ENDED: Final = b"OK"  # the value of a lock whose job has ended
LONGEST_INPUT: Final = 64 * 1024  # bytes, of one that is sent with the id


class BlockedPop:
    """The blocking pop of one connection."""

    __slots__ = ("connection", "ended", "keys", "timer")

    def __init__(self, connection: "GearmonkeyConnection", popped_keys: list[keys.Key]) -> None:
        self.connection = connection
        self.keys = popped_keys
        self.ended = False
        self.timer: DelayedCall | None = None

    def expire(self) -> None:
        """Answer with nothing after the timeout."""
        self.connection.answer_pop(resp.NULL_ARRAY)

    @property
    def for_jobs(self) -> bool:
        return any(key.kind == keys.QUEUE for key in self.keys)


def claim(connection: "GearmonkeyConnection", function: bytes, priority: int) -> LiveJob | None:
    """Assign a job of this queue to the connection, if there is one."""
    worker = connection.work()
    worker.offer(function)
    engine = connection.engine
    job = engine.claim(worker) if worker.inbox else engine.claim_from(worker, function, priority)
    if job is not None:
        connection.gearmonkey.popped.add(job.handle)
    return job


def claim_scheduled(connection: "GearmonkeyConnection", job: LiveJob) -> LiveJob | None:
    """Assign a scheduled job to the connection before its time."""
    worker = connection.work()
    worker.offer(job.function)
    claimed = connection.engine.claim_scheduled(worker, job)
    if claimed is not None:
        connection.gearmonkey.popped.add(job.handle)
    return claimed


def take(connection: "GearmonkeyConnection", key: keys.Key) -> bytes | None:
    """The value that a pop of this key returns now; None if it has to wait."""
    if key.kind == keys.LOCK:
        return ENDED if connection.jobs.has_ended(key) else None
    job = _claim_from(connection, key)
    return b"%d" % job.id if job is not None else None


def reply(connection: "GearmonkeyConnection", key: keys.Key) -> list[resp.Value] | None:
    """The reply of a blocking pop, if it need not wait: key and value, and the input after CLIENT INPUT ON."""
    if key.kind == keys.LOCK:
        return [key.raw, ENDED] if connection.jobs.has_ended(key) else None
    job = _claim_from(connection, key)
    if job is None:
        return None
    number = b"%d" % job.id
    if connection.wants_input and len(job.payload) <= LONGEST_INPUT:
        return [key.raw, number, job.payload]
    return [key.raw, number]


def serve(pop: BlockedPop) -> bool:
    """Answer a pop, if there is a value for it."""
    for key in pop.keys:
        found = reply(pop.connection, key)
        if found is not None:
            pop.connection.answer_pop(found)
            return True
    return False


def _claim_from(connection: "GearmonkeyConnection", key: keys.Key) -> LiveJob | None:
    """Assign the next job of a queue that is a list."""
    if key.last == keys.SCHEDULED:
        raise keys.WRONG_TYPE
    return claim(connection, key.function, keys.PRIORITIES[key.last])


class BlockedPops:
    """The blocking pops of a door."""

    def __init__(self, tick_loop: "TickLoop") -> None:
        self._tick_loop = tick_loop
        self.distant: DistantSubscribers | None = None  # of a server in a cluster
        self._for_locks: dict[tuple[bytes, int], dict[BlockedPop, None]] = {}
        self.rechecked: dict[BlockedPop, None] = {}  # there are jobs of their functions, but of other priorities
        self.count = 0

    def add(self, pop: BlockedPop, seconds: float) -> None:
        """Add a pop that waits; 0 seconds means without a timeout."""
        self.count += 1
        for key in pop.keys:
            if key.kind == keys.LOCK:
                self._for_locks.setdefault((key.function, key.id), {})[pop] = None
                self._listen(key, 1)
        if seconds:
            pop.timer = self._tick_loop.timers.call_later(seconds, pop.expire)

    def end(self, pop: BlockedPop) -> None:
        """A pop was answered, or its connection is gone."""
        pop.ended = True
        if pop.timer is not None:
            pop.timer.cancel()
        self.count -= 1
        self.rechecked.pop(pop, None)
        for key in pop.keys:
            lock = (key.function, key.id) if key.kind == keys.LOCK else None
            if lock in self._for_locks:
                if self._for_locks[lock].pop(pop, pop) is None:
                    self._listen(key, -1)
                if not self._for_locks[lock]:
                    del self._for_locks[lock]

    def has_lock_of(self, job: LiveJob) -> bool:
        """Whether a pop waits for the end of this job."""
        return (job.function, job.id) in self._for_locks

    def _listen(self, key: keys.Key, by: int) -> None:
        """Have other servers say when their jobs of this function end, as long as a pop waits for one."""
        if self.distant is not None:
            self.distant.add(Listening.END, b"channel:" + key.function, by)

    def job_ended(self, job: LiveJob) -> None:
        """Answer the pops that wait for the end of this job."""
        self.end_of(job.function, job.id)

    def end_of(self, function: bytes, id: int) -> None:
        """The same for a job that another server may have."""
        for pop in list(self._for_locks.get((function, id), ())):
            raw = next(key.raw for key in pop.keys if key.kind == keys.LOCK and key.id == id)
            pop.connection.answer_pop([raw, ENDED])

    def recheck(self) -> None:
        """Answer pops that the engine cannot wake workers for. Called after each tick."""
        if not self.rechecked:
            return
        for pop in list(self.rechecked):
            if not pop.ended:
                del self.rechecked[pop]
                pop.connection.work().try_pop()
