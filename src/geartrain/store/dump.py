"""The dump format: saved values, jobs and records as lines of JSON. docs/dump-format.md specifies it.

This module does no I/O: it turns jobs into lines and lines into jobs.

>>> from geartrain.model import Job
>>> job = Job(7, b"H:host:7", b"reverse", b"", b"\\xff", 1, True, 5.0, 5.0, "gearman")
>>> lines = [header(made_at=6.0, next_id=8), job_line(job), end(jobs=1, records=0)]
>>> lines[0]
b'{"geartrain":"dump","version":5,"made_at":6.0,"next_id":8}\\n'
>>> [entry.payload for entry in DumpReader().read(lines)]
[b'\\xff']
"""

import contextlib
import math
import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from geartrain import jsonbytes
from geartrain.errors import GeartrainError
from geartrain.jsonbytes import JsonBytes
from geartrain.model import Attempt, Job, JobState, pack_attempts, unpack_attempts
from geartrain.store import rows
from geartrain.store.contract import Record

VERSION: Final = 5
# Far below SQLite's largest integer, 2**63 - 1, so that a server can count on from any id.
LAST_ID: Final = 2**61

_KEEPS_RESULT_SINCE: Final = 3
_SUFFIX: Final = "+throw-away"  # of the door, before that version
_SQLITE_MAGIC: Final = b"SQLite format 3\0"
_MSGSPEC_MESSAGE: Final = re.compile(r"(.*) - at `\$\.?(.*)`")


class DumpError(GeartrainError):
    """A dump that cannot be loaded; the text names the line."""


_Id = Annotated[int, msgspec.Meta(ge=1, le=LAST_ID)]
_NextId = Annotated[int, msgspec.Meta(ge=1, le=2 * LAST_ID)]
_Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Priority = Literal["high", "normal", "low"]
_State = Literal["waiting", "dead"]
_EndState = Literal["done", "failed", "cancelled", "expired"]
_PRIORITIES: Final[tuple[_Priority, ...]] = ("high", "normal", "low")  # by number
_STATES: Final[dict[_State, JobState]] = {"waiting": JobState.QUEUED, "dead": JobState.DEAD}
_ENDS: Final[dict[_EndState, JobState]] = {
    "done": JobState.DONE,
    "failed": JobState.FAILED,
    "cancelled": JobState.CANCELLED,
    "expired": JobState.EXPIRED,
}
_END_NAMES: Final = {int(state): name for name, state in _ENDS.items()}


class _Line(msgspec.Struct, frozen=True, tag_field="geartrain", forbid_unknown_fields=True):
    """A line is an object; its member `geartrain` says which kind."""


class _AnyHeader(msgspec.Struct, frozen=True):
    """What the header has in every version, including future ones."""

    geartrain: Literal["dump"]
    version: int


class _Header(_Line, frozen=True, tag="dump"):
    version: int
    made_at: float
    next_id: _NextId


class _Attempt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    started_at: float
    ended_at: float
    door: str
    worker: JsonBytes
    why: str


class _Job(_Line, frozen=True, tag="job"):
    id: _Id
    handle: JsonBytes
    function: JsonBytes
    unique: JsonBytes
    payload: JsonBytes
    priority: _Priority
    state: _State
    run_at: float
    submitted_at: float
    attempts: _Integer
    count: _Integer
    timeout: float
    reducer: JsonBytes
    door: str
    reason: str
    trials: list[_Attempt] = []  # since version 2
    keeps_result: bool = True  # since version 3
    keep_for: float = 0.0  # since version 4
    expires_at: float = 0.0  # since version 5
    user: str = ""  # since version 5


