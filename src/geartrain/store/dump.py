"""The dump format: saved values, jobs and records as lines of JSON. docs/dump-format.md specifies it.

This module does no I/O: it turns jobs into lines and lines into jobs.

>>> from geartrain.model import Job
>>> job = Job(7, b"H:host:7", b"reverse", b"", b"\\xff", 1, True, 5.0, 5.0, "gearman")
>>> lines = [header(made_at=6.0, next_id=8), job_line(job), end(jobs=1, records=0)]
>>> lines[0]
b'{"geartrain":"dump","version":8,"made_at":6.0,"next_id":8}\\n'
>>> [entry.payload for entry in DumpReader().read(lines)]
[b'\\xff']
"""

import contextlib
import math
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from geartrain import jsonbytes
from geartrain.errors import GeartrainError
from geartrain.model import Attempt, Job, JobState, pack_attempts, pack_parents, unpack_attempts, unpack_parents
from geartrain.store import rows
from geartrain.store.contract import Record
from geartrain.store.dump_lines import (
    END_NAMES,
    ENDS,
    PRIORITIES,
    STATES,
    DumpAnyHeader,
    DumpAttempt,
    DumpEnd,
    DumpHeader,
    DumpJob,
    DumpJobOfRecord,
    DumpLine,
    DumpRecord,
    DumpValue,
    StateName,
)
from geartrain.store.dump_lines import LAST_ID as LAST_ID

VERSION: Final = 8

_KEEPS_RESULT_SINCE: Final = 3
_REMOVE_AT_SINCE: Final = 6  # before that, it was a negative `keep_until`
_SUFFIX: Final = "+throw-away"  # of the door, before that version
_SQLITE_MAGIC: Final = b"SQLite format 3\0"
_MSGSPEC_MESSAGE: Final = re.compile(r"(.*) - at `\$\.?(.*)`")


class DumpError(GeartrainError):
    """A dump that cannot be loaded; the text names the line."""


class SavedValue(NamedTuple):
    """A value that a server saved under a name: a schedule, the settings of a function, the configuration of a door."""

    name: str
    value: bytes


class FailedJob(NamedTuple):
    """A failed job that is kept whole."""

    record: Record
    job: Job


def with_result(record: Record, result: bytes) -> Record:
    """The record as a dump has it, with all that is kept of its result."""
    if not record.result_size:
        return record
    is_whole = len(result) == record.result_size
    return record._replace(
        result=result, result_size=0 if is_whole else record.result_size, result_kept=0 if is_whole else len(result)
    )


Entry = Job | Record | FailedJob | SavedValue
_AnyLine = DumpHeader | DumpValue | DumpJob | DumpRecord | DumpEnd
_encoder: Final = msgspec.json.Encoder()
_decoder: Final[msgspec.json.Decoder[_AnyLine]] = msgspec.json.Decoder(_AnyLine)


def header(made_at: float, next_id: int) -> bytes:
    """Return the first line. `next_id` is the first id that the store had not reserved."""
    return _line(DumpHeader(VERSION, made_at, next_id))


def job_line(job: Job, cold_payload: bytes | None = None) -> bytes:
    """Return the line of an unfinished job. Scheduled and queued jobs differ only in `run_at`."""
    _require_finite(
        run_at=job.run_at,
        submitted_at=job.submitted_at,
        timeout=job.timeout,
        keep_for=job.keep_for,
        expires_at=job.expires_at,
    )
    state: StateName = "dead" if job.state == JobState.DEAD else "waiting"
    entry = DumpJob(
        job.id, jsonbytes.encode(job.handle), jsonbytes.encode(job.function),
        jsonbytes.encode(job.unique), jsonbytes.encode(job.payload if cold_payload is None else cold_payload),
        PRIORITIES[job.priority], state, job.run_at, job.submitted_at, job.attempts, job.count, job.timeout,
        jsonbytes.encode(job.reducer), job.door, job.reason,
        _encode_attempts(job.failed_attempts or []), job.keeps_result, job.keep_for,
        job.expires_at, job.user, jsonbytes.encode(job.partition), *_encode_parents(job.after),
    )  # fmt: skip
    return _line(entry)


def value_line(saved: SavedValue) -> bytes:
    """Return the line of a saved value."""
    return _line(DumpValue(saved.name, jsonbytes.encode(saved.value)))


