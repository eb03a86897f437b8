"""Commands on keys of every kind: whether they are there, for how long, and taking them away."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import endings, glob, keys
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection

_TYPES: Final = {
    keys.Kind.UID: b"string",
    keys.Kind.COUNT: b"string",
    keys.Kind.JOB: b"hash",
    keys.Kind.QUEUE: b"list",
    keys.Kind.LOCK: b"list",
}
_MOST_LISTED: Final = 10_000  # keys in one answer, and jobs looked at for it
_LOCK_SECONDS: Final = 10
_MILLISECONDS: Final = 1000
_NO_KEY, _NO_EXPIRY = -2, -1


def exists(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """EXISTS: how many of them."""
    return sum(_is_there(connection, keys.parse(raw)) for raw in arguments[1:])


def type_(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """TYPE."""
    key = keys.parse(arguments[1])
    if not _is_there(connection, key):
        return resp.SimpleString(b"none")
    return resp.SimpleString(b"zset" if key.last == keys.SCHEDULED else _TYPES[key.kind])


def delete(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """DEL, UNLINK: a job that is not over is cancelled."""
    wanted = [keys.parse(raw) for raw in arguments[1:]]
    for key in wanted:
        if key.kind in (keys.Kind.QUEUE, keys.Kind.UID):
            raise keys.refusal(f"{keys.shown(key.raw)} cannot be deleted: cancel its jobs one by one (DEL job:...)")
    return sum(_delete(connection, key) for key in wanted)


def expire(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """EXPIRE: forget a finished job's hash after so long. Jobs that are not over stay."""
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
    """PERSIST: no, nothing that is over stays for ever here."""
    keys.parse(arguments[1])
    return 0


def list_keys(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """KEYS: of functions and of jobs that are not over, as many as fit into one answer."""
    return _listed(connection, arguments[1])


def scan(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """SCAN: the same, all at once."""
    keys.integer(arguments[1])
    options = arguments[2:]
    if len(options) % 2:
        raise keys.SYNTAX
    named = {name.upper(): value for name, value in zip(options[0::2], options[1::2], strict=True)}
    wanted = named.get(b"TYPE", b"").lower()
    found = _listed(connection, named.get(b"MATCH", b"*"))
    if wanted:
        found = [raw for raw in found if _type_name(raw) == wanted]
    return [b"0", list(found)]


def dbsize(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """DBSIZE: how many jobs there are that are not over."""
    return len(connection.engine.jobs)


def fingerprint(connection: "GearmonkeyConnection", raw: bytes) -> object:
    """Something that changes when the key's value does, for WATCH."""
    key = keys.parse(raw)
    if key.kind is keys.Kind.UID:
        return connection.engine.next_id
    if key.kind is keys.Kind.COUNT:
        return connection.monkey.counts.value(key.function)
    if key.kind is keys.Kind.JOB:
        return dict(connection.jobs.fields(key))
    if key.kind is keys.Kind.LOCK:
        return connection.jobs.is_over(key)
    home = connection.engine.functions.get(key.function)
    if home is None or key.last == keys.SCHEDULED:
        return home.scheduled if home is not None else 0
    queue = home.queues[keys.PRIORITIES[key.last]]
    return (queue.size, queue.first())


def _is_there(connection: "GearmonkeyConnection", key: keys.Key) -> bool:
    if key.kind is keys.Kind.JOB:
        return bool(connection.jobs.fields(key))
    if key.kind is keys.Kind.LOCK:
        return connection.jobs.is_over(key)
    if key.kind is keys.Kind.COUNT:
        return connection.monkey.counts.value(key.function) > 0
    if key.kind is not keys.Kind.QUEUE:
        return key.kind is keys.Kind.UID
    home = connection.engine.functions.get(key.function)
    if home is None:
        return False
    return home.scheduled > 0 if key.last == keys.SCHEDULED else home.queues[keys.PRIORITIES[key.last]].size > 0


def _delete(connection: "GearmonkeyConnection", key: keys.Key) -> bool:
    there = _is_there(connection, key)
    if key.kind is keys.Kind.COUNT:
        connection.monkey.counts.reset(key.function, connection, 0)
    elif key.kind is keys.Kind.JOB and there:
        job = connection.jobs.live(key) or connection.jobs.dead(key)
        if job is not None:
            connection.engine.cancel(job, "deleted")
            connection.must_be_durable = True
        connection.jobs.drafts.pop(key.id)
        connection.jobs.endings.delete(key, connection.engine.now)
    return there


def _expire(connection: "GearmonkeyConnection", arguments: list[bytes], unit: int) -> int:
    key = keys.parse(arguments[1])
    seconds = keys.integer(arguments[2]) / unit
    if key.kind not in (keys.Kind.JOB, keys.Kind.LOCK):
        raise keys.refusal(f"{keys.shown(key.raw)} does not expire: jobs that wait and workers that are there stay")
    ending = connection.jobs.endings.get(key, connection.engine.now)
    if key.kind is keys.Kind.JOB and ending is not None and ending.fields:
        ending.expires_at = connection.engine.now + min(seconds, endings.KEPT_FOR)
    return int(_is_there(connection, key))


def _time_left(connection: "GearmonkeyConnection", raw: bytes, unit: int) -> int:
    key = keys.parse(raw)
    if not _is_there(connection, key):
        return _NO_KEY
    if key.kind is keys.Kind.LOCK:
        return _LOCK_SECONDS * unit
    now = connection.engine.now
    ending = connection.jobs.endings.get(key, now) if key.kind is keys.Kind.JOB else None
    if ending is None or connection.jobs.live(key) is not None:
        return _NO_EXPIRY
    return max(round((ending.expires_at - now) * unit), 0)


def _listed(connection: "GearmonkeyConnection", pattern: bytes) -> list[bytes]:
    found = (raw for raw in _all(connection) if glob.matches(pattern, raw))
    return list(itertools.islice(found, _MOST_LISTED))


def _all(connection: "GearmonkeyConnection") -> Iterator[bytes]:
    engine = connection.engine
    for name, home in itertools.islice(engine.functions.items(), _MOST_LISTED):
        if not name:
            continue
        yield b"uid:" + name
        if connection.monkey.counts.value(name) > 0:
            yield b"count:" + name
        if home.scheduled:
            yield b"queue:%b:scheduled" % name
        for priority, queue in enumerate(home.queues):
            if queue.size:
                yield b"queue:%b:%b" % (name, keys.NAMES[priority])
    for job in itertools.islice(engine.jobs.values(), _MOST_LISTED):
        if job.function:
            yield b"job:%b:%d" % (job.function, job.id)


def _type_name(raw: bytes) -> bytes:
    key = keys.parse(raw)
    return b"zset" if key.last == keys.SCHEDULED else _TYPES[key.kind]
