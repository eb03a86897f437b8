"""What a worker does, whatever it speaks to: by the document at a Geartrain server, with custody on a real Redis."""

import secrets
import time
from collections.abc import Sequence
from typing import Any

from geartrain.client.redis import flow, names, scripts
from geartrain.client.redis.flow import Flow
from geartrain.client.redis.leased_worker import LeasedWorker
from geartrain.client.redis.plain_worker import POP_SECONDS, PlainWorker, Task, Woken
from geartrain.errors import ClientError

__all__ = ["POP_SECONDS", "Duties", "Task", "Woken"]


class Duties:
    """One worker's state; each method is a flow."""

    def __init__(self, lease: float) -> None:
        if lease <= 0:
            raise ClientError("a lease takes a time above zero")
        self.lease = lease
        self.functions: list[str] = []
        self.tasks: list[Task] = []  # what it has taken and not finished
        self._custody = LeasedWorker(secrets.token_hex(8), lease)
        self._way: PlainWorker = self._custody

    @property
    def needs_care(self) -> bool:
        """Whether this is a real Redis, where we look after each other."""
        return self._way.needs_care

    def start(self) -> Flow[None]:
        """Come in; also after the connection broke, since the server may be another one."""
        yield from flow.load(scripts.DUE)
        information = yield flow.again("INFO")
        self._way = PlainWorker() if "geartrain_version" in information else self._custody
        for function in self.functions:
            yield from self.register(function)

    def register(self, function: str) -> Flow[None]:
        """Be counted."""
        yield from self._way.register(function)

    def unregister(self, function: str) -> Flow[None]:
        """Be counted no more."""
        yield from self._way.unregister(function)

    def stop(self) -> Flow[None]:
        """Offer nothing any longer."""
        for function in self.functions:
            yield from self.unregister(function)

    def next(self, seconds: float) -> Flow[Task | None]:
        """A job that is to be done, if one comes within so long."""
        deadline = time.monotonic() + seconds
        woken: Sequence[Woken] = ()
        while True:
            left = deadline - time.monotonic()
            task = yield from self.take(woken, left)
            if task is not None or left <= 0:
                return task
            woken = yield from self.wait(min(left, POP_SECONDS))

    def take(self, woken: Sequence[Woken], seconds: float) -> Flow[Task | None]:
        """A job that is to be done. If there is none, a wait comes next, and then what that has found."""
        task = yield from self._way.take(tuple(self.functions), woken, seconds)
        if task is not None:
            self.tasks.append(task)
        return task

    def wait(self, seconds: float) -> Flow[list[Woken]]:
        """Wait for a job, without taking it; those that have come are for `take` or `put_back`."""
        return (yield from self._way.wait(tuple(self.functions), seconds))

    def put_back(self, woken: Sequence[Woken]) -> Flow[None]:
        """Have nothing to do with jobs that have come."""
        yield from self._way.put_back(woken)

    def update(self, task: Task, dividend: float, divisor: float) -> Flow[None]:
        """Say how far the work is."""
        progress = ("status:dividend", dividend, "status:divisor", divisor)
        yield flow.again("HMSET", names.job(task.function, task.number), *progress)

    def finish(self, task: Task, status: str, output: Any) -> Flow[bool]:
        """Write down what came of a job; false if it was given to another worker meanwhile."""
        try:
            return (yield from self._way.finish(task, status, output))
        finally:
            self.forget(task)

    def give_back(self, task: Task) -> Flow[None]:
        """Let another worker have a job."""
        self.forget(task)
        yield from self._way.give_back(task)

    def care(self) -> Flow[list[Task]]:
        """Say that this worker is alive and at it, and return what others have lost; thrice in a lease.

        Returns those of its own tasks that were given to others.
        """
        return (yield from self._way.care(tuple(self.functions), tuple(self.tasks)))

    def forget(self, task: Task) -> None:
        """It has this job no more."""
        if task in self.tasks:
            self.tasks.remove(task)
