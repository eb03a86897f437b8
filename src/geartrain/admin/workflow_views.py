"""What a workflow is to those who submit one, look at one, or need the results of its jobs."""

from typing import Literal

import msgspec

from geartrain.admin.views import PriorityField, StateField
from geartrain.jsonbytes import JsonBytes


class WorkflowMember(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job of a workflow to be submitted."""

    function: JsonBytes
    payload: JsonBytes = ""
    after: list[int] = []  # places of other jobs in the list, from 0; it runs after them
    on_failure: Literal["cancel", "run"] = "cancel"  # if one of them fails, is cancelled or expires
    priority: PriorityField = "normal"
    run_at: float = 0.0  # seconds of the epoch; 0: when it waits for nothing
    timeout: float = 0.0  # seconds that a worker may take; 0: no limit
    keep_for: float = 0.0  # seconds that its record and result are kept at least
    expires_at: float = 0.0  # no worker gets it from then on; 0: it does not expire
    partition: JsonBytes = ""


class WorkflowSubmitted(msgspec.Struct, frozen=True):
    """The handle of a workflow, and those of its jobs in their order."""

    handle: JsonBytes
    jobs: list[JsonBytes]


class WorkflowJobView(msgspec.Struct, frozen=True):
    """A job of a workflow. Its state is `ended` if its record is no longer kept."""

    place: int
    handle: JsonBytes
    function: JsonBytes
    state: str
    after: list[tuple[int, int]]  # ranges of places, from the first to the last
    on_failure: str


class MemberResult(msgspec.Struct, frozen=True):
    """What became of a job of a workflow."""

    id: int
    function: JsonBytes
    state: StateField
    code: int
    reason: str
    result: JsonBytes | None  # null: not all of it is kept


class MemberResults(msgspec.Struct, frozen=True):
    """Those jobs that have a record, of as many as fit into an answer."""

    results: list[MemberResult]
    rest: str  # the ids that are still to be asked for, as ranges; empty: none


class WorkflowGroupView(msgspec.Struct, frozen=True):
    """Jobs of a workflow that follow each other and are alike: the same function, waiting for the same jobs."""

    function: JsonBytes
    first: int  # place of the first
    handle: JsonBytes  # of the first
    count: int
    parents: list[int]  # places of the groups that it waits for
    on_failure: str
    states: dict[str, int]


class WorkflowView(msgspec.Struct, frozen=True):
    """A workflow, how many of its jobs are in which state, and a page of them."""

    handle: JsonBytes
    name: str
    state: Literal["running", "done", "failed", "cancelled"]
    reason: str
    submitted_at: float
    finished_at: float | None
    count: int
    states: dict[str, int]
    groups: list[WorkflowGroupView]  # the first 500
    jobs: list[WorkflowJobView]
    after: str  # of the next page; empty: this is the last one
