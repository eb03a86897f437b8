"""A dump: jobs and records as lines of JSON, for backups, moves and people. docs/dump-format.md has the rules.

No I/O: jobs become lines, lines become jobs. What fills and empties files is elsewhere.

>>> from geartrain.model import Job
>>> job = Job(7, b"H:host:7", b"reverse", b"", b"\\xff", 1, True, 5.0, 5.0, "gearman")
>>> lines = [header(made_at=6.0, next_id=8), job_line(job), end(jobs=1, records=0)]
>>> lines[0]
b'{"geartrain":"dump","version":3,"made_at":6.0,"next_id":8}\\n'
>>> [found.payload for found in Reader().read(lines)]
[b'\\xff']
"""

import contextlib
import math
import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Final, Literal

import msgspec

from geartrain import jsonbytes
from geartrain.errors import GeartrainError
from geartrain.jsonbytes import JsonBytes
from geartrain.model import Attempt, Job, JobState, pack_attempts, unpack_attempts
from geartrain.store import rows
from geartrain.store.contract import Record

VERSION: Final = 3
# So far below the last number of SQLite's, 2**63 - 1, that servers can go on counting from any id.
LAST_ID: Final = 2**61

_KEEPS_RESULT_SINCE: Final = 3
_SUFFIX: Final = "+throw-away"  # of the door, before that version
_SQLITE_MAGIC: Final = b"SQLite format 3\0"
_PLACE: Final = re.compile(r"(.*) - at `\$\.?(.*)`")


class DumpError(GeartrainError):
    """A dump that cannot be read; the text names the line."""


_Id = Annotated[int, msgspec.Meta(ge=1, le=LAST_ID)]
_NextId = Annotated[int, msgspec.Meta(ge=1, le=2 * LAST_ID)]
_Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Priority = Literal["high", "normal", "low"]
_State = Literal["waiting", "dead"]
_EndState = Literal["done", "failed", "cancelled"]
_PRIORITIES: Final[tuple[_Priority, ...]] = ("high", "normal", "low")  # by number
_STATES: Final[dict[_State, JobState]] = {"waiting": JobState.QUEUED, "dead": JobState.DEAD}
_ENDS: Final[dict[_EndState, JobState]] = {
    "done": JobState.DONE,
    "failed": JobState.FAILED,
    "cancelled": JobState.CANCELLED,
}
_END_NAMES: Final = {int(state): name for name, state in _ENDS.items()}


class _Line(msgspec.Struct, frozen=True, tag_field="geartrain", forbid_unknown_fields=True):
    """Every line is an object, whose first member says what it is."""


class _AnyHeader(msgspec.Struct, frozen=True):
    """What the first line of every version has, those to come included."""

    geartrain: Literal["dump"]
    version: int


class _Header(_Line, frozen=True, tag="dump"):
    version: int
    made_at: float
    next_id: _NextId


class _Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
    trials: list[_Trial] = []  # since version 2
    keeps_result: bool = True  # since version 3


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
    trials: list[_Trial] = []
    keeps_result: bool = True


class _End(_Line, frozen=True, tag="end"):
    jobs: int
    records: int


_Entry = _Header | _Job | _Record | _End
_encoder: Final = msgspec.json.Encoder()
_decoder: Final[msgspec.json.Decoder[_Entry]] = msgspec.json.Decoder(_Entry)


def header(made_at: float, next_id: int) -> bytes:
    """The first line. `next_id` is the first id that the store had not promised."""
    return _line(_Header(VERSION, made_at, next_id))


def job_line(job: Job) -> bytes:
    """A job that is not over. Whether it waits for a time or for a worker, only `run_at` and the clock can say."""
    _refuse_endless(run_at=job.run_at, submitted_at=job.submitted_at, timeout=job.timeout)
    state: _State = "dead" if job.state == JobState.DEAD else "waiting"
    entry = _Job(
        job.id, jsonbytes.encode(job.handle), jsonbytes.encode(job.function),
        jsonbytes.encode(job.unique), jsonbytes.encode(job.payload),
        _PRIORITIES[job.priority], state, job.run_at, job.submitted_at, job.attempts, job.count, job.timeout,
        jsonbytes.encode(job.reducer), job.door, job.reason, _shown_trials(job.failed_attempts or []), job.keeps_result,
    )  # fmt: skip
    return _line(entry)


