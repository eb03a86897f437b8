"""A function: its waiting lines, its unique keys, its limits, and who offers it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from geartrain.engine.counters import OutcomeCounts
from geartrain.engine.job import LiveJob
from geartrain.engine.queue import JobQueue, LinkedList

if TYPE_CHECKING:
    from geartrain.engine.crew import Crew, IdleCrew

UNLIMITED: Final = 0


class Function:
    """Everything that is known under one function name. Counters are kept, never recounted."""

    __slots__ = (
        "broadcast",
        "calls",
        "crews",
        "limited",
        "limits",
        "name",
        "outcomes",
        "paused",
        "queues",
        "returned",
        "running",
        "scheduled",
        "unique_jobs",
        "wake_again_at",
        "workers",
    )

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.queues = [JobQueue(), JobQueue(), JobQueue()]  # by priority
        self.limited = False  # whether one of the limits is one
        self.limits = (UNLIMITED, UNLIMITED, UNLIMITED)  # by the priority of the job that wants in
        self.unique_jobs: dict[bytes, LiveJob] = {}  # jobs that wait or run, by unique key
        self.crews: dict[Crew, None] = {}  # with at least one worker that offers it
        self.calls: LinkedList[IdleCrew] = LinkedList()  # of crews that may have somebody idle
        self.workers = 0  # how many workers offer it
        self.running = 0
        self.scheduled = 0
        self.broadcast = False  # its jobs go to every waiting worker
        self.paused = False  # its jobs wait until somebody resumes it
        self.returned = 0  # how many of its jobs came back: kept from before, or dead and retried
        self.outcomes = OutcomeCounts()
        self.wake_again_at = 0.0  # when a job that is still queued wakes one more worker; 0: no need

    @property
    def queued(self) -> int:
        """How many jobs wait for a worker."""
        high, normal, low = self.queues
        return high.size + normal.size + low.size

    @property
    def total(self) -> int:
        """How many jobs it has in all: scheduled, queued and running."""
        high, normal, low = self.queues
        return high.size + normal.size + low.size + self.running + self.scheduled

    @property
    def submitted(self) -> int:
        """How many jobs came since the start; one that joined another does not count."""
        return self.outcomes.total + self.total - self.returned

    @property
    def completed(self) -> int:
        """How many jobs were done."""
        return self.outcomes.done

    @property
    def failed(self) -> int:
        """How many jobs failed or were given up. One that somebody cancelled is no failure."""
        return self.outcomes.failed + self.outcomes.dead

    def oldest_ready_at(self) -> float:
        """When the job that waits longest was ready to run; 0 if none waits."""
        found = 0.0
        for queue in self.queues:
            if queue.size:
                ready = queue.oldest_ready_at()
                if not found or ready < found:
                    found = ready
        return found

    def queued_jobs(self) -> Iterator[LiveJob]:
        """The queued jobs, in the order in which they will be handed out."""
        for queue in self.queues:
            yield from queue
