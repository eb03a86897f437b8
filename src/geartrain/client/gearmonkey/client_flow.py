"""What a client does, command by command as in the document."""

import time
from typing import Any, Final

from geartrain.client.gearmonkey import flow, job, names
from geartrain.client.gearmonkey.flow import Flow
from geartrain.client.gearmonkey.job import Job, Options
from geartrain.errors import ClientError, JobTimeoutError, NoWorkersError, UncertainError

# A wait is cut into pieces, and the hash looked at in between: the lock that a worker leaves stays only 10 seconds, and
# wakes one client only. Each piece is shorter than what a socket waits for an answer.
LONGEST_PIECE: Final = 5.0


def submit(function: str, payload: Any, priority: str, options: Options, scheduled: float | None) -> Flow[int]:
    """Put a job into its queue; returns its id."""
    check(function, priority, scheduled)
    if Options.ROLLCALL in options:
        yield from roll_call(function)
    number = int((yield flow.again("INCR", names.uid(function))))
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