def record_line(record: Record, job: Job | None = None) -> bytes:
    """Return the line of a record, and of the failed job that is kept with it.

    Raise BrokenRowError if the record is invalid.
    """
    if not 0 <= record.priority < len(PRIORITIES) or record.state not in END_NAMES:
        raise rows.BrokenRowError(f"invalid priority {record.priority} or state {record.state}")
    if not all(isinstance(text, str) for text in (record.door, record.worker_door, record.reason, record.progress)):
        raise rows.BrokenRowError("door, worker_door, reason or progress is not text")
    times = (record.submitted_at, record.started_at, record.finished_at)
    _require_finite(
        submitted_at=times[0],
        started_at=times[1],
        finished_at=times[2],
        keep_until=record.keep_until,
        remove_at=record.remove_at,
    )
    entry = DumpRecord(
        record.id, jsonbytes.encode(record.handle), jsonbytes.encode(record.function), jsonbytes.encode(record.unique),
        PRIORITIES[record.priority], END_NAMES[record.state], *times, record.attempts, record.door,
        record.worker_door, jsonbytes.encode(record.worker), record.code, record.reason,
        jsonbytes.encode(record.result), _encode_attempts(unpack_attempts(record.failed_attempts)), record.keeps_result,
        record.result_size, record.keep_until, record.progress, None if job is None else _whole(job), record.remove_at,
    )  # fmt: skip
    return _line(entry)


def _whole(job: Job) -> DumpJobOfRecord:
    _require_finite(run_at=job.run_at, timeout=job.timeout, keep_for=job.keep_for, expires_at=job.expires_at)
    return DumpJobOfRecord(
        jsonbytes.encode(job.payload), job.run_at, job.count, job.timeout, jsonbytes.encode(job.reducer), job.keep_for,
        job.expires_at, job.user, jsonbytes.encode(job.partition), *_encode_parents(job.after),
    )  # fmt: skip


def end(jobs: int, records: int, values: int = 0) -> bytes:
    """Return the last line; its counts let the reader detect missing lines."""
    return _line(DumpEnd(jobs, records, values))


class DumpReader:
    """Reads one dump. What it yields is only valid if all lines can be read."""

    def __init__(self, kind: type[Job] = Job) -> None:
        self._kind = kind  # of the jobs that it yields
        self.line = 0  # number of the current line
        self.jobs = 0
        self.records = 0
        self.values = 0
        self.next_id = 0  # from the header
        self._version = VERSION
        self._lines: dict[int | bytes, int] = {}  # by id and handle of each job

    def read(self, lines: Iterable[bytes]) -> Iterator[Entry]:
        """Yield every value, job and record; raise DumpError with the number of the first invalid line."""
        ended = False
        for line in lines:
            self.line += 1
            if ended:
                raise self._error("data after the end line; load one dump at a time")
            entry = self._entry(line)
            if isinstance(entry, DumpJob):
                yield self._job(entry)
            elif isinstance(entry, DumpRecord):
                yield self._record(entry)
            elif isinstance(entry, DumpValue):
                self.values += 1
                yield SavedValue(entry.name, jsonbytes.decode(entry.value))
            elif isinstance(entry, DumpEnd):
                self._check_end(entry)
                ended = True
            else:
                self.next_id = entry.next_id
                self._version = entry.version
        if not self.line:
            raise DumpError("the dump is empty")
        if not ended:
            raise DumpError(f"the dump is truncated after line {self.line}: the end line is missing")

    def _entry(self, line: bytes) -> _AnyLine:
        if self.line == 1:
            self._check_version(line)
        try:
            entry = _decoder.decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise self._error(self._problem(line, error)) from None
        if (self.line == 1) != isinstance(entry, DumpHeader):
            raise self._error('the header ("geartrain": "dump") must be the first line, and only the first')
        return entry

    def _problem(self, line: bytes, error: Exception) -> str:
        if self.line == 1 and line.startswith(_SQLITE_MAGIC):
            return "this is a store file, not a dump; name it with --store"
        if not line.endswith(b"\n") and not isinstance(error, msgspec.ValidationError):
            return "the dump is truncated in this line" if self.line > 1 else "this is not a dump"
        return _message(error)

    def _check_version(self, line: bytes) -> None:
        with contextlib.suppress(msgspec.MsgspecError, ValueError):
            version = msgspec.json.decode(line, type=DumpAnyHeader).version
            if not 1 <= version <= VERSION:
                raise self._error(
                    f"this is a dump of version {version}; this version of Geartrain reads 1 to {VERSION}"
                )

    def _check_end(self, entry: DumpEnd) -> None:
        for name, expected, count in (
            ("jobs", entry.jobs, self.jobs),
            ("records", entry.records, self.records),
            ("values", entry.values, self.values),
        ):
            if expected != count:
                raise self._error(f"the end line counts {expected} {name}, but the dump has {count}")

    def _job(self, entry: DumpJob) -> Job:
        door, keeps_result = self._door(entry)
        row = (
            entry.id, jsonbytes.decode(entry.handle), jsonbytes.decode(entry.function),
            jsonbytes.decode(entry.unique), jsonbytes.decode(entry.payload),
            PRIORITIES.index(entry.priority), int(STATES[entry.state]), entry.run_at, entry.submitted_at,
            entry.attempts, entry.count, entry.timeout, jsonbytes.decode(entry.reducer), door, entry.reason,
            pack_attempts(_decode_attempts(entry.trials)), keeps_result, entry.keep_for,
            entry.expires_at, entry.user, jsonbytes.decode(entry.partition),
            pack_parents(entry.after, entry.runs_anyway),
        )  # fmt: skip
        try:
            job = rows.job(row, self._kind)
        except rows.BrokenRowError as broken:
            raise self._error(str(broken)) from None
        self._require_unique(job.id, f"id {job.id}")
        self._require_unique(job.handle, f"handle {shown(job.handle)}")
        self.jobs += 1
        return job

    def _record(self, entry: DumpRecord) -> Record | FailedJob:
        self.records += 1
        door, keeps_result = self._door(entry)
        result = jsonbytes.decode(entry.result)
        if 0 < entry.result_size <= len(result):
            raise self._error("result_size: a result that was cut is shorter than that")
        record = Record(
            entry.id, jsonbytes.decode(entry.handle), jsonbytes.decode(entry.function), jsonbytes.decode(entry.unique),
            PRIORITIES.index(entry.priority), int(ENDS[entry.state]), entry.submitted_at, entry.started_at,
            entry.finished_at, entry.attempts, door, entry.worker_door, jsonbytes.decode(entry.worker),
            entry.code, entry.reason, result, pack_attempts(_decode_attempts(entry.trials)),
            keeps_result, entry.result_size, len(result) if entry.result_size else 0, *self._own_retention(entry),
            entry.progress,
        )  # fmt: skip
        return record if entry.job is None else FailedJob(record, self._failed_job(record, entry.job))

    def _failed_job(self, record: Record, whole: DumpJobOfRecord) -> Job:
        row = (
            record.id, record.handle, record.function, record.unique, jsonbytes.decode(whole.payload), record.priority,
            record.state, whole.run_at, record.submitted_at, record.attempts, whole.count, whole.timeout,
            jsonbytes.decode(whole.reducer), record.door, record.reason, record.failed_attempts, record.keeps_result,
            whole.keep_for, whole.expires_at, whole.user, jsonbytes.decode(whole.partition),
            pack_parents(whole.after, whole.runs_anyway),
        )  # fmt: skip
        try:
            return rows.failed_job(row, Job)
        except rows.BrokenRowError as broken:
            raise self._error(str(broken)) from None

    def _door(self, entry: DumpJob | DumpRecord) -> tuple[str, bool]:
        """Return door and `keeps_result`, which older versions wrote as a suffix of the door."""
        if self._version < _KEEPS_RESULT_SINCE and entry.door.endswith(_SUFFIX):
            return entry.door.removesuffix(_SUFFIX), False
        return entry.door, entry.keeps_result

    def _own_retention(self, entry: DumpRecord) -> tuple[float, float]:
        """Return `keep_until` and `remove_at`."""
        if self._version < _REMOVE_AT_SINCE:
            return max(entry.keep_until, 0.0), max(-entry.keep_until, 0.0)
        return entry.keep_until, entry.remove_at

    def _require_unique(self, name: int | bytes, shown: str) -> None:
        line = self._lines.setdefault(name, self.line)
        if line != self.line:
            raise self._error(f"{shown} is also on line {line}")

    def _error(self, text: str) -> DumpError:
        return DumpError(f"line {self.line}: {text}")


