"""What a worker does, command by command as in the document, and what it does beyond.

A worker that dies must not take its job with it. On a real Redis, what ours pop stands in a list of jobs taken until it
is finished, with a lease that is renewed while the work goes on; whichever of our workers comes along returns what has
run out. Workers themselves are known in the same way, so that the count of those that died is corrected. A Geartrain
server does all of this by itself.
"""

import secrets
import time
from typing import Any, Final, NamedTuple

from geartrain.client.gearmonkey import flow, names, scripts
from geartrain.client.gearmonkey.flow import Flow
from geartrain.errors import ClientError

HASH_SECONDS: Final = 90_000  # 25 hours
LOCK_SECONDS: Final = 10
POP_SECONDS: Final = 1  # so that jobs that were scheduled are not looked for too seldom


class Task(NamedTuple):
    """A job that a worker has."""

    function: str
    priority: str  # the queue that it came from
    number: int
    input: bytes


class Duties:
    """One worker's state; each method is a flow."""

    def __init__(self, lease: float) -> None:
        if lease <= 0:
            raise ClientError("a lease takes a time above zero")
        self.lease = lease
        self.token = secrets.token_hex(8)
        self.functions: list[str] = []
        self.needs_care = True  # a real Redis, where we look after each other
        self.task: Task | None = None

    def start(self) -> Flow[None]:
        """Come in; also after the connection broke, since the server may be another one."""
        yield from flow.load(scripts.DUE)
        information = yield flow.again("INFO")
        self.needs_care = "geartrain_version" not in information
        for function in self.functions:
            yield from self.register(function)

    def register(self, function: str) -> Flow[None]:
        """Be counted."""
        if self.needs_care:
            keys = [names.workers(function), names.count(function)]
            yield from flow.evaluate(scripts.REGISTER, keys, [self.token, self.lease])
        else:
            yield flow.once("INCR", names.count(function))

    def stop(self) -> Flow[None]:
        """Be counted no more."""
        for function in self.functions:
            if self.needs_care:
                keys = [names.workers(function), names.count(function)]
                yield from flow.evaluate(scripts.UNREGISTER, keys, [self.token])
            else:
                yield flow.once("DECR", names.count(function))

    def next(self, seconds: float) -> Flow[Task | None]:
        """A job that is to be done, if one comes within so long."""
        deadline = time.monotonic() + seconds
        while True:
            left = round(deadline - time.monotonic(), 3)
            found = yield from self._pop(POP_SECONDS if left >= POP_SECONDS else max(left, 0.001))
            if found is not None:
                break
            if time.monotonic() >= deadline:
                return None
        function, priority, number = found
        task = Task(function, priority, number, b"")
        if self.needs_care:
            yield from flow.evaluate(scripts.TAKE, [names.taken(function)], [self._entry(task), self.lease])
        fields = yield flow.again("HGETALL", names.job(function, number))
        if fields.get(b"status") not in (b"idle", b"busy"):
            # Its hash is gone, or it was queued twice and is finished: there is nothing to do.
            yield from self._let_go(task)
            return None
        self.task = task = task._replace(input=fields.get(b"input", b""))
        yield flow.again("PUBLISH", names.channel(function), f"start:{number}")
        yield flow.again("HMSET", names.job(function, number), "status", "busy")
        return task

    def update(self, dividend: float, divisor: float) -> Flow[None]:
        """Say how far the work is."""
        task = self.task
        if task is None:
            raise ClientError("there is no job to report on")
        progress = ("status:dividend", dividend, "status:divisor", divisor)
        yield flow.again("HMSET", names.job(task.function, task.number), *progress)

    def finish(self, task: Task, status: str, output: Any) -> Flow[bool]:
        """Write down what came of a job; false if it was given to another worker meanwhile."""
        try:
            if not self.needs_care:
                yield self._ending(task, status, output)
                return True
            entry = (names.taken(task.function), self._entry(task))
            for _ in range(2):  # a broken connection leaves open whether it was done, and then the entry knows
                if (yield flow.again("ZSCORE", *entry)) is None:
                    return False
                try:
                    yield self._ending(task, status, output, ("ZREM", *entry))
                    return True
                except flow.BrokenError:
                    continue
            return False
        except flow.RefusedError:
            if self.needs_care:
                raise
            return False  # a Geartrain server gave the job to another when the connection broke
        finally:
            self.task = None

    def care(self) -> Flow[None]:
        """Say that this worker is alive and at it, and return what others have lost; thrice in a lease."""
        if not self.needs_care:
            return
        task = self.task
        for function in list(self.functions):
            yield from self.register(function)
        if task is not None:
            yield from flow.evaluate(scripts.HOLD, [names.taken(task.function)], [self._entry(task), self.lease])
        for function in list(self.functions):
            queues = [names.queue(function, name) for name in (names.SCHEDULED, *names.PRIORITIES)]
            keys = [names.taken(function), names.workers(function), names.count(function), *queues]
            yield from flow.evaluate(scripts.RETURN_LOST, keys, [function])

    def _pop(self, seconds: float) -> Flow[tuple[str, str, int] | None]:
        for function in self.functions:
            now = int(time.time())
            queue = names.queue(function, names.SCHEDULED)
            due = yield from flow.evaluate(scripts.DUE, [queue], [now])
            if due:
                return function, names.SCHEDULED, int(due[1])
        queues = [names.queue(function, name) for name in names.PRIORITIES for function in self.functions]
        popped = yield flow.once("BRPOP", *queues, seconds)
        if not popped:
            return None
        function, priority = names.of_queue(popped[0])
        return function, priority, int(popped[1])

    def _ending(self, task: Task, status: str, output: Any, *extra: tuple[Any, ...]) -> flow.Command:
        """What the document says of a job that is over, all at once."""
        job, lock = names.job(task.function, task.number), names.lock(task.function, task.number)
        return flow.together(
            ("HMSET", job, "status", status, "output", output),
            ("EXPIRE", job, HASH_SECONDS),
            ("PUBLISH", names.channel(task.function), f"finish:{task.number}"),
            ("LPUSH", lock, "OK"),
            ("EXPIRE", lock, LOCK_SECONDS),
            *extra,
        )

    def _let_go(self, task: Task) -> Flow[None]:
        if self.needs_care:
            yield flow.again("ZREM", names.taken(task.function), self._entry(task))

    def _entry(self, task: Task) -> str:
        return f"{task.priority} {task.number} {self.token}"
