"""What a worker does by the document, command by command.

Like this our workers speak to a Geartrain server, which by itself returns what a lost connection has popped. On a real
Redis more is needed: see `custody`.
"""

import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from geartrain.client.redis import flow, names, scripts
from geartrain.client.redis.flow import Flow

HASH_SECONDS: Final = 90_000  # 25 hours
LOCK_SECONDS: Final = 10
POP_SECONDS: Final = 1  # so that jobs that were scheduled are not looked for too seldom


class Task(NamedTuple):
    """A job that a worker has."""

    function: str
    priority: str  # the queue that it came from
    number: int
    input: bytes


class Woken(NamedTuple):
    """A job that has ended a wait; it is not taken yet."""

    function: str
    priority: str
    id: bytes


class PlainWorker:
    """The document's way to be a worker; each method is a flow."""

    needs_care = False  # whether `care` has to be called now and then

    def register(self, function: str) -> Flow[None]:
        """Be counted."""
        yield flow.once("INCR", names.count(function))

    def unregister(self, function: str) -> Flow[None]:
        """Be counted no more."""
        yield flow.once("DECR", names.count(function))

    def take(self, functions: Sequence[str], woken: Sequence[Woken], seconds: float) -> Flow[Task | None]:
        """A job that is to be done, if there is one or comes within so long; it is told to be started."""
        left = round(seconds, 3)
        found = yield from self._pop(functions, POP_SECONDS if left >= POP_SECONDS else max(left, 0.001))
        if found is None:
            return None
        function, priority, number = found
        fields = yield flow.again("HGETALL", names.job(function, number))
        if fields.get(b"status") not in (b"idle", b"busy"):
            return None  # its hash is gone, or it was queued twice and is finished: there is nothing to do
        yield flow.again("PUBLISH", names.channel(function), f"start:{number}")
        yield flow.again("HMSET", names.job(function, number), "status", "busy")
        return Task(function, priority, number, fields.get(b"input", b""))

    def wait(self, functions: Sequence[str], seconds: float) -> Flow[list[Woken]]:
        """Wait for a job, without taking it; those that have come. Here taking waits by itself."""
        yield from ()
        return []

    def put_back(self, woken: Sequence[Woken]) -> Flow[None]:
        """Have nothing to do with jobs that have come."""
        yield from ()

    def finish(self, task: Task, status: str, output: Any) -> Flow[bool]:
        """Write down what came of a job; false if it was given to another worker meanwhile."""
        job, lock = names.job(task.function, task.number), names.lock(task.function, task.number)
        try:
            yield flow.together(
                ("HMSET", job, "status", status, "output", output),
                ("EXPIRE", job, HASH_SECONDS),
                ("PUBLISH", names.channel(task.function), f"finish:{task.number}"),
                ("LPUSH", lock, "OK"),
                ("EXPIRE", lock, LOCK_SECONDS),
            )
        except flow.RefusedError:
            return False  # the server gave it to another when the connection broke
        return True

    def give_back(self, task: Task) -> Flow[None]:
        """Let another worker have a job: the server does so when it sees the connection close."""
        yield from ()

    def care(self, functions: Sequence[str], tasks: Sequence[Task]) -> Flow[list[Task]]:
        """Nothing is lost that the server does not know of."""
        yield from ()
        return []

    def _pop(self, functions: Sequence[str], seconds: float) -> Flow[tuple[str, str, int] | None]:
        for function in functions:
            now = int(time.time())
            due = yield from flow.evaluate(scripts.DUE, [names.queue(function, names.SCHEDULED)], [now])
            if due:
                return function, names.SCHEDULED, int(due[1])
        queues = [names.queue(function, name) for name in names.PRIORITIES for function in functions]
        popped = yield flow.once("BRPOP", *queues, seconds)
        if not popped:
            return None
        function, priority = names.of_queue(popped[0])
        return function, priority, int(popped[1])
