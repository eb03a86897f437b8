"""Commands on keys of every kind: EXISTS, TYPE, DEL, EXPIRE, KEYS and the like."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import finished_jobs, glob, keys
from geartrain.doors.long_answer import StreamedAnswer
from geartrain.rights import READ
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection

_TYPES: Final = {
    keys.UID: b"string",
    keys.COUNT: b"string",
    keys.JOB: b"hash",
    keys.QUEUE: b"list",
    keys.LOCK: b"list",
}
_MOST_LISTED: Final = 10_000  # keys in one reply
_LOCK_SECONDS: Final = 10
_MILLISECONDS: Final = 1000
_NO_KEY, _NO_EXPIRY = -2, -1


def exists(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """EXISTS: how many of them."""
    return sum(_exists(connection, keys.parse(raw)) for raw in arguments[1:])


def type_(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """TYPE."""
    key = keys.parse(arguments[1])
    if not _exists(connection, key):
        return resp.SimpleString(b"none")
    return resp.SimpleString(b"zset" if key.last == keys.SCHEDULED else _TYPES[key.kind])


def delete(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """DEL, UNLINK: a live job is cancelled."""
    parsed = [keys.parse(raw) for raw in arguments[1:]]
    for key in parsed:
        if key.kind in (keys.QUEUE, keys.UID):
            raise keys.refusal(f"{keys.shown(key.raw)} cannot be deleted: cancel its jobs one by one (DEL job:...)")
    deleted = sum(_delete(connection, key) for key in parsed)
    connection.audit(keys.text(arguments[0]).lower(), words=arguments[1:])
    return deleted


def expire(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """EXPIRE: delete the hash of a finished job after a time. Live jobs stay."""
    return _expire(connection, arguments, 1)


def pexpire(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """PEXPIRE: the same in milliseconds."""
    return _expire(connection, arguments, _MILLISECONDS)


def ttl(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """TTL."""
    return _time_left(connection, arguments[1], 1)


def pttl(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """PTTL: the same in milliseconds."""
    return _time_left(connection, arguments[1], _MILLISECONDS)


def persist(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """PERSIST: 0, since no finished job stays for ever."""
    keys.parse(arguments[1])
    return 0


def list_keys(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """KEYS: of functions and live jobs, up to a limit."""
    return _list(connection, arguments[1], b"", b"*%d\r\n")


def scan(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """SCAN: the same in one step."""
    keys.integer(arguments[1])
    options = arguments[2:]
    if len(options) % 2:
        raise keys.SYNTAX
    named = {name.upper(): value for name, value in zip(options[0::2], options[1::2], strict=True)}
    type_name = named.get(b"TYPE", b"").lower()
    return _list(connection, named.get(b"MATCH", b"*"), type_name, b"*2\r\n$1\r\n0\r\n*%d\r\n")


def dbsize(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """DBSIZE: the number of live jobs."""
    connection.engine.require_everywhere(READ)
    return len(connection.engine.jobs)


def fingerprint(connection: "GearmonkeyConnection", raw: bytes) -> object:
    """A value that changes whenever the key's value does, for WATCH."""
    key = keys.parse(raw)
    if key.kind == keys.UID:
        return connection.engine.next_id
    if key.kind == keys.COUNT:
        return connection.gearmonkey.counts.value(key.function)
    if key.kind == keys.JOB:
        return connection.jobs.fingerprint(key)
    if key.kind == keys.LOCK:
        return connection.jobs.has_ended(key)
    home = connection.engine.functions.get(key.function)
    if home is None or key.last == keys.SCHEDULED:
        return home.scheduled if home is not None else 0
    queue = home.queues[keys.PRIORITIES[key.last]]
    return (queue.size, queue.first())


def _exists(connection: "GearmonkeyConnection", key: keys.Key) -> bool:
    if key.kind == keys.JOB:
        return bool(connection.jobs.fields(key))
    if key.kind == keys.LOCK:
        return connection.jobs.has_ended(key)
    if key.kind == keys.COUNT:
        return connection.gearmonkey.counts.exists(key.function)
    if key.kind != keys.QUEUE:
        return key.kind == keys.UID
    if _exists_elsewhere(connection, key):
        return True
    home = connection.engine.functions.get(key.function)
    if home is None:
        return False
    return home.scheduled > 0 if key.last == keys.SCHEDULED else home.queues[keys.PRIORITIES[key.last]].size > 0


