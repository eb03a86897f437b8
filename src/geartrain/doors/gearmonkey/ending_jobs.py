"""Jobs whose worker has written the final status and no output.

In Redis the two are fields of a hash, and a program may write them with two commands, in either order. A job ends with
its output, so one that has a final status waits for it. It ends without an output when the worker shows that none
will follow, by one of the commands with which the document goes on (EXPIRE, PUBLISH finish, LPUSH to the lock), or
after a moment.
"""

from typing import TYPE_CHECKING, Final

from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker

if TYPE_CHECKING:
    from geartrain.runtime.tick import TickLoop
    from geartrain.runtime.timers import DelayedCall

OUTPUT_SECONDS: Final = 1.0  # that a job waits for its output
SUCCESS: Final = b"success"
FINAL: Final = frozenset({SUCCESS, b"error"})  # statuses


class EndingJob:
    """A job that waits for its output."""

    __slots__ = ("_jobs", "job", "status", "timer", "worker")

    def __init__(self, jobs: "EndingJobs", job: LiveJob, worker: Worker, status: bytes) -> None:
        self._jobs = jobs
        self.status = status
        self.job = job
        self.worker = worker
        self.timer: DelayedCall | None = None

    def end(self) -> None:
        """No output has been written."""
        self._jobs.end(self.job, self.worker, self.status, b"")


class EndingJobs:
    """By the job's id."""

    def __init__(self, tick_loop: "TickLoop") -> None:
        self._tick_loop = tick_loop
        self._jobs: dict[int, EndingJob] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, number: int) -> bool:
        return number in self._jobs

    def wait(self, job: LiveJob, worker: Worker, status: bytes) -> None:
        """Wait for the output of a job that has this final status."""
        self.discard(job.id)
        ending = self._jobs[job.id] = EndingJob(self, job, worker, status)
        ending.timer = self._tick_loop.timers.call_later(OUTPUT_SECONDS, ending.end)

    def discard(self, number: int) -> None:
        """The job has ended, goes back to its queue, or is busy after all."""
        ending = self._jobs.pop(number, None)
        if ending is not None and ending.timer is not None:
            ending.timer.cancel()

    def end_waiting(self, number: int) -> None:
        """End a job now if it waits for its output."""
        ending = self._jobs.get(number)
        if ending is not None:
            ending.end()

    def end(self, job: LiveJob, worker: Worker, status: bytes, output: bytes) -> None:
        """End a job with what its worker has written."""
        engine = self._tick_loop.engine
        if status == SUCCESS:
            engine.complete(worker, job, output)
        elif output:
            engine.raise_exception(worker, job, output)
        else:
            engine.fail(worker, job)
