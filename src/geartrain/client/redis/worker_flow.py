"""The flows of a worker: plain ones as in the document at a Geartrain server, and with leases on a real Redis."""

import secrets
import time
from collections.abc import Sequence
from typing import Any

from geartrain.client.redis import flow, names, scripts
from geartrain.client.redis.flow import Flow
from geartrain.client.redis.leased_worker import LeasedWorker
from geartrain.client.redis.plain_worker import POP_SECONDS, PlainWorker, TakenJob, WakingJob
from geartrain.errors import ClientError

__all__ = ["POP_SECONDS", "TakenJob", "WakingJob", "WorkerFlow"]


class WorkerFlow:
    """The state of one worker; its methods are flows."""

    def __init__(self, lease: float) -> None:
        if lease <= 0:
            raise ClientError("a lease must be longer than zero seconds")
        self.lease = lease
        self.functions: list[str] = []
        self.tasks: list[TakenJob] = []  # taken and not finished
        self._leased = LeasedWorker(secrets.token_hex(8), lease)
        self._worker: PlainWorker = self._leased

    @property
    def has_leases(self) -> bool:
        """Whether this is a real Redis, where `renew` has to be run three times per lease."""
        return self._worker.has_leases

    def start(self) -> Flow[None]:
        """Register; also after the connection broke, since the server may be another one."""
        yield from flow.load(scripts.DUE)
        information = yield flow.repeatable("INFO")
        self._worker = PlainWorker() if "geartrain_version" in information else self._leased
        for function in self.functions:
            yield from self.register(function)

    def tie(self) -> Flow[None]:
        """Tie the jobs to the connection that fetches them, on that connection; `start` comes first."""
        yield from self._worker.tie()

    def register(self, function: str) -> Flow[None]:
        """Register for a function."""
        yield from self._worker.register(function)

    def unregister(self, function: str) -> Flow[None]:
        """Unregister from a function."""
        yield from self._worker.unregister(function)

    def stop(self) -> Flow[None]:
        """Unregister from all functions."""
        for function in self.functions:
            yield from self.unregister(function)

    def next(self, seconds: float) -> Flow[TakenJob | None]:
        """Take a job, if one arrives within this time."""
        deadline = time.monotonic() + seconds
        woken: Sequence[WakingJob] = ()
        while True:
            left = deadline - time.monotonic()
            task = yield from self.take(woken, left)
            if task is not None or left <= 0:
                return task
            woken = yield from self.wait(min(left, POP_SECONDS))

    def take(self, woken: Sequence[WakingJob], seconds: float) -> Flow[TakenJob | None]:
        """Take a job, if there is one. `woken` are the jobs that ended the last wait."""
        task = yield from self._worker.take(tuple(self.functions), woken, seconds)
        if task is not None:
            self.tasks.append(task)
        return task

    def wait(self, seconds: float) -> Flow[list[WakingJob]]:
        """Wait for jobs without taking them; those that arrived must be passed to `take` or `put_back`."""
        return (yield from self._worker.wait(tuple(self.functions), seconds))

    def put_back(self, woken: Sequence[WakingJob]) -> Flow[None]:
        """Put jobs that ended a wait back into their queues."""
        yield from self._worker.put_back(woken)

    def update(self, task: TakenJob, dividend: float, divisor: float) -> Flow[None]:
        """Report progress."""
        progress = ("status:dividend", dividend, "status:divisor", divisor)
        yield flow.repeatable("HMSET", names.job(task.function, task.number), *progress)

    def finish(self, task: TakenJob, status: str, output: Any) -> Flow[bool]:
        """Write down how a job ended; false if it was given to another worker meanwhile."""
        try:
            return (yield from self._worker.finish(task, status, output))
        finally:
            self.forget(task)

    def give_back(self, task: TakenJob) -> Flow[None]:
        """Put a job back into its queue."""
        self.forget(task)
        yield from self._worker.give_back(task)

    def renew(self) -> Flow[list[TakenJob]]:
        """Renew the leases of this worker and its jobs, and put back the jobs of dead workers.

        Returns those of its own jobs that were given to other workers.
        """
        return (yield from self._worker.renew(tuple(self.functions), tuple(self.tasks)))

    def forget(self, task: TakenJob) -> None:
        """Drop a job that is no longer this worker's."""
        if task in self.tasks:
            self.tasks.remove(task)
