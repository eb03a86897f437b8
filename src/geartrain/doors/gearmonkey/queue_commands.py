"""Commands on `queue:{FN}:{PRIO}` and `lock:{FN}:{ID}`: pushing submits, popping claims.

A queue has one order here, so both ends return the next job.
"""

import itertools
import math
from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import blocked_pops, keys, written_fields
from geartrain.doors.gearmonkey.finished_jobs import KEPT_FOR
from geartrain.doors.gearmonkey.written_fields import DIVIDEND, DIVISOR, INPUT, STATUS, Fields
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.errors import RequestError
from geartrain.model import Priority
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection

DOOR: Final = "gearmonkey"
_USUAL_FIELDS: Final = 2  # of a prepared hash: the status and the input
_EARLIEST: Final = 0.001  # epoch seconds; to the engine 0 means now
_LATEST: Final = 2.0**40
_JUST_BEFORE: Final = 1e-6
_MOST_SEARCHED: Final = 1000  # scheduled jobs that are looked at for a worker whose clock is ahead of ours
_MOST_POPPED: Final = 10_000  # jobs, by one command: it runs without a pause


def lpush(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """LPUSH: queue jobs after the others. A push to a lock is ignored: the end of its job is known."""
    return _push(connection, arguments, ahead=False)


def rpush(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """RPUSH: queue jobs before the others."""
    return _push(connection, arguments, ahead=True)


def pop(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """LPOP, RPOP: the id of the next job, or of several."""
    key = keys.expect_list(arguments[1])
    if len(arguments) == 2:
        return blocked_pops.take(connection, key)
    count = keys.integer(arguments[2])
    if count < 0:
        raise keys.refusal("value is out of range, must be positive")
    taken: list[resp.Value] = []
    count = min(count, _MOST_POPPED)
    while len(taken) < count and (found := blocked_pops.take(connection, key)) is not None:
        taken.append(found)
        if key.kind == keys.LOCK:
            break
    return taken or resp.NULL_ARRAY


def blocking_pop(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """BLPOP, BRPOP: the id of the next job of the first queue that has one, or wait."""
    seconds = _timeout(arguments[-1])
    wanted = [keys.expect_list(raw) for raw in arguments[1:-1]]
    for key in wanted:
        found = blocked_pops.reply(connection, key)
        if found is not None:
            return found
    if connection.in_transaction:
        return resp.NULL_ARRAY
    connection.block_pop(wanted, seconds)
    return connection.NO_REPLY


def llen(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """LLEN: the number of queued jobs; of a lock, whether its job has ended."""
    key = keys.expect_list(arguments[1])
    if key.kind == keys.LOCK:
        return int(connection.jobs.has_ended(key))
    function, priority = _function(connection, key), keys.priority(key)
    distant = connection.gearmonkey.counts.distant
    elsewhere = distant.queued(key.function, priority) if distant is not None else 0
    return elsewhere + (function.queues[priority].size if function is not None else 0)


def lrem(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """LREM: cancel a queued job."""
    key = keys.expect(arguments[1], keys.QUEUE)
    keys.integer(arguments[2])
    return connection.gearmonkey.removals.remove(connection, key, arguments[3:], keys.priority(key))


def zadd(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """ZADD: schedule jobs."""
    key = keys.scheduled(arguments[1])
    rest = arguments[2:]
    while rest and rest[0].upper() in (b"NX", b"CH"):
        rest = rest[1:]
    if not rest or len(rest) % 2:
        raise keys.SYNTAX
    times = [_time(score) for score in rest[0::2]]
    added = 0
    for number, when in zip(rest[1::2], times, strict=True):
        added += _submit(connection, key, number, int(Priority.HIGH), when)
    return added


def zrem(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """ZREM: cancel scheduled jobs."""
    key = keys.scheduled(arguments[1])
    return connection.gearmonkey.removals.remove(connection, key, arguments[2:], None)


def claim_due(connection: "GearmonkeyConnection", key: keys.Key, now: bytes) -> LiveJob | None:
    """What the document's script does: claim the first job whose time is not after the worker's date.

    By our own clock that job is queued already, before later ones, or still scheduled.
    """
    if key.kind != keys.QUEUE or key.last != keys.SCHEDULED:
        raise keys.WRONG_TYPE
    high = keys.time_bound(now)
    function = _function(connection, key)
    first = function.queues[Priority.HIGH].first() if function is not None else None
    if first is not None and first.handle in connection.gearmonkey.scheduled and first.run_at <= high:
        return blocked_pops.claim(connection, key.function, int(Priority.HIGH))
    if function is None or not function.scheduled or high <= connection.engine.now:
        return None
    early = _first_scheduled(connection, key.function, high)
    return blocked_pops.claim_scheduled(connection, early) if early is not None else None


def _first_scheduled(connection: "GearmonkeyConnection", function: bytes, high: float) -> LiveJob | None:
    """The first scheduled job of a function, up to a time, if it is among the next ones of all functions.

    Of several jobs with the same time this is the one whose id is first as a text, as in Redis.
    """
    first: LiveJob | None = None
    for when, job in itertools.islice(connection.engine.schedule.soonest_first(), _MOST_SEARCHED):
        if when > high or (first is not None and when > first.run_at):
            break
        if job.function == function and (first is None or b"%d" % job.id < b"%d" % first.id):
            first = job
    return first


def _push(connection: "GearmonkeyConnection", arguments: list[bytes], ahead: bool) -> resp.Value:
    key = keys.expect_list(arguments[1])
    if key.kind == keys.LOCK:
        connection.end_waiting(key)
        return len(arguments) - 2
    priority = keys.priority(key)
    function = connection.engine.function(key.function)
    length = function.queues[priority].size
    for number in arguments[2:]:
        first = function.queues[priority].first() if ahead else None
        run_at = first.run_at - _JUST_BEFORE if first is not None else 0.0
        length += _submit(connection, key, number, priority, run_at)
    return length


def _submit(connection: "GearmonkeyConnection", key: keys.Key, number: bytes, priority: int, run_at: float) -> bool:
    """Submit a prepared job; false if it was submitted before, which is not an error."""
    job_key = keys.parse(b"job:%b:%b" % (key.function, number))
    if connection.jobs.live(job_key) is not None:
        connection.must_be_durable = True
        return False
    prepared = connection.jobs.prepared.get(job_key)
    if prepared is None or not prepared.fields:
        raise keys.refusal(
            f"job {job_key.id} of {keys.shown(key.function)} cannot be queued: INCR uid:{keys.text(key.function)} "
            f"and HMSET job:{keys.text(key.function)}:{{ID}} come first, and an id is for one job"
        )
    scheduled = key.last == keys.SCHEDULED
    handle = connection.engine.handle_prefix + number
    _move_fields(connection, prepared.fields, job_key.id)
    if scheduled:
        connection.gearmonkey.scheduled.add(handle)
    connection.jobs.prepared.pop(job_key.id)
    try:
        connection.engine.submit(
            key.function, b"", prepared.fields.get(b"input", b""), priority, background=True, run_at=run_at,
            door=DOOR, reserved_id=job_key.id, keep_for=KEPT_FOR,
        )  # fmt: skip
    except RequestError as error:
        connection.gearmonkey.scheduled.discard(handle)
        connection.jobs.written.remove(job_key.id)
        raise keys.refused_request(error) from None
    connection.must_be_durable = True
    return True


def _move_fields(connection: "GearmonkeyConnection", fields: Fields, number: int) -> None:
    """Keep the fields of a prepared hash that the engine does not have."""
    if len(fields) == _USUAL_FIELDS and INPUT in fields and STATUS in fields:
        return
    written = connection.jobs.written
    own = written_fields.own_fields(fields)
    if own:
        written.write_own(number, own, durable=True)
    progress = {name: value for name, value in fields.items() if name in (DIVIDEND, DIVISOR)}
    if progress:
        written.report(number, progress)


def _function(connection: "GearmonkeyConnection", key: keys.Key) -> Function | None:
    return connection.engine.functions.get(key.function)


def _time(score: bytes) -> float:
    """When a job is to run. Unlike Redis, a negative time is refused: such a job would never run."""
    when = keys.number(score)
    if not 0 <= when <= _LATEST:
        raise keys.refusal(f"{keys.shown(score)} is no time in seconds since 1970")
    return max(when, _EARLIEST)


def _timeout(text: bytes) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if math.isnan(seconds) or seconds > 2**53:
        raise keys.refusal("timeout is not a float or out of range")
    if seconds < 0:
        raise keys.refusal("timeout is negative")
    return seconds