class _JobOfRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a failed job that is kept whole has besides its record."""

    payload: JsonBytes
    run_at: float
    count: _Integer
    timeout: float
    reducer: JsonBytes
    keep_for: float
    expires_at: float
    user: str


class _Value(_Line, frozen=True, tag="value"):
    name: str
    value: JsonBytes


class _Record(_Line, frozen=True, tag="record"):
    id: _Id
    handle: JsonBytes
    function: JsonBytes
    unique: JsonBytes
    priority: _Priority
    state: _EndState
    submitted_at: float
    started_at: float
    finished_at: float
    attempts: _Integer
    door: str
    worker_door: str
    worker: JsonBytes
    code: _Integer
    reason: str
    result: JsonBytes
    trials: list[_Attempt] = []
    keeps_result: bool = True
    result_size: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0  # since version 4, as the next two
    keep_until: float = 0.0
    progress: str = ""
    job: _JobOfRecord | None = None  # since version 5


class _End(_Line, frozen=True, tag="end"):
    jobs: int
    records: int
    values: int = 0  # since version 5


class SavedValue(NamedTuple):
    """A value that a server saved under a name: a schedule, the settings of a function, the configuration of a door."""

    name: str
    value: bytes


class FailedJob(NamedTuple):
    """A failed job that is kept whole."""

    record: Record
    job: Job


Entry = Job | Record | FailedJob | SavedValue
_AnyLine = _Header | _Value | _Job | _Record | _End
_encoder: Final = msgspec.json.Encoder()
_decoder: Final[msgspec.json.Decoder[_AnyLine]] = msgspec.json.Decoder(_AnyLine)


def header(made_at: float, next_id: int) -> bytes:
    """Return the first line. `next_id` is the first id that the store had not reserved."""
    return _line(_Header(VERSION, made_at, next_id))


def job_line(job: Job) -> bytes:
    """Return the line of an unfinished job. Scheduled and queued jobs differ only in `run_at`."""
    _require_finite(
        run_at=job.run_at,
        submitted_at=job.submitted_at,
        timeout=job.timeout,
        keep_for=job.keep_for,
        expires_at=job.expires_at,
    )
    state: _State = "dead" if job.state == JobState.DEAD else "waiting"
    entry = _Job(
        job.id, jsonbytes.encode(job.handle), jsonbytes.encode(job.function),
        jsonbytes.encode(job.unique), jsonbytes.encode(job.payload),
        _PRIORITIES[job.priority], state, job.run_at, job.submitted_at, job.attempts, job.count, job.timeout,
        jsonbytes.encode(job.reducer), job.door, job.reason,
        _encode_attempts(job.failed_attempts or []), job.keeps_result, job.keep_for,
        job.expires_at, job.user,
    )  # fmt: skip
    return _line(entry)


def value_line(saved: SavedValue) -> bytes:
    """Return the line of a saved value."""
    return _line(_Value(saved.name, jsonbytes.encode(saved.value)))


def record_line(record: Record, job: Job | None = None) -> bytes:
    """Return the line of a record, and of the failed job that is kept with it.

    Raise BrokenRowError if the record is invalid.
    """
    if not 0 <= record.priority < len(_PRIORITIES) or record.state not in _END_NAMES:
        raise rows.BrokenRowError(f"invalid priority {record.priority} or state {record.state}")
    if not all(isinstance(text, str) for text in (record.door, record.worker_door, record.reason, record.progress)):
        raise rows.BrokenRowError("door, worker_door, reason or progress is not text")
    times = (record.submitted_at, record.started_at, record.finished_at)
    _require_finite(submitted_at=times[0], started_at=times[1], finished_at=times[2], keep_until=record.keep_until)
    entry = _Record(
        record.id, jsonbytes.encode(record.handle), jsonbytes.encode(record.function), jsonbytes.encode(record.unique),
        _PRIORITIES[record.priority], _END_NAMES[record.state], *times, record.attempts, record.door,
        record.worker_door, jsonbytes.encode(record.worker), record.code, record.reason,
        jsonbytes.encode(record.result), _encode_attempts(unpack_attempts(record.failed_attempts)), record.keeps_result,
        record.result_size, record.keep_until, record.progress, None if job is None else _whole(job),
    )  # fmt: skip
    return _line(entry)


def _whole(job: Job) -> _JobOfRecord:
    _require_finite(run_at=job.run_at, timeout=job.timeout, keep_for=job.keep_for, expires_at=job.expires_at)
    return _JobOfRecord(
        jsonbytes.encode(job.payload), job.run_at, job.count, job.timeout, jsonbytes.encode(job.reducer), job.keep_for,
        job.expires_at, job.user,
    )  # fmt: skip


def end(jobs: int, records: int, values: int = 0) -> bytes:
    """Return the last line; its counts let the reader detect missing lines."""
    return _line(_End(jobs, records, values))


class DumpReader:
    """Reads one dump. What it yields is only valid if all lines can be read."""

    def __init__(self) -> None:
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
            if isinstance(entry, _Job):
                yield self._job(entry)
            elif isinstance(entry, _Record):
                yield self._record(entry)
            elif isinstance(entry, _Value):
                self.values += 1
                yield SavedValue(entry.name, jsonbytes.decode(entry.value))
            elif isinstance(entry, _End):
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
        if (self.line == 1) != isinstance(entry, _Header):
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
            version = msgspec.json.decode(line, type=_AnyHeader).version
            if not 1 <= version <= VERSION:
                raise self._error(
                    f"this is a dump of version {version}; this version of Geartrain reads 1 to {VERSION}"
                )

    def _check_end(self, entry: _End) -> None:
        for name, expected, count in (
            ("jobs", entry.jobs, self.jobs),
            ("records", entry.records, self.records),
            ("values", entry.values, self.values),
        ):
            if expected != count:
                raise self._error(f"the end line counts {expected} {name}, but the dump has {count}")

    def _job(self, entry: _Job) -> Job:
        door, keeps_result = self._door(entry)
        row = (
            entry.id, jsonbytes.decode(entry.handle), jsonbytes.decode(entry.function),
            jsonbytes.decode(entry.unique), jsonbytes.decode(entry.payload),
            _PRIORITIES.index(entry.priority), int(_STATES[entry.state]), entry.run_at, entry.submitted_at,
            entry.attempts, entry.count, entry.timeout, jsonbytes.decode(entry.reducer), door, entry.reason,
            pack_attempts(_decode_attempts(entry.trials)), keeps_result, entry.keep_for,
            entry.expires_at, entry.user,
        )  # fmt: skip
        try:
            job = rows.job(row, Job)
        except rows.BrokenRowError as broken:
            raise self._error(str(broken)) from None
        self._require_unique(job.id, f"id {job.id}")
        self._require_unique(job.handle, f"handle {shown(job.handle)}")
        self.jobs += 1
        return job

    def _record(self, entry: _Record) -> Record | FailedJob:
        self.records += 1
        door, keeps_result = self._door(entry)
        result = jsonbytes.decode(entry.result)
        if 0 < entry.result_size <= len(result):
            raise self._error("result_size: a result that was cut is shorter than that")
        record = Record(
            entry.id, jsonbytes.decode(entry.handle), jsonbytes.decode(entry.function), jsonbytes.decode(entry.unique),
            _PRIORITIES.index(entry.priority), int(_ENDS[entry.state]), entry.submitted_at, entry.started_at,
            entry.finished_at, entry.attempts, door, entry.worker_door, jsonbytes.decode(entry.worker),
            entry.code, entry.reason, result, pack_attempts(_decode_attempts(entry.trials)),
            keeps_result, entry.result_size, len(result) if entry.result_size else 0, entry.keep_until,
            entry.progress,
        )  # fmt: skip
        return record if entry.job is None else FailedJob(record, self._failed_job(record, entry.job))

    def _failed_job(self, record: Record, whole: _JobOfRecord) -> Job:
        row = (
            record.id, record.handle, record.function, record.unique, jsonbytes.decode(whole.payload), record.priority,
            record.state, whole.run_at, record.submitted_at, record.attempts, whole.count, whole.timeout,
            jsonbytes.decode(whole.reducer), record.door, record.reason, record.failed_attempts, record.keeps_result,
            whole.keep_for, whole.expires_at, whole.user,
        )  # fmt: skip
        try:
            return rows.failed_job(row, Job)
        except rows.BrokenRowError as broken:
            raise self._error(str(broken)) from None

    def _door(self, entry: _Job | _Record) -> tuple[str, bool]:
        """Return door and `keeps_result`, which older versions wrote as a suffix of the door."""
        if self._version < _KEEPS_RESULT_SINCE and entry.door.endswith(_SUFFIX):
            return entry.door.removesuffix(_SUFFIX), False
        return entry.door, entry.keeps_result

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


def _line(entry: _Line) -> bytes:
    return _encoder.encode(entry) + b"\n"


def _encode_attempts(attempts: list[Attempt]) -> list[_Attempt]:
    for attempt in attempts:
        _require_finite(started_at=attempt.started_at, ended_at=attempt.ended_at)
    return [_Attempt(*attempt[:3], jsonbytes.encode(attempt.worker), attempt.reason) for attempt in attempts]


def _decode_attempts(attempts: list[_Attempt]) -> list[Attempt]:
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
