"""The bodies of submissions and of their answers: a job, and many jobs together."""

from typing import Annotated, Final, Literal

import msgspec

from geartrain.admin import parents, views
from geartrain.doors.http.problems import ProblemDetails
from geartrain.doors.http.worker_commands import LONGEST_WAIT, Seconds
from geartrain.jsonbytes import JsonBytes

LONGEST_KEPT: Final = 366 * 86_400.0  # seconds
MOST_JOBS: Final = 1000  # that one tick submits: a hundredth of a second or a few


class Submission(msgspec.Struct, forbid_unknown_fields=True):
    """A job to be submitted."""

    function: JsonBytes
    payload: JsonBytes = ""
    payload_base64: str | None = None  # instead of `payload`, for bytes that are not UTF-8
    background: bool = True  # durable, and runs whether a client waits or not
    priority: views.PriorityField = "normal"
    unique: JsonBytes = ""
    run_at: Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None = None  # seconds of the epoch
    delay: Seconds | None = None  # seconds from now, instead of `run_at`
    timeout: Seconds = 0.0  # seconds that a worker may take; 0: no limit
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT)] = 0.0  # seconds to wait for its end
    # Seconds that its record and result are kept at least; 0: as long as the server's settings say.
    keep_for: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_KEPT)] = 0.0
    expires_at: Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None = None  # seconds of the epoch
    expires: Annotated[float, msgspec.Meta(gt=0, le=LONGEST_KEPT)] | None = None  # seconds from now, instead
    partition: JsonBytes = ""  # tenant, account or host: partitions of a function take turns
    after: Annotated[list[JsonBytes], msgspec.Meta(max_length=parents.MOST_PARENTS)] = []  # handles; it runs after them
    on_failure: Literal["cancel", "run"] = "cancel"  # if one of them fails, is cancelled or expires


class SubmissionBatch(msgspec.Struct, forbid_unknown_fields=True):
    """Jobs to be submitted together."""

    jobs: Annotated[list[Submission], msgspec.Meta(min_length=1, max_length=MOST_JOBS)]


class SubmittedItem(msgspec.Struct, frozen=True):
    """The handle of a job that was accepted, or why it was refused."""

    handle: JsonBytes | None = None
    problem: ProblemDetails | None = None


class SubmittedBatch(msgspec.Struct, frozen=True):
    """An item for each job, in their order."""

    items: list[SubmittedItem]
    accepted: int
    refused: int
