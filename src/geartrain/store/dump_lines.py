"""The lines of a dump as they are in JSON. docs/dump-format.md specifies them."""

from typing import Annotated, Final, Literal

import msgspec

from geartrain.jsonbytes import JsonBytes
from geartrain.model import JobState

# Far below SQLite's largest integer, 2**63 - 1, so that a server can count on from any id.
LAST_ID: Final = 2**61

_Id = Annotated[int, msgspec.Meta(ge=1, le=LAST_ID)]
_NextId = Annotated[int, msgspec.Meta(ge=1, le=2 * LAST_ID)]
_Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Priority = Literal["high", "normal", "low"]
StateName = Literal["waiting", "dead"]
EndStateName = Literal["done", "failed", "cancelled", "expired"]
PRIORITIES: Final[tuple[_Priority, ...]] = ("high", "normal", "low")  # by number
STATES: Final[dict[StateName, JobState]] = {"waiting": JobState.QUEUED, "dead": JobState.DEAD}
ENDS: Final[dict[EndStateName, JobState]] = {
    "done": JobState.DONE,
    "failed": JobState.FAILED,
    "cancelled": JobState.CANCELLED,
    "expired": JobState.EXPIRED,
}
END_NAMES: Final = {int(state): name for name, state in ENDS.items()}


class DumpLine(msgspec.Struct, frozen=True, tag_field="geartrain", forbid_unknown_fields=True):
    """A line is an object; its member `geartrain` says which kind."""


class DumpAnyHeader(msgspec.Struct, frozen=True):
    """What the header has in every version, including future ones."""

    geartrain: Literal["dump"]
    version: int


class DumpHeader(DumpLine, frozen=True, tag="dump"):
    version: int
    made_at: float
    next_id: _NextId


class DumpAttempt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    started_at: float
    ended_at: float
    door: str
    worker: JsonBytes
    why: str


class DumpJob(DumpLine, frozen=True, tag="job"):
    id: _Id
    handle: JsonBytes
    function: JsonBytes
    unique: JsonBytes
    payload: JsonBytes
    priority: _Priority
    state: StateName
    run_at: float
    submitted_at: float
    attempts: _Integer
    count: _Integer
    timeout: float
    reducer: JsonBytes
    door: str
    reason: str
    trials: list[DumpAttempt] = []  # since version 2
    keeps_result: bool = True  # since version 3
    keep_for: float = 0.0  # since version 4
    expires_at: float = 0.0  # since version 5
    user: str = ""  # since version 5
    partition: JsonBytes = ""  # since version 7
    after: list[_Id] = []  # since version 8: ids of the jobs that it waits for
    runs_anyway: bool = False  # since version 8: although one of them failed


class DumpJobOfRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a failed job that is kept whole has besides its record."""

    payload: JsonBytes
    run_at: float
    count: _Integer
    timeout: float
    reducer: JsonBytes
    keep_for: float
    expires_at: float
    user: str
    partition: JsonBytes = ""  # since version 7
    after: list[_Id] = []  # since version 8: ids of the jobs that it waits for
    runs_anyway: bool = False  # since version 8: although one of them failed


class DumpValue(DumpLine, frozen=True, tag="value"):
    name: str
    value: JsonBytes


class DumpRecord(DumpLine, frozen=True, tag="record"):
    id: _Id
    handle: JsonBytes
    function: JsonBytes
    unique: JsonBytes
    priority: _Priority
    state: EndStateName
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
    trials: list[DumpAttempt] = []
    keeps_result: bool = True
    result_size: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0  # since version 4, as the next two
    keep_until: float = 0.0
    progress: str = ""
    job: DumpJobOfRecord | None = None  # since version 5
    remove_at: float = 0.0  # since version 6


class DumpEnd(DumpLine, frozen=True, tag="end"):
    jobs: int
    records: int
    values: int = 0  # since version 5
