"""Commands on `uid:{FN}`, which assigns job ids, and `count:{FN}`, which counts workers."""

from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import keys
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection

_MOST_IDS: Final = 1000  # at once
_MOST_WORKERS: Final = 1_000_000


def get(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """GET: the last id, which all functions share, or the number of workers."""
    key = _number_key(arguments[1])
    if key.kind == keys.UID:
        return b"%d" % (connection.engine.next_id - 1)
    counts = connection.gearmonkey.counts
    return b"%d" % counts.value(key.function) if counts.exists(key.function) else None


def set_(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """SET: set a number of workers. Ids cannot be set."""
    key = _number_key(arguments[1])
    value = keys.integer(arguments[2])
    if key.kind == keys.UID:
        raise keys.refusal(f"{keys.shown(key.raw)} cannot be set: ids are never given out twice")
    if not 0 <= value <= _MOST_WORKERS:
        raise keys.NOT_AN_INTEGER
    connection.gearmonkey.counts.reset(key.function, connection, value)
    return resp.OK


def incr(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """INCR."""
    return _add(connection, arguments[1], 1)


def incrby(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """INCRBY."""
    return _add(connection, arguments[1], keys.integer(arguments[2]))


def decr(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """DECR."""
    return _add(connection, arguments[1], -1)


def decrby(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """DECRBY."""
    return _add(connection, arguments[1], -keys.integer(arguments[2]))


def _add(connection: "GearmonkeyConnection", raw: bytes, by: int) -> int:
    key = _number_key(raw)
    if key.kind == keys.UID:
        return _take_ids(connection, key, by)
    if abs(by) > _MOST_WORKERS:
        raise keys.NOT_AN_INTEGER
    counts = connection.gearmonkey.counts
    counts.change(key.function, connection, by)
    worker = connection.worker
    if by < 0 and worker is not None and not any(job.function == key.function for job in worker.running.jobs()):
        worker.withdraw(key.function)
    return counts.value(key.function)


def _take_ids(connection: "GearmonkeyConnection", key: keys.Key, count: int) -> int:
    """Reserve ids; returns the last of them."""
    if not 1 <= count <= _MOST_IDS:
        raise keys.refusal(f"{keys.shown(key.raw)} gives out 1 to {_MOST_IDS} ids at once, and takes none back")
    number = 0
    for _ in range(count):
        number = connection.engine.reserve_id()
        connection.jobs.prepared.add(number, key.function, connection, connection.engine.now)
    return number


def _number_key(raw: bytes) -> keys.Key:
    key = keys.parse(raw)
    if key.kind != keys.UID and key.kind != keys.COUNT:
        raise keys.WRONG_TYPE
    return key
