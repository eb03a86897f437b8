"""Commands that list queues: LRANGE, ZCARD, ZSCORE, ZRANGE and ZRANGEBYSCORE.

A few thousand jobs are listed at once. For more, every job of the server is looked at in steps, with other peers' turns
between them: jobs that come or go meanwhile may be missing or listed.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from geartrain.doors.gearmonkey import blocked_pops, keys
from geartrain.doors.long_answer import StreamedAnswer
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import QUEUED, SCHEDULED
from geartrain.engine.queue import JobQueue
from geartrain.model import Priority
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection

_AT_ONCE: Final = 10_000  # jobs that a command looks at without a pause
_MOST_IN_TRANSACTION: Final = 50_000  # jobs that all commands of a transaction look at
_RUN: Final = 4096  # entries that are sorted at once

Entry = tuple[float, int, bytes]  # what is sorted: time, number and id; one of the last two decides between equal times
Range = Callable[[int], range]  # positions, of a list of this length


class JobListing(NamedTuple):
    """Which jobs a command lists, in which order, and what it replies for each."""

    has: Callable[[LiveJob], bool]
    entry: Callable[[LiveJob], Entry]
    positions: Range
    with_times: bool = False


def lrange(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """LRANGE: the ids of queued jobs, the last one first."""
    key = keys.expect_list(arguments[1])
    positions = _positions(arguments)
    function = connection.engine.functions.get(key.function)
    if key.kind == keys.LOCK:
        ended: list[resp.Value] = [blocked_pops.ENDED] if connection.jobs.has_ended(key) else []
        return [ended[place] for place in positions(len(ended))]
    if function is None:
        return []
    priority = keys.priority(key)
    queue = function.queues[priority]
    cost = _cost(queue, positions(queue.size))
    if _at_once(connection, cost):
        return _range_of(queue, positions(queue.size))

    def has(job: LiveJob) -> bool:
        return job.function == key.function and job.priority == priority and job.state is QUEUED

    return _list_in_steps(connection, JobListing(has, _last_first, positions))


def zcard(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """ZCARD: the number of scheduled jobs."""
    key = keys.scheduled(arguments[1])
    function = connection.engine.functions.get(key.function)
    marked = connection.gearmonkey.scheduled
    distant = connection.gearmonkey.counts.distant
    elsewhere = distant.scheduled(key.function) if distant is not None else 0
    if function is None or not marked:
        return elsewhere + (function.scheduled if function is not None else 0)
    queue = function.queues[Priority.HIGH]
    if _at_once(connection, queue.size):
        return elsewhere + function.scheduled + sum(job.handle in marked for job in queue)
    has = _is_scheduled(connection, key.function)
    connection.answer_in_steps(StreamedAnswer(_count_in_steps(connection, has, elsewhere)))
    return connection.NO_REPLY


def zscore(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """ZSCORE: the time of a scheduled job."""
    key = keys.scheduled(arguments[1])
    number = resp.number(arguments[2])
    job = connection.engine.jobs.get(number) if number is not None and number > 0 else None
    return job.run_at if job is not None and _is_scheduled(connection, key.function)(job) else None


def zrange(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """ZRANGE by rank: scheduled jobs, the earliest first."""
    key = keys.scheduled(arguments[1])
    positions = _positions(arguments)
    with_times = [word.upper() for word in arguments[4:]] == [b"WITHSCORES"]
    if arguments[4:] and not with_times:
        raise keys.SYNTAX
    has = _is_scheduled(connection, key.function)
    return _list_scheduled(connection, key, JobListing(has, _earliest_first, positions, with_times))


def zrangebyscore(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """ZRANGEBYSCORE: the same by time."""
    key = keys.scheduled(arguments[1])
    low, high = keys.time_bound(arguments[2]), keys.time_bound(arguments[3])
    options = [word.upper() for word in arguments[4:]]
    with_times = b"WITHSCORES" in options
    if with_times:
        options.remove(b"WITHSCORES")
    offset, count = 0, -1
    if options:
        if len(options) != 3 or options[0] != b"LIMIT":
            raise keys.SYNTAX
        offset, count = max(keys.integer(options[1]), 0), keys.integer(options[2])
    is_scheduled = _is_scheduled(connection, key.function)

    def has(job: LiveJob) -> bool:
        return low <= job.run_at <= high and is_scheduled(job)

    def positions(length: int) -> range:
        return range(min(offset, length), min(offset + count, length) if count >= 0 else length)

    return _list_scheduled(connection, key, JobListing(has, _earliest_first, positions, with_times))


def _positions(arguments: list[bytes]) -> Range:
    """Redis' ranges: both ends count, and negative ones count from the end."""
    first, last = keys.integer(arguments[2]), keys.integer(arguments[3])

    def positions(length: int) -> range:
        begin = max(first + length, 0) if first < 0 else first
        end = last + length if last < 0 else last
        return range(min(begin, length), min(max(end + 1, 0), length))

    return positions


