"""The flows of a client, command by command as in GearMonkey's document."""

import time
from collections.abc import Callable
from typing import Any, Final

from geartrain.client.redis import flow, job, names, plain_worker, scripts
from geartrain.client.redis.flow import Flow
from geartrain.client.redis.job import Job
from geartrain.errors import ClientError, JobTimeoutError, NoWorkersError, UncertainError

# A wait is cut into pieces, and the job's hash read in between: the lock that a worker leaves expires after 10 seconds,
# and wakes one client only. Each piece is shorter than the time that a connection waits for a reply.
LONGEST_PIECE: Final = 5.0


def no_name(number: int) -> None:
    """Nobody wants to know the id of a job before it is submitted."""


def submit(
    function: str, payload: Any, priority: str, scheduled: float | None, named: Callable[[int], None] = no_name
) -> Flow[int]:
    """Put a job into its queue and return its id. `named` is called with the id before a worker can see the job."""
    number = int((yield flow.repeatable("INCR", names.uid(function))))
    named(number)
    yield flow.repeatable("HMSET", names.job(function, number), "status", "idle", "input", payload)
    yield flow.repeatable("PUBLISH", names.channel(function), f"create:{number}")
    queue = names.queue(function, priority)
    if priority == names.SCHEDULED:
        yield flow.repeatable("ZADD", queue, scheduled, number)
        return number
    try:
        yield flow.once("LPUSH", queue, number)
    except flow.BrokenError as broken:
        raise UncertainError(f"job {number} of {function!r} may be queued or not: {broken}", number) from broken
    return number


def check(function: str, priority: str, scheduled: float | None) -> None:
    """Raise for what Redis would accept and no worker would ever run."""
    if not function:
        raise ClientError("the name of a function is not empty")
    if priority not in (*names.PRIORITIES, names.SCHEDULED):
        raise ClientError(f"{priority!r} is no priority; use high, normal, low or scheduled")
    if (priority == names.SCHEDULED) != (scheduled is not None):
        raise ClientError("the priority 'scheduled' needs a time, and a time needs that priority")
    if scheduled is not None and not 0 <= scheduled < float("inf"):
        raise ClientError(f"{scheduled!r} is no time in seconds since 1970: the job would never run")


def roll_call(function: str) -> Flow[None]:
    """Raise unless a worker is registered for this function."""
    answer = yield flow.repeatable("GET", names.count(function))
    try:
        present = int(answer) if answer is not None else 0
    except ValueError:
        present = 0
    if present < 1:
        raise NoWorkersError(f"no worker is registered for {function!r}; the job was not submitted")


def get(function: str, number: int) -> Flow[Job]:
    """The state of a job."""
    return job.of_hash((yield flow.repeatable("HGETALL", names.job(function, number))))


def look(function: str, number: int) -> Flow[Job]:
    """The state of a job without its input, which may be large."""
    fields = ("status", "output", "status:dividend", "status:divisor")
    values = yield flow.repeatable("HMGET", names.job(function, number), *fields)
    present = {name.encode(): value for name, value in zip(fields, values, strict=True) if value is not None}
    return job.of_hash(present)


def cancel(function: str, number: int) -> Flow[bool]:
    """Remove a job from its queue and end it as the document ends jobs; false if it was in no queue."""
    keys = [names.queue(function, name) for name in (names.SCHEDULED, *names.PRIORITIES)]
    keys += [names.job(function, number), names.channel(function), names.lock(function, number)]
    arguments = [number, "it was cancelled", plain_worker.HASH_SECONDS, plain_worker.LOCK_SECONDS]
    return bool((yield from flow.evaluate(scripts.CANCEL, keys, arguments)))


def cancel_at_server(function: str, number: int) -> Flow[bool]:
    """The same at a Geartrain server, which ends a job that is removed from its queue."""
    removed = yield flow.repeatable("ZREM", names.queue(function, names.SCHEDULED), number)
    for priority in names.PRIORITIES:
        removed += yield flow.repeatable("LREM", names.queue(function, priority), 0, number)
    return bool(removed)


def wait(function: str, number: int, timeout: float) -> Flow[None]:
    """Wait until a job has finished; a timeout of 0 is no limit."""
    deadline = time.monotonic() + timeout if timeout else float("inf")
    while True:
        piece = min(LONGEST_PIECE, max(deadline - time.monotonic(), 0.01))
        try:
            woken = yield flow.blocking("BRPOP", names.lock(function, number), _seconds(piece))
        except flow.BrokenError:
            woken = None  # the pop may have succeeded: read the hash
        if woken is not None or (yield from get(function, number)).finished:
            return
        if time.monotonic() >= deadline:
            raise JobTimeoutError(
                f"job {number} of {function!r} did not finish within {timeout:g} seconds; it goes on", number
            )


def _seconds(piece: float) -> float | int:
    """Old servers take whole seconds only."""
    return int(piece) if piece >= 1 else piece
