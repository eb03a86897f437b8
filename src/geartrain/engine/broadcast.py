"""Jobs that went to several workers at once.

A function may be a broadcast function: its job goes to every worker that waits at the moment. The first of
them that completes it completes the job; one that fails or is lost only gives up its own copy, and the job
fails when no copy is left. Copies are not handed out a second time.
"""

from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker


class Broadcasts:
    """Who has a copy of which job."""

    __slots__ = ("copies",)

    def __init__(self) -> None:
        self.copies: dict[LiveJob, set[Worker]] = {}

    def share(self, job: LiveJob, first: Worker, others: list[Worker]) -> None:
        """`first` has claimed a copy; the others will find theirs when they come to claim."""
        self.copies[job] = {first, *others}
        for worker in others:
            if worker.inbox is None:
                worker.inbox = []
            worker.inbox.append(job)

    def collect(self, worker: Worker) -> LiveJob | None:
        """The next copy that waits for this worker, unless its job is over by now."""
        while worker.inbox:
            job = worker.inbox.pop(0)
            if job in self.copies:
                worker.running.add(job)
                return job
        return None

    def drop(self, job: LiveJob, worker: Worker) -> bool:
        """A worker gives up its copy; true if that was the last one."""
        copies = self.copies[job]
        copies.discard(worker)
        worker.running.drop(job)
        return not copies

    def end(self, job: LiveJob) -> None:
        """The job is over: those who still work on a copy may answer in vain."""
        for worker in self.copies.pop(job):
            if worker.running.drop(job):
                worker.forgive_late(job.handle)
