"""POST /jobs/batch: submit many background jobs with one request.

All jobs of a request are submitted in one tick, so the store writes them in one transaction: after a crash either all
of those that were accepted are there, or none. A job that is refused does not keep the others from being accepted.
"""

from typing import Annotated, Final

import msgspec
from starlette.responses import Response

from geartrain import jsonbytes
from geartrain.doors.http import problems
from geartrain.doors.http import request as api
from geartrain.doors.http import submit as single
from geartrain.doors.http.problems import ProblemDetails, Refusal
from geartrain.doors.http.request import ApiRequest
from geartrain.doors.http.submit import Submission
from geartrain.errors import RequestError
from geartrain.jsonbytes import JsonBytes
from geartrain.runtime.submitted_handle import SubmittedHandle

MOST_JOBS: Final = 1000  # that one tick submits: a hundredth of a second or a few


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


async def submit(request: ApiRequest) -> Response:
    """POST /jobs/batch."""
    batch: SubmissionBatch = request.body
    if any(submission.after for submission in batch.jobs):
        raise Refusal("bad-request", "jobs of a batch cannot wait for others (after): submit them one by one")
    outcomes = [_submit(request, submission) for submission in batch.jobs]
    accepted = sum(isinstance(outcome, SubmittedHandle) for outcome in outcomes)
    if accepted:
        await request.context.tick_loop.durable()
    for outcome in outcomes:
        if isinstance(outcome, SubmittedHandle):
            await outcome.settled()
    items = [_item(outcome) for outcome in outcomes]
    return api.json(SubmittedBatch(items, accepted, len(items) - accepted))


def _submit(request: ApiRequest, submission: Submission) -> SubmittedHandle | ProblemDetails:
    try:
        single.check(submission)
        if not submission.background or submission.wait:
            raise Refusal("bad-request", "jobs of a batch run in the background, and nothing waits for them")
        return SubmittedHandle(request.context.tick_loop.engine, single.queue(request, submission))
    except Refusal as refusal:
        return problems.details(refusal.kind, refusal.detail)
    except RequestError as error:
        return problems.details(problems.kind_of(error), str(error))


def _item(outcome: SubmittedHandle | ProblemDetails) -> SubmittedItem:
    if isinstance(outcome, SubmittedHandle):
        return SubmittedItem(handle=jsonbytes.encode(outcome.handle))
    return SubmittedItem(problem=outcome)