def shown(name: bytes) -> str:
    """Return a handle or another name as printable text, without terminal control sequences.

    >>> shown(b"H:host:1 \\xff \\x1b[2J")
    'H:host:1 \\\\xff \\\\x1b[2J'
    """
    text = name.decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _line(entry: DumpLine) -> bytes:
    return _encoder.encode(entry) + b"\n"


def _encode_parents(after: bytes) -> tuple[list[int], bool]:
    parents = unpack_parents(after)
    return list(parents.ids), parents.runs_anyway


def _encode_attempts(attempts: list[Attempt]) -> list[DumpAttempt]:
    for attempt in attempts:
        _require_finite(started_at=attempt.started_at, ended_at=attempt.ended_at)
    return [DumpAttempt(*attempt[:3], jsonbytes.encode(attempt.worker), attempt.reason) for attempt in attempts]


def _decode_attempts(attempts: list[DumpAttempt]) -> list[Attempt]:
    return [Attempt(a.started_at, a.ended_at, a.door, jsonbytes.decode(a.worker), a.why) for a in attempts]


def _require_finite(**times: float) -> None:
    """Raise BrokenRowError for infinity and NaN, which JSON cannot express."""
    for name, value in times.items():
        if not math.isfinite(value):
            raise rows.BrokenRowError(f"{name} is {value}, not a finite number")


def _message(error: Exception) -> str:
    """Return msgspec's message with the member first: `id: Expected int, got str`."""
    if not isinstance(error, msgspec.ValidationError):
        return f"invalid JSON ({error})"
    text = str(error)
    match = _MSGSPEC_MESSAGE.fullmatch(text)
    if match is not None:
        text = f"{match[2]}: {match[1]}" if match[2] else match[1]
    return text.replace("`", "")
