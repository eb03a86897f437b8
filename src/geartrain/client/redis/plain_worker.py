"""The flows of a worker as in GearMonkey's document, command by command.

They are for a Geartrain server, which puts back the jobs that a lost connection has popped. On a real Redis more is
needed: see `leased_worker`.
"""

import contextlib
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from geartrain.client.redis import flow, names, scripts
from geartrain.client.redis.flow import Flow

HASH_SECONDS: Final = 90_000  # 25 hours
LOCK_SECONDS: Final = 10
POP_SECONDS: Final = 1  # a pop does not see scheduled jobs, so it must not wait long


class TakenJob(NamedTuple):
    """A job that a worker has taken."""

    function: str
    priority: str  # the queue that it came from
    number: int
    input: bytes


class WakingJob(NamedTuple):
    """A job that ended a wait, and is not taken yet."""

    function: str
    priority: str
    id: bytes


class PlainWorker:
    """A worker of a Geartrain server; its methods are flows."""

    has_leases = False  # whether `renew` has to be run

    def tie(self) -> Flow[None]:
        """Have the server put jobs back as soon as the connection closes, instead of waiting for a report."""
        with contextlib.suppress(flow.CommandError):  # an older server does so anyway
            yield flow.repeatable("CLIENT", "GRACE", 0)

    def register(self, function: str) -> Flow[None]:
        """Register for a function."""
        yield flow.once("INCR", names.count(function))

    def unregister(self, function: str) -> Flow[None]:
        """Unregister from a function."""
        yield flow.once("DECR", names.count(function))

    def take(self, functions: Sequence[str], woken: Sequence[WakingJob], seconds: float) -> Flow[TakenJob | None]:
        """Take a job, if one arrives within this time, and publish that it started."""
        left = round(seconds, 3)
        found = yield from self._pop(functions, POP_SECONDS if left >= POP_SECONDS else max(left, 0.001))
        if found is None:
            return None
        function, priority, number = found
        fields = yield flow.repeatable("HGETALL", names.job(function, number))
        if fields.get(b"status") not in (b"idle", b"busy"):
            return None  # its hash is gone, or it was queued twice and is finished
        yield flow.repeatable("PUBLISH", names.channel(function), f"start:{number}")
        yield flow.repeatable("HMSET", names.job(function, number), "status", "busy")
        return TakenJob(function, priority, number, fields.get(b"input", b""))

    def wait(self, functions: Sequence[str], seconds: float) -> Flow[list[WakingJob]]:
        """Return at once: here `take` waits."""
        yield from ()
        return []

    def put_back(self, woken: Sequence[WakingJob]) -> Flow[None]:
        """Do nothing: `wait` returns no jobs."""
        yield from ()

    def finish(self, task: TakenJob, status: str, output: Any) -> Flow[bool]:
        """Write down how a job ended; false if it was given to another worker meanwhile."""
        job, lock = names.job(task.function, task.number), names.lock(task.function, task.number)
        try:
            yield flow.transaction(
                ("HMSET", job, "status", status, "output", output),
                ("EXPIRE", job, HASH_SECONDS),
                ("PUBLISH", names.channel(task.function), f"finish:{task.number}"),
                ("LPUSH", lock, "OK"),
                ("EXPIRE", lock, LOCK_SECONDS),
            )
        except flow.CommandError:
            return False  # the server gave it to another worker when the connection broke
        return True

    def give_back(self, task: TakenJob) -> Flow[None]:
        """Do nothing: the server puts the job back when the connection closes."""
        yield from ()

    def renew(self, functions: Sequence[str], tasks: Sequence[TakenJob]) -> Flow[list[TakenJob]]:
        """Do nothing: the server notices lost connections."""
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
