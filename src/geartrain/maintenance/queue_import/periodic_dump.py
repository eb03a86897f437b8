"""Reads the file that `periodic dump FILE` writes: the answer to the command DUMP of the original Periodic server.

The file is the number of jobs, in 8 bytes, and the jobs as SUBMIT_JOB has them. A job of today ends with a version that
tells which of count and timeout follow; until the middle of 2018 it had no version and always a count. The file itself
does not tell which: it is what can be read to its last byte.
"""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

from geartrain.errors import StoreError, WireError
from geartrain.maintenance.queue_import import queued_job
from geartrain.maintenance.queue_import.queued_job import QueuedJob
from geartrain.wire import periodic as wire

_WANTED: Final = "a dump of a Periodic server"
_DUMP_IT: Final = "start its server and run `periodic dump FILE`"
_OTHERS: Final[queued_job.OtherFiles] = (
    (queued_job.SQLITE, f"an SQLite database, a store of Geartrain or of periodicd; for the latter, {_DUMP_IT}"),
    (b"PGDMP", f"a dump of PostgreSQL; {_DUMP_IT}"),
    (b"-- PostgreSQL database dump", f"a dump of PostgreSQL; {_DUMP_IT}"),
    (b"--\n-- PostgreSQL database dump", f"a dump of PostgreSQL; {_DUMP_IT}"),
    (wire.RESPONSE, "a frame of Periodic's protocol; the file has only the data of the answer"),
)

_SIZE: Final = struct.Struct(">I")
_TIME: Final = struct.Struct(">q")
_COUNT: Final = struct.Struct(">i")

_ReadJob = Callable[[wire.Arguments], wire.PeriodicJob]


def read(path: Path) -> list[QueuedJob]:
    """Every job of a dump; a StoreError says what else the file is, or where it is damaged. It is only read."""
    queued_job.head_of(path, _WANTED, _OTHERS)
    data = path.read_bytes()
    try:
        return _jobs(data, lambda arguments: arguments.job(alone=False))
    except WireError as error:
        try:
            return _jobs(data, _job_without_version)
        except WireError:
            raise StoreError(f"{path} is not {_WANTED}, or is damaged or truncated: {error.text}") from None


def _jobs(data: bytes, read_job: _ReadJob) -> list[QueuedJob]:
    arguments = wire.Arguments(data, 0, len(data))
    jobs: list[QueuedJob] = []
    try:
        count = arguments.count()
        while len(jobs) < count:
            jobs.append(_queued(read_job(arguments)))
    except WireError as error:
        raise WireError("DUMP", f"job {len(jobs) + 1:,}, near byte {arguments.at:,}: {error.text}") from None
    if arguments.left():
        raise WireError("DUMP", f"{arguments.left():,} bytes follow the last of {count:,} jobs")
    return jobs


def _job_without_version(arguments: wire.Arguments) -> wire.PeriodicJob:
    function, name, payload = arguments.short(), arguments.short(), arguments.sized(_SIZE)
    return wire.PeriodicJob(function, name, payload, arguments.number(_TIME), arguments.number(_COUNT))


def _queued(job: wire.PeriodicJob) -> QueuedJob:
    if not job.function or not job.name:
        raise WireError("DUMP", "it has no function or no name")
    return QueuedJob(
        job.function,
        job.name,
        job.payload,
        run_at=float(max(job.run_at, 0)),
        timeout=float(max(job.timeout, 0)),
        steps=job.steps,
    )
