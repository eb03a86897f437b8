"""Commands on `job:{FN}:{ID}`. Reading shows the job; writing prepares it, reports on it, ends it or annotates it."""

from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import ending_jobs, keys, progress_values, written_fields
from geartrain.doors.gearmonkey.written_fields import DIVIDEND, DIVISOR, DOCUMENTED, INPUT, OUTPUT, STATUS, Fields
from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection

_STATUSES: Final = frozenset({b"idle", b"busy"}) | ending_jobs.FINAL
_PROGRESS: Final = frozenset({DIVIDEND, DIVISOR})


def hmset(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """HMSET: OK."""
    _write(connection, arguments, count=False)
    return resp.OK


def hset(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """HSET: the number of new fields."""
    return _write(connection, arguments, count=True)


def hget(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """HGET: one field."""
    return _read_values(connection, arguments, arguments[2:]).get(arguments[2])


def hmget(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """HMGET: several fields."""
    fields = _read_values(connection, arguments, arguments[2:])
    return [fields.get(name) for name in arguments[2:]]


def hgetall(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """HGETALL: the whole hash."""
    return _read_values(connection, arguments, [OUTPUT])


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
    """HDEL: fields of a job that is not queued yet, and fields of a program's own."""
    key = keys.expect(arguments[1], keys.JOB)
    jobs, names = connection.jobs, list(dict.fromkeys(arguments[2:]))
    prepared = jobs.prepared.get(key)
    if prepared is not None:
        return jobs.prepared.strip(prepared, names)
    fields = jobs.fields(key)
    if any(name in DOCUMENTED and name in fields for name in names):
        raise keys.refusal(f"the fields of {keys.shown(key.raw)} cannot be taken away: the job is queued")
    job = jobs.live(key) or jobs.dead(key)
    if job is None:
        return jobs.finished.strip(key, names, connection.engine.now)
    connection.must_be_durable = job.background
    return jobs.written.strip_own(job.id, names, job.background)


def _read(connection: "GearmonkeyConnection", arguments: list[bytes]) -> Fields:
    return connection.jobs.fields(keys.expect(arguments[1], keys.JOB))


def _read_values(connection: "GearmonkeyConnection", arguments: list[bytes], names: list[bytes]) -> Fields:
    """Read the hash for the values of these fields."""
    if OUTPUT in names:
        connection.jobs.check_output(keys.expect(arguments[1], keys.JOB))
    return _read(connection, arguments)


def _write(connection: "GearmonkeyConnection", arguments: list[bytes], count: bool) -> int:
    """Write fields; returns how many are new, if they are to be counted."""
    if len(arguments) % 2:
        raise keys.refusal(f"wrong number of arguments for '{keys.text(arguments[0]).lower()}' command")
    key = keys.expect(arguments[1], keys.JOB)
    fields: Fields = {}
    for at in range(2, len(arguments), 2):
        fields[arguments[at]] = arguments[at + 1]
    _check(fields)
    jobs = connection.jobs
    new = 0
    if count:
        before = jobs.fields(key)
        for name in fields:
            new += name not in before
    job = jobs.live(key)
    if job is not None:
        _write_live(connection, key, job, fields)
    elif jobs.has_ended(key):
        _write_ended(connection, key, fields)
    else:
        _prepare(connection, key, fields)
    return new


def _check(fields: Fields) -> None:
    status = fields.get(STATUS)
    if status is not None and status not in _STATUSES:
        listed = ", ".join(sorted(name.decode() for name in _STATUSES))
        raise keys.refusal(f"{keys.shown(status)} is no status of a job; there are {listed}")
    for name in _PROGRESS:
        if len(fields.get(name, b"")) > progress_values.LONGEST:
            raise keys.NOT_AN_INTEGER


def _prepare(connection: "GearmonkeyConnection", key: keys.Key, fields: Fields) -> None:
    """Write the hash of a job that is not queued yet."""
    prepared = connection.jobs.prepared.get(key)
    if prepared is None and key.id in connection.jobs.elsewhere:
        raise keys.refusal(f"job {key.id} is at another server of the cluster: write to it there")
    if prepared is None:
        raise keys.refusal(f"there is no job {key.id}; take an id with INCR uid:{keys.text(key.function)} first")
    if fields.get(STATUS, b"idle") != b"idle" or OUTPUT in fields:
        raise keys.refusal(f"job {key.id} was not queued yet, so nobody can have worked on it")
    if written_fields.has_own(fields):
        written_fields.check_own(written_fields.own_fields({**prepared.fields, **fields}))
    connection.jobs.prepared.write(prepared, fields, connection.engine.now)


def _write_live(connection: "GearmonkeyConnection", key: keys.Key, job: LiveJob, fields: Fields) -> None:
    """Write the hash of a live job: its worker reports on it, or any program writes fields of its own."""
    report = fields
    own: Fields = {}
    if written_fields.has_own(fields):
        own = written_fields.own_fields(fields)
        if len(own) == len(fields):
            _write_own(connection, job, own)
            return
        report = {name: value for name, value in fields.items() if name in DOCUMENTED}
    worker = connection.worker_of(job)
    if worker is None:
        if not connection.is_forgiven_report(job.handle, report) and not _changes_nothing(connection, key, report):
            raise keys.refusal(f"job {key.id} is not yours: it waits in its queue, or somebody else runs it")
    elif report.get(INPUT, job.payload) != job.payload:
        raise keys.refusal(f"job {key.id} is running: its input cannot be changed")
    if own:
        _write_own(connection, job, own)
    if worker is not None:
        connection.adopt(worker)
        _report(connection, worker, job, report)


def _write_own(connection: "GearmonkeyConnection", job: LiveJob, own: Fields) -> None:
    connection.jobs.written.write_own(job.id, own, job.background)
    connection.must_be_durable = job.background


def _report(connection: "GearmonkeyConnection", worker: Worker, job: LiveJob, fields: Fields) -> None:
    """Do what a worker reports; it may write the status and the output with one command or with two."""
    written, ending = connection.jobs.written, connection.gearmonkey.ending
    if DIVIDEND in fields or DIVISOR in fields:
        report = written.report(job.id, {name: value for name, value in fields.items() if name in _PROGRESS})
        progress = progress_values.whole(report.get(DIVIDEND, b"0"), report.get(DIVISOR, b"0"))
        if progress is not None:
            connection.engine.progress(job, progress)
    status, output = fields.get(STATUS), fields.get(OUTPUT)
    before = written.get(job.id)
    if before is not None:
        status = before.report.get(STATUS) if status is None else status
        output = before.report.get(OUTPUT) if output is None else output
    if status not in ending_jobs.FINAL:
        ending.discard(job.id)
        written.drop_status(job.id)
        if OUTPUT in fields:
            written.report(job.id, {OUTPUT: fields[OUTPUT]})
        return
    if worker is not connection.worker:
        worker.forgive_late(job.handle)  # its own report would be late
    if output is None:
        written.report(job.id, {STATUS: status})
        ending.wait(job, worker, status)
    else:
        written.drop_status(job.id)
        ending.end(job, worker, status, output)


def _write_ended(connection: "GearmonkeyConnection", key: keys.Key, fields: Fields) -> None:
    """Write the hash of a job that has ended: an output that is missing, progress, and fields of a program's own.

    Other fields may be written again with the same value.
    """
    jobs, engine = connection.jobs, connection.engine
    dead = jobs.dead(key)
    finished = jobs.finished.get(key, engine.now) if dead is None else None
    current = jobs.fields(key)
    accepted = {name: value for name, value in fields.items() if current.get(name) != value}
    own = written_fields.own_fields(accepted)
    late = [name for name in accepted if name in DOCUMENTED and name not in _PROGRESS]
    if finished is not None and finished.lacks_output and late == [OUTPUT]:
        late = []
    if late or (accepted and not current):
        if connection.is_forgiven_report(jobs.handle(key.id), fields):
            return
        raise keys.refusal(f"job {key.id} is over; a new one needs an id from INCR uid:{keys.text(key.function)}")
    if dead is not None and own:
        _write_own(connection, dead, own)
    elif finished is not None and accepted:
        written_fields.check_own({**written_fields.own_fields(current), **own})
        jobs.finished.write(key, accepted, engine.now)


def _changes_nothing(connection: "GearmonkeyConnection", key: keys.Key, fields: Fields) -> bool:
    current = connection.jobs.fields(key)
    return all(current.get(name) == value for name, value in fields.items())