def record_line(record: Record) -> bytes:
    """What is kept of a job that is over."""
    if not 0 <= record.priority < len(_PRIORITIES) or record.state not in _END_NAMES:
        raise rows.BrokenRowError(f"priority {record.priority} or state {record.state} is not that of a record")
    if not all(isinstance(text, str) for text in (record.door, record.worker_door, record.reason)):
        raise rows.BrokenRowError("door, worker_door or reason is no text")
    times = (record.submitted_at, record.started_at, record.finished_at)
    _refuse_endless(submitted_at=times[0], started_at=times[1], finished_at=times[2])
    entry = _Record(
        record.id, jsonbytes.encode(record.handle), jsonbytes.encode(record.function), jsonbytes.encode(record.unique),
        _PRIORITIES[record.priority], _END_NAMES[record.state], *times, record.attempts, record.door,
        record.worker_door, jsonbytes.encode(record.worker), record.code, record.reason,
        jsonbytes.encode(record.result), _shown_trials(unpack_attempts(record.failed_attempts)), record.keeps_result,
    )  # fmt: skip
    return _line(entry)


def end(jobs: int, records: int) -> bytes:
    """The last line: without it, or with other numbers than were counted, the dump is not whole."""
    return _line(_End(jobs, records))


class Reader:
    """Reads one dump; what its lines say is only to be trusted when all of them were read."""

    def __init__(self) -> None:
        self.line = 0  # how many were read
        self.jobs = 0
        self.records = 0
        self.next_id = 0  # what the header promises
        self._version = VERSION
        self._lines: dict[int | bytes, int] = {}  # on which one a job's id and handle were

    def read(self, lines: Iterable[bytes]) -> Iterator[Job | Record]:
        """Every job and record of the dump; a DumpError names the line that is wrong."""
        over = False
        for line in lines:
            self.line += 1
            if over:
                raise self._error("there is more after the end; load one dump at a time")
            entry = self._entry(line)
            if isinstance(entry, _Job):
                yield self._job(entry)
            elif isinstance(entry, _Record):
                yield self._record(entry)
            elif isinstance(entry, _End):
                self._check_end(entry)
                over = True
            else:
                self.next_id = entry.next_id
                self._version = entry.version
        if not over:
            raise DumpError(
                f"the dump is cut off after line {self.line}: its end is missing" if self.line else "it is empty"
            )

    def _entry(self, line: bytes) -> _Entry:
        if self.line == 1:
            self._check_version(line)
        try:
            entry = _decoder.decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise self._error(self._complaint(line, error)) from None
        if (self.line == 1) != isinstance(entry, _Header):
            raise self._error('a dump begins with a line of "geartrain": "dump", and has no other of these')
        return entry

    def _complaint(self, line: bytes, error: Exception) -> str:
        if self.line == 1 and line.startswith(_SQLITE_MAGIC):
            return "this is a store's own file and no dump; name it with --store"
        if not line.endswith(b"\n") and not isinstance(error, msgspec.ValidationError):
            return "the dump is cut off in the middle of this line" if self.line > 1 else "this is no dump"
        return _readable(error)

    def _check_version(self, line: bytes) -> None:
        with contextlib.suppress(msgspec.MsgspecError, ValueError):
            version = msgspec.json.decode(line, type=_AnyHeader).version
            if not 1 <= version <= VERSION:
                raise self._error(
                    f"this is a dump of version {version}; this version of Geartrain reads 1 to {VERSION}"
                )

    def _check_end(self, entry: _End) -> None:
        for name, said, counted in (("jobs", entry.jobs, self.jobs), ("records", entry.records, self.records)):
            if said != counted:
                raise self._error(f"the end says {said} {name}, but there were {counted}: lines are missing")

    def _job(self, entry: _Job) -> Job:
        door, keeps_result = self._door(entry)
        row = (
            entry.id, jsonbytes.decode(entry.handle), jsonbytes.decode(entry.function),
            jsonbytes.decode(entry.unique), jsonbytes.decode(entry.payload),
            _PRIORITIES.index(entry.priority), int(_STATES[entry.state]), entry.run_at, entry.submitted_at,
            entry.attempts, entry.count, entry.timeout, jsonbytes.decode(entry.reducer), door, entry.reason,
            pack_attempts(_read_trials(entry.trials)), keeps_result,
        )  # fmt: skip
        try:
            job = rows.job(row, Job)
        except rows.BrokenRowError as broken:
            raise self._error(str(broken)) from None
        self._first(job.id, f"id {job.id}")
        self._first(job.handle, f"handle {shown(job.handle)}")
        self.jobs += 1
        return job

    def _record(self, entry: _Record) -> Record:
        self.records += 1
        door, keeps_result = self._door(entry)
        return Record(
            entry.id, jsonbytes.decode(entry.handle), jsonbytes.decode(entry.function), jsonbytes.decode(entry.unique),
            _PRIORITIES.index(entry.priority), int(_ENDS[entry.state]), entry.submitted_at, entry.started_at,
            entry.finished_at, entry.attempts, door, entry.worker_door, jsonbytes.decode(entry.worker),
            entry.code, entry.reason, jsonbytes.decode(entry.result), pack_attempts(_read_trials(entry.trials)),
            keeps_result,
        )  # fmt: skip

    def _door(self, entry: _Job | _Record) -> tuple[str, bool]:
        """The door and `keeps_result`, which older versions wrote as a suffix of the door."""
        if self._version < _KEEPS_RESULT_SINCE and entry.door.endswith(_SUFFIX):
            return entry.door.removesuffix(_SUFFIX), False
        return entry.door, entry.keeps_result

    def _first(self, name: int | bytes, what: str) -> None:
        before = self._lines.setdefault(name, self.line)
        if before != self.line:
            raise self._error(f"{what} was on line {before} already")

    def _error(self, text: str) -> DumpError:
        return DumpError(f"line {self.line}: {text}")


