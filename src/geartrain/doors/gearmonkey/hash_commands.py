"""Commands on `job:{FN}:{ID}`. Reading shows the job; writing prepares it, reports on it or ends it."""

from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import keys
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.worker import Worker
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection

Fields = dict[bytes, bytes]

_FIELDS: Final = frozenset({b"status", b"input", b"output", b"status:dividend", b"status:divisor"})
_OUTPUT: Final = b"output"
_ENDS: Final = frozenset({b"success", b"error"})
_STATUSES: Final = frozenset({b"idle", b"busy"}) | _ENDS
_LARGEST: Final = 2**31  # dividend or divisor that other protocols can represent


def hmset(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """HMSET: OK."""
    _write(connection, arguments)
    return resp.OK


def hset(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """HSET: the number of new fields."""
    return _write(connection, arguments)


def hget(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """HGET: one field."""
    return _read_values(connection, arguments, arguments[2:]).get(arguments[2])


def hmget(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """HMGET: several fields."""
    fields = _read_values(connection, arguments, arguments[2:])
    return [fields.get(name) for name in arguments[2:]]


def hgetall(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """HGETALL: the whole hash."""
    return _read_values(connection, arguments, [_OUTPUT])


def hexists(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """HEXISTS: whether a field exists."""
    return int(arguments[2] in _read(connection, arguments))


def hlen(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """HLEN: the number of fields."""
    return len(_read(connection, arguments))


def hkeys(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """HKEYS: the names of the fields."""
    return list(_read(connection, arguments))


def hdel(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """HDEL: only of a job that is not queued yet."""
    key = keys.expect(arguments[1], keys.Kind.JOB)
    prepared = connection.jobs.prepared.get(key)
    if prepared is None:
        if connection.jobs.fields(key):
            raise keys.refusal(f"the fields of {keys.shown(key.raw)} cannot be taken away: the job is queued")
        return 0
    return connection.jobs.prepared.strip(prepared, arguments[2:])


def _read(connection: "GearmonkeyConnection", arguments: list[bytes]) -> Fields:
    return connection.jobs.fields(keys.expect(arguments[1], keys.Kind.JOB))


def _read_values(connection: "GearmonkeyConnection", arguments: list[bytes], names: list[bytes]) -> Fields:
    """Read the hash for the values of these fields."""
    if _OUTPUT in names:
        connection.jobs.check_output(keys.expect(arguments[1], keys.Kind.JOB))
    return _read(connection, arguments)


def _write(connection: "GearmonkeyConnection", arguments: list[bytes]) -> int:
    """Write fields; returns how many are new."""
    if len(arguments) % 2:
        raise keys.refusal(f"wrong number of arguments for '{keys.text(arguments[0]).lower()}' command")
    key = keys.expect(arguments[1], keys.Kind.JOB)
    fields = dict(zip(arguments[2::2], arguments[3::2], strict=True))
    _check(key, fields)
    before = connection.jobs.fields(key).keys()
    new = sum(name not in before for name in fields)
    job = connection.jobs.live(key)
    if job is not None:
        _report(connection, key, job, fields)
    elif connection.jobs.has_ended(key):
        _report_late(connection, key, fields)
    else:
        _prepare(connection, key, fields)
    return new


def _check(key: keys.Key, fields: Fields) -> None:
    for name, value in fields.items():
        if name not in _FIELDS:
            raise keys.refusal(f"{keys.shown(name)} is no field of a job; there are {_listed(_FIELDS)}")
        if name.startswith(b"status:"):
            _amount(value)
    status = fields.get(b"status")
    if status is not None and status not in _STATUSES:
        raise keys.refusal(f"{keys.shown(status)} is no status of a job; there are {_listed(_STATUSES)}")


def _prepare(connection: "GearmonkeyConnection", key: keys.Key, fields: Fields) -> None:
    """Write the hash of a job that is not queued yet."""
    prepared = connection.jobs.prepared.get(key)
    if prepared is None:
        raise keys.refusal(f"there is no job {key.id}; take an id with INCR uid:{keys.text(key.function)} first")
    if fields.get(b"status", b"idle") != b"idle" or b"output" in fields:
        raise keys.refusal(f"job {key.id} was not queued yet, so nobody can have worked on it")
    connection.jobs.prepared.write(prepared, fields, connection.engine.now)


def _report(connection: "GearmonkeyConnection", key: keys.Key, job: LiveJob, fields: Fields) -> None:
    """Write the hash of a live job: a worker reports on it."""
    worker = connection.worker_of(job)
    if worker is None:
        if connection.is_forgiven_report(job.handle, fields) or _changes_nothing(connection, key, fields):
            return
        raise keys.refusal(f"job {key.id} is not yours: it waits in its queue, or somebody else runs it")
    connection.adopt(worker)
    if fields.get(b"input", job.payload) != job.payload:
        raise keys.refusal(f"job {key.id} is running: its input cannot be changed")
    _progress(connection, job, fields)
    status, output = fields.get(b"status"), fields.get(b"output")
    if output is not None and status not in _ENDS:
        connection.gearmonkey.outputs[job.handle] = output
    elif status in _ENDS:
        if output is None:
            output = connection.gearmonkey.outputs.get(job.handle, b"")
        _end(connection, worker, job, status == b"success", output)


def _end(connection: "GearmonkeyConnection", worker: Worker, job: LiveJob, success: bool, output: bytes) -> None:
    if worker is not connection.worker:
        worker.forgive_late(job.handle)  # its own report would be late
    if success:
        connection.engine.complete(worker, job, output)
    elif output:
        connection.engine.raise_exception(worker, job, output)
    else:
        connection.engine.fail(worker, job)


def _progress(connection: "GearmonkeyConnection", job: LiveJob, fields: Fields) -> None:
    if b"status:dividend" not in fields and b"status:divisor" not in fields:
        return
    known = job.progress or Progress(0, 0)
    dividend = _amount(fields.get(b"status:dividend", b"%d" % known.numerator))
    divisor = _amount(fields.get(b"status:divisor", b"%d" % known.denominator))
    connection.engine.progress(job, Progress(dividend, divisor))


def _report_late(connection: "GearmonkeyConnection", key: keys.Key, fields: Fields) -> None:
    """Write the hash of a finished job: the same values are accepted, others refused."""
    forgiven = connection.is_forgiven_report(connection.jobs.handle(key.id), fields)
    if not forgiven and not _changes_nothing(connection, key, fields):
        raise keys.refusal(f"job {key.id} is over; a new one needs an id from INCR uid:{keys.text(key.function)}")


def _changes_nothing(connection: "GearmonkeyConnection", key: keys.Key, fields: Fields) -> bool:
    current = connection.jobs.fields(key)
    return all(current.get(name) == value for name, value in fields.items())


def _amount(text: bytes) -> int:
    """A dividend or divisor: any number, rounded down."""
    try:
        amount = float(text)
    except ValueError:
        raise keys.NOT_AN_INTEGER from None
    if not 0 <= amount < _LARGEST:
        raise keys.NOT_AN_INTEGER
    return int(amount)


def _listed(names: frozenset[bytes]) -> str:
    return ", ".join(sorted(name.decode() for name in names))
