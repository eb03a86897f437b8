"""What a client does, command by command as in the document."""

import time
from collections.abc import Callable
from typing import Any, Final

from geartrain.client.redis import flow, job, names, plain_worker, scripts
from geartrain.client.redis.flow import Flow
from geartrain.client.redis.job import Job, Options
from geartrain.errors import ClientError, JobTimeoutError, NoWorkersError, UncertainError

# A wait is cut into pieces, and the hash looked at in between: the lock that a worker leaves stays only 10 seconds, and
# wakes one client only. Each piece is shorter than what a socket waits for an answer.
LONGEST_PIECE: Final = 5.0


def submit(
    function: str,
    payload: Any,
    priority: str,
    options: Options,
    scheduled: float | None,
    named: Callable[[int], None] = lambda number: None,
) -> Flow[int]:
    """Put a job into its queue; returns its id, which `named` hears before anybody else can."""
    check(function, priority, scheduled)
    if Options.ROLLCALL in options:
        yield from roll_call(function)
    number = int((yield flow.again("INCR", names.uid(function))))
    named(number)
    yield flow.again("HMSET", names.job(function, number), "status", "idle", "input", payload)
    yield flow.again("PUBLISH", names.channel(function), f"create:{number}")
    queue = names.queue(function, priority)
    if priority == names.SCHEDULED:
        yield flow.again("ZADD", queue, scheduled, number)
        return number
    try:
        yield flow.once("LPUSH", queue, number)
    except flow.BrokenError as broken:
        raise UncertainError(f"job {number} of {function!r} may be queued or not: {broken}", number) from broken
    return number


def check(function: str, priority: str, scheduled: float | None) -> None:
    """Refuse what would be lost in silence."""
    if not function:
        raise ClientError("a function has a name")
    if priority not in (*names.PRIORITIES, names.SCHEDULED):
        raise ClientError(f"{priority!r} is no priority; there are high, normal, low and scheduled")
    if (priority == names.SCHEDULED) != (scheduled is not None):
        raise ClientError("the priority 'scheduled' and a time go together")
    if scheduled is not None and not 0 <= scheduled < float("inf"):
        raise ClientError(f"{scheduled!r} is no time in seconds since 1970: the job would never run")


def roll_call(function: str) -> Flow[None]:
    """Insist on a worker."""
    answer = yield flow.again("GET", names.count(function))
    try:
        present = int(answer) if answer is not None else 0
    except ValueError:
        present = 0
    if present < 1:
        raise NoWorkersError(f"nobody offers {function!r}; nothing was submitted")


def get(function: str, number: int) -> Flow[Job]:
    """The state of a job."""
    return job.of_hash((yield flow.again("HGETALL", names.job(function, number))))


def look(function: str, number: int) -> Flow[Job]:
    """The state of a job, without its input, which the client knows and which may be large."""
    fields = ("status", "output", "status:dividend", "status:divisor")
    values = yield flow.again("HMGET", names.job(function, number), *fields)
    present = {name.encode(): value for name, value in zip(fields, values, strict=True) if value is not None}
    return job.of_hash(present)


def cancel(function: str, number: int) -> Flow[bool]:
    """Take a job out of its queue, and end it as the document ends jobs; false if it was in none."""
    keys = [names.queue(function, name) for name in (names.SCHEDULED, *names.PRIORITIES)]
    keys += [names.job(function, number), names.channel(function), names.lock(function, number)]
    words = [number, "it was cancelled", plain_worker.HASH_SECONDS, plain_worker.LOCK_SECONDS]
    return bool((yield from flow.evaluate(scripts.CANCEL, keys, words)))


def cancel_at_server(function: str, number: int) -> Flow[bool]:
    """The same at a Geartrain server, which ends what is taken out of a queue."""
    removed = yield flow.again("ZREM", names.queue(function, names.SCHEDULED), number)
    for priority in names.PRIORITIES:
        removed += yield flow.again("LREM", names.queue(function, priority), 0, number)
    return bool(removed)


def wait(function: str, number: int, timeout: float) -> Flow[None]:
    """Wait until a job is finished; 0 means for ever."""
    deadline = time.monotonic() + timeout if timeout else float("inf")
    while True:
        piece = min(LONGEST_PIECE, max(deadline - time.monotonic(), 0.01))
        try:
            woken = yield flow.once("BRPOP", names.lock(function, number), _seconds(piece))
        except flow.BrokenError:
            woken = None  # it may have been popped for us; the hash knows
        if woken is not None or (yield from get(function, number)).finished:
            return
        if time.monotonic() >= deadline:
            raise JobTimeoutError(
                f"job {number} of {function!r} was not finished within {timeout:g} seconds; it goes on", number
            )


def _seconds(piece: float) -> float | int:
    """Old servers take whole seconds only."""
    return int(piece) if piece >= 1 else piece
