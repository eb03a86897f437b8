"""Broadcast jobs: one job, a copy for every worker that is idle when the first one claims it.

The first worker that completes its copy completes the job. A worker that fails or is lost gives up its copy only; the
job fails when no copy is left. A copy is not assigned a second time.
"""

from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker


class Broadcasts:
    """The running broadcast jobs and the workers that have a copy of each."""

    __slots__ = ("copies",)

    def __init__(self) -> None:
        self.copies: dict[LiveJob, set[Worker]] = {}

    def share(self, job: LiveJob, first: Worker, others: list[Worker]) -> None:
        """Give a copy to `first`, which has claimed the job, and put one into the inbox of each other worker."""
        self.copies[job] = {first, *others}
        for worker in others:
            if worker.inbox is None:
                worker.inbox = []
            worker.inbox.append(job)

    def claim(self, worker: Worker) -> LiveJob | None:
        """Take the next copy from the worker's inbox, skipping jobs that are finished."""
        while worker.inbox:
            job = worker.inbox.pop(0)
            if job in self.copies:
                worker.running.add(job)
                return job
        return None

    def drop(self, job: LiveJob, worker: Worker) -> bool:
        """Remove the copy of a worker; return whether it was the last one."""
        copies = self.copies[job]
        copies.discard(worker)
        worker.running.remove(job)
        return not copies

    def end(self, job: LiveJob) -> None:
        """The job is finished: a late answer from a worker that still has a copy is ignored."""
        for worker in self.copies.pop(job):
            if worker.running.remove(job):
                worker.forgive_late(job.handle)
            elif worker.inbox and job in worker.inbox:  # it would be valid again when the job is retried
                worker.inbox.remove(job)
