"""A function: its queues and limits, and the crews of workers that offer it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from geartrain.engine.counters import JobTimes, OutcomeCounts
from geartrain.engine.job import LiveJob
from geartrain.engine.queue import JobQueue, LinkedList

if TYPE_CHECKING:
    from geartrain.engine.crew import IdleCrew
    from geartrain.engine.flow import FunctionFlow
    from geartrain.engine.partitions import Partitions

UNLIMITED: Final = 0


class Function:
    """The state of one function. Counters are maintained, never computed by walking the jobs."""

    __slots__ = (
        "blocked",
        "broadcast",
        "cold",
        "distant_crews",
        "distant_workers",
        "elsewhere",
        "ended_before",
        "flow",
        "full",
        "has_limits",
        "idle_crews",
        "lapsed",
        "limits",
        "max_run",
        "name",
        "next_wake_at",
        "outcomes",
        "partitions",
        "paused",
        "queues",
        "reserving",
        "resting",
        "restored_or_retried",
        "retries",
        "running",
        "scheduled",
        "times",
        "unused_since",
        "workers",
    )

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.queues = [JobQueue(0), JobQueue(1), JobQueue(2)]  # by priority
        self.cold: i64 = 0  # how many of the queued jobs are cold
        self.partitions: Partitions | None = None  # None: it has had no job with a partition, nor a limit for them
        self.flow: FunctionFlow | None = None  # how many jobs may run, and how often; None: no limits
        self.has_limits = False  # whether any of `limits` is set
        self.limits = (UNLIMITED, UNLIMITED, UNLIMITED)  # by the priority of a new job
        self.elsewhere = 0  # how many jobs other servers have, which count for `limits`
        self.idle_crews: LinkedList[IdleCrew] = LinkedList()  # crews that may have idle workers
        self.distant_crews: LinkedList[IdleCrew] = LinkedList()  # the same, of other servers
        self.workers = 0  # how many workers offer it
        self.distant_workers = 0  # how many of them are at other servers
        self.running = 0
        self.scheduled = 0
        self.broadcast = False  # a job goes to every idle worker
        self.max_run = 0.0  # seconds that a worker may take for a job; 0: no limit
        self.blocked = 0  # jobs that wait for other jobs
        self.reserving = 0  # jobs that wait for their unique key
        self.paused = False  # an operator wants no jobs to be assigned until it is resumed
        self.lapsed = False  # it has background jobs, and the lease of this server is over
        self.full = False  # as many jobs run as may, or the next one may not start yet
        self.resting = False  # no jobs are assigned, for one of these reasons
        self.restored_or_retried = 0  # how many jobs entered by a restart or by retrying a dead job
        self.retries = 0  # how often a job was queued again after a failed attempt, by the server or an operator
        self.outcomes = OutcomeCounts()
        self.times: JobTimes | None = None  # from its first assigned job on
        self.unused_since = 0.0  # as `idle_functions.py` saw it; 0: in use when it looked last
        self.ended_before = 0  # how many jobs had ended at that time
        self.next_wake_at = 0.0  # when another worker is woken if jobs are still queued; 0: not planned

    def update_rest(self) -> bool:
        """One of the reasons to assign no jobs has changed; return whether jobs may be assigned."""
        self.resting = self.paused or self.lapsed or self.full
        return not self.resting

    def waiting_queue(self, priority: int) -> JobQueue | None:
        """The queue of this or a higher priority whose next job is cold: no job of this priority goes first."""
        for queue in self.queues[: priority + 1]:
            if queue.cold and not queue.is_held and queue.is_waiting():
                return queue
        return None

    @property
    def assignable(self) -> int:
        """How many of the queued jobs may be assigned, at most: neither limits of partitions nor payloads hold them."""
        count = 0
        for priority, queue in enumerate(self.queues):
            if self.cold and self.waiting_queue(priority) is not None:
                break
            if not queue.is_held:
                count += queue.size
        return count

    @property
    def queued(self) -> int:
        """How many jobs wait for a worker."""
        high, normal, low = self.queues
        return high.size + normal.size + low.size

    @property
    def total(self) -> int:
        """How many jobs are scheduled, queued or running, or wait for their unique key or for other jobs."""
        high, normal, low = self.queues
        waiting = high.size + normal.size + low.size + self.scheduled + self.reserving + self.blocked
        return waiting + self.running

    @property
    def submitted(self) -> int:
        """How many jobs were submitted since the start; a coalesced submission does not count."""
        return self.outcomes.total + self.total - self.restored_or_retried

    @property
    def completed(self) -> int:
        """How many jobs are done."""
        return self.outcomes.done

    @property
    def failed(self) -> int:
        """How many jobs failed or are dead; cancelled jobs do not count."""
        return self.outcomes.failed + self.outcomes.dead

    def oldest_ready_at(self) -> float:
        """When the job that waits longest for a worker was ready to run; 0: none waits."""
        oldest = 0.0
        for queue in self.queues:
            if queue.size:
                ready_at = queue.oldest_ready_at()
                if not oldest or ready_at < oldest:
                    oldest = ready_at
        return oldest

    def queued_jobs(self) -> Iterator[LiveJob]:
        """The queued jobs in the order in which they will be assigned."""
        for queue in self.queues:
            yield from queue