def _cost(queue: JobQueue, positions: range) -> int:
    """How many jobs of a queue have to be looked at for these positions, which count from its end."""
    if not positions:
        return 0
    return min(positions.stop, queue.size - positions.start) if queue.is_linked else queue.size


def _range_of(queue: JobQueue, positions: range) -> list[resp.Value]:
    """The ids of jobs at these positions, found from the end that is nearer."""
    start, stop, size = positions.start, positions.stop, queue.size
    if not positions:
        return []
    if stop <= size - start:
        return [b"%d" % job.id for job in itertools.islice(reversed(queue), start, stop)]
    ids: list[resp.Value] = [b"%d" % job.id for job in itertools.islice(queue, size - stop, size - start)]
    ids.reverse()
    return ids


def _is_scheduled(connection: "GearmonkeyConnection", function: bytes) -> Callable[[LiveJob], bool]:
    """Whether a job of the function is scheduled, or was until it was due, and is queued."""
    marked = connection.gearmonkey.scheduled

    def has(job: LiveJob) -> bool:
        if job.function != function:
            return False
        return job.state is SCHEDULED or (
            job.state is QUEUED and job.priority == Priority.HIGH and job.handle in marked
        )

    return has


def _earliest_first(job: LiveJob) -> Entry:
    """As in Redis, ids are texts: of equal times, the first text comes first."""
    return (job.run_at, 0, b"%d" % job.id)


def _last_first(job: LiveJob) -> Entry:
    return (-job.run_at, -job.id, b"%d" % job.id)


def _list_scheduled(connection: "GearmonkeyConnection", key: keys.Key, listing: JobListing) -> resp.Value:
    function = connection.engine.functions.get(key.function)
    if function is None:
        return []
    due = function.queues[Priority.HIGH] if connection.gearmonkey.scheduled else None
    cost = (len(connection.engine.schedule) if function.scheduled else 0) + (due.size if due is not None else 0)
    if not _at_once(connection, cost):
        return _list_in_steps(connection, listing)
    entries = sorted({listing.entry(job) for job in _candidates(connection, function, due) if listing.has(job)})
    positions = listing.positions(len(entries))
    return _values(connection, entries[positions.start : positions.stop], listing.with_times)


def _candidates(connection: "GearmonkeyConnection", function: Function, due: JobQueue | None) -> Iterable[LiveJob]:
    scheduled = (job for _, job in connection.engine.schedule.entries()) if function.scheduled else ()
    return itertools.chain(scheduled, due if due is not None else ())


def _values(connection: "GearmonkeyConnection", entries: list[Entry], with_times: bool) -> resp.Value:
    if not with_times:
        return [number for _, _, number in entries]
    if connection.version == 2:
        return [part for time, _, number in entries for part in (number, time)]
    return [[number, time] for time, _, number in entries]


def _at_once(connection: "GearmonkeyConnection", cost: int) -> bool:
    """Whether so many jobs may be looked at without a pause. A transaction has no pauses, but a bound."""
    if not connection.in_transaction:
        return cost <= _AT_ONCE
    connection.jobs_listed += cost
    if connection.jobs_listed > _MOST_IN_TRANSACTION:
        raise keys.refusal(f"a transaction lists at most {_MOST_IN_TRANSACTION} jobs; list them outside of one")
    return True


def _list_in_steps(connection: "GearmonkeyConnection", listing: JobListing) -> resp.Value:
    connection.answer_in_steps(StreamedAnswer(_listed_in_steps(connection, listing)))
    return connection.NO_REPLY


def _listed_in_steps(connection: "GearmonkeyConnection", listing: JobListing) -> Iterator[bytes]:
    """The encoded reply: its length, which comes first, is known when all jobs have been looked at.

    Sorting a million entries takes a second, so they are sorted in runs, which are merged while they are sent.
    """
    runs: list[list[Entry]] = [[]]
    for job in connection.engine.jobs.walk():
        if listing.has(job):
            runs[-1].append(listing.entry(job))
            if len(runs[-1]) == _RUN:
                runs[-1].sort()
                runs.append([])
        yield b""
    runs[-1].sort()
    version, with_times = connection.version, listing.with_times
    positions = listing.positions(sum(map(len, runs)))
    yield b"*%d\r\n" % (len(positions) * (2 if with_times and version == 2 else 1))
    for place, (time, _, number) in zip(range(positions.stop), heapq.merge(*runs), strict=False):
        if place < positions.start:
            yield b""
        elif not with_times:
            yield resp.encode(number, version)
        else:
            pair = resp.encode(number, version) + resp.encode(time, version)
            yield pair if version == 2 else b"*2\r\n" + pair


def _count_in_steps(
    connection: "GearmonkeyConnection", has: Callable[[LiveJob], bool], elsewhere: int
) -> Iterator[bytes]:
    count = elsewhere
    for job in connection.engine.jobs.walk():
        count += has(job)
        yield b""
    yield resp.encode(count, connection.version)