def shown(name: bytes) -> str:
    """A handle or another name, for a message: nothing in it can move the cursor of a terminal.

    >>> shown(b"H:host:1 \\xff \\x1b[2J")
    'H:host:1 \\\\xff \\\\x1b[2J'
    """
    text = name.decode("utf-8", "backslashreplace")
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def _line(entry: _Line) -> bytes:
    return _encoder.encode(entry) + b"\n"


def _shown_trials(trials: list[Attempt]) -> list[_Trial]:
    for trial in trials:
        _refuse_endless(started_at=trial.started_at, ended_at=trial.ended_at)
    return [_Trial(*trial[:3], jsonbytes.encode(trial.worker), trial.reason) for trial in trials]


def _read_trials(trials: list[_Trial]) -> list[Attempt]:
    return [
        Attempt(trial.started_at, trial.ended_at, trial.door, jsonbytes.decode(trial.worker), trial.why)
        for trial in trials
    ]


def _refuse_endless(**times: float) -> None:
    """JSON has no word for infinity."""
    for name, value in times.items():
        if not math.isfinite(value):
            raise rows.BrokenRowError(f"{name} is {value}, which is no time")


def _readable(error: Exception) -> str:
    """msgspec's words with the place in front: `id: expected int, got str`."""
    if not isinstance(error, msgspec.ValidationError):
        return f"this is not JSON ({error})"
    text = str(error)
    place = _PLACE.fullmatch(text)
    if place is not None:
        text = f"{place[2]}: {place[1]}" if place[2] else place[1]
    return text.replace("`", "")