def _exists_elsewhere(connection: "GearmonkeyConnection", key: keys.Key) -> bool:
    """Whether other servers of the cluster have told of jobs in a queue."""
    distant = connection.gearmonkey.counts.distant
    if distant is None:
        return False
    if key.last == keys.SCHEDULED:
        return distant.scheduled(key.function) > 0
    return distant.queued(key.function, keys.PRIORITIES[key.last]) > 0


def _delete(connection: "GearmonkeyConnection", key: keys.Key) -> bool:
    there = _exists(connection, key)
    if key.kind == keys.COUNT:
        connection.gearmonkey.counts.clear(key.function)
    elif key.kind == keys.JOB and there:
        job = connection.jobs.live(key) or connection.jobs.dead(key)
        if job is not None:
            connection.engine.cancel(job, "deleted")
            connection.must_be_durable = True
        connection.jobs.written.remove(key.id)
        connection.jobs.prepared.pop(key.id)
        connection.jobs.finished.delete(key, connection.engine.now)
    return there


def _expire(connection: "GearmonkeyConnection", arguments: list[bytes], unit: int) -> int:
    key = keys.parse(arguments[1])
    seconds = keys.integer(arguments[2]) / unit
    if key.kind not in (keys.JOB, keys.LOCK):
        raise keys.refusal(f"{keys.shown(key.raw)} does not expire: jobs that wait and workers that are there stay")
    connection.end_waiting(key)
    finished = connection.jobs.finished.get(key, connection.engine.now)
    if key.kind == keys.JOB and finished is not None and finished.fields:
        finished.expires_at = connection.engine.now + min(seconds, finished_jobs.KEPT_FOR)
    return int(_exists(connection, key))


def _time_left(connection: "GearmonkeyConnection", raw: bytes, unit: int) -> int:
    key = keys.parse(raw)
    if not _exists(connection, key):
        return _NO_KEY
    if key.kind == keys.LOCK:
        return _LOCK_SECONDS * unit
    now = connection.engine.now
    finished = connection.jobs.finished.get(key, now) if key.kind == keys.JOB else None
    if finished is None or connection.jobs.live(key) is not None:
        return _NO_EXPIRY
    return max(round((finished.expires_at - now) * unit), 0)


def _list(connection: "GearmonkeyConnection", pattern: bytes, type_name: bytes, head: bytes) -> resp.Value:
    """Reply with the keys that match; in steps, since there may be many that do not."""
    connection.engine.require_somewhere(READ)
    connection.answer_in_steps(StreamedAnswer(_matching(connection, glob.Glob(pattern), type_name, head)))
    return connection.NO_REPLY


def _matching(connection: "GearmonkeyConnection", pattern: glob.Glob, type_name: bytes, head: bytes) -> Iterator[bytes]:
    """The encoded reply, whose head has the number of keys: they are gathered first."""
    listed: list[bytes] = []
    for raw in _all(connection):
        if pattern.matches(raw) and (not type_name or _type_name(raw) == type_name):
            listed.append(resp.encode(raw, connection.version))
            if len(listed) == _MOST_LISTED:
                break
        yield b""
    yield head % len(listed)
    yield from listed


def _all(connection: "GearmonkeyConnection") -> Iterator[bytes]:
    engine = connection.engine
    for name, home in list(itertools.islice(engine.functions.items(), _MOST_LISTED)):
        if not name or not connection.may_read(name):
            continue
        yield b"uid:" + name
        if connection.gearmonkey.counts.exists(name):
            yield b"count:" + name
        if home.scheduled:
            yield b"queue:%b:scheduled" % name
        for priority, queue in enumerate(home.queues):
            if queue.size:
                yield b"queue:%b:%b" % (name, keys.NAMES[priority])
    for job in itertools.islice(engine.jobs.walk(), _MOST_LISTED):
        if job.function and connection.may_read(job.function):
            yield b"job:%b:%d" % (job.function, job.id)


def _type_name(raw: bytes) -> bytes:
    key = keys.parse(raw)
    return b"zset" if key.last == keys.SCHEDULED else _TYPES[key.kind]
