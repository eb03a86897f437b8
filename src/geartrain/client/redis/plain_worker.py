"""The flows of a worker at a Geartrain server, with as few commands as it needs.

The server puts back the jobs that a lost connection has popped. A popped job is busy, and the server publishes its
start and its end, so a worker writes only progress and results. On a real Redis more is needed: see `leased_worker`.
"""

import contextlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from geartrain.client.redis import flow, names
from geartrain.client.redis.flow import Flow

HASH_SECONDS: Final = 90_000  # 25 hours
LOCK_SECONDS: Final = 10
POP_SECONDS: Final = 1  # a pop of a real Redis does not see scheduled jobs, so it must not wait long

_OPTIONS: Final = (("GRACE", 0), ("INPUT", "ON"))  # of the connection that pops
_WITHOUT_INPUT: Final = 2  # parts of the reply to a pop: the queue and the id


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
        """Have the server put jobs back as soon as the connection closes, and reply to pops with the input too."""
        for option in _OPTIONS:
            with contextlib.suppress(flow.CommandError):  # an older server puts back at once, and sends no input
                yield flow.repeatable("CLIENT", *option)

    def register(self, function: str) -> Flow[None]:
        """Register for a function."""
        yield flow.once("INCR", names.count(function))

    def unregister(self, function: str) -> Flow[None]:
        """Unregister from a function."""
        yield flow.once("DECR", names.count(function))

    def take(self, functions: Sequence[str], woken: Sequence[WakingJob], seconds: float) -> Flow[TakenJob | None]:
        """Take a job, if one arrives within this time. The server starts it, and pops due jobs first."""
        left = round(seconds, 3)
        queues = [names.queue(function, name) for name in names.PRIORITIES for function in functions]
        popped = yield flow.blocking("BRPOP", *queues, POP_SECONDS if left >= POP_SECONDS else max(left, 0.001))
        if not popped:
            return None
        function, priority = names.of_queue(popped[0])
        number = int(popped[1])
        if len(popped) > _WITHOUT_INPUT:
            return TakenJob(function, priority, number, popped[2])
        fields = yield flow.repeatable("HGETALL", names.job(function, number))
        if fields.get(b"status") != b"busy":
            return None  # it was cancelled meanwhile
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
        try:
            yield flow.once("HMSET", names.job(task.function, task.number), "status", status, "output", output)
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
