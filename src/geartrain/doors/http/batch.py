"""POST /jobs/batch: submit many background jobs with one request.

All jobs of a request are submitted in one tick, so the store writes them in one transaction: after a crash either all
of those that were accepted are there, or none. A job that is refused does not keep the others from being accepted.
"""

from geartrain import jsonbytes
from geartrain.doors.http import problems
from geartrain.doors.http import request as api
from geartrain.doors.http import submit as single
from geartrain.doors.http.problems import ProblemDetails, Refusal
from geartrain.doors.http.request import ApiRequest
from geartrain.doors.http.response import Response
from geartrain.doors.http.route import Answer
from geartrain.doors.http.submission import Submission, SubmissionBatch, SubmittedBatch, SubmittedItem
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import RESERVING
from geartrain.errors import RequestError
from geartrain.runtime.submitted_handle import SubmittedHandle


def submit(request: ApiRequest) -> Answer:
    """POST /jobs/batch."""
    batch: SubmissionBatch = request.body
    if any(submission.after for submission in batch.jobs):
        raise Refusal("bad-request", "jobs of a batch cannot wait for others (after): submit them one by one")
    outcomes = [_submit(request, submission) for submission in batch.jobs]
    if any(isinstance(outcome, LiveJob) and outcome.state is RESERVING for outcome in outcomes):
        return _settle(request, outcomes)
    return api.when_durable(_response([_item(outcome) for outcome in outcomes]))


async def _settle(request: ApiRequest, outcomes: list[LiveJob | ProblemDetails]) -> Response:
    """Wait until it is known which jobs have the unique keys."""
    tick_loop = request.context.tick_loop
    engine = tick_loop.engine
    settled = [SubmittedHandle(engine, outcome) if isinstance(outcome, LiveJob) else outcome for outcome in outcomes]
    await tick_loop.durable()
    for outcome in settled:
        if isinstance(outcome, SubmittedHandle):
            await outcome.settled()
    return _response([_item(outcome) for outcome in settled])


def _submit(request: ApiRequest, submission: Submission) -> LiveJob | ProblemDetails:
    try:
        single.check(submission)
        if not submission.background or submission.wait:
            raise Refusal("bad-request", "jobs of a batch run in the background, and nothing waits for them")
        return single.queue(request, submission)
    except Refusal as refusal:
        return problems.details(refusal.kind, refusal.detail)
    except RequestError as error:
        return problems.details(problems.kind_of(error), str(error))


def _item(outcome: LiveJob | SubmittedHandle | ProblemDetails) -> SubmittedItem:
    if isinstance(outcome, ProblemDetails):
        return SubmittedItem(problem=outcome)
    return SubmittedItem(handle=jsonbytes.encode(outcome.handle))


def _response(items: list[SubmittedItem]) -> Response:
    refused = sum(item.problem is not None for item in items)
    return api.json(SubmittedBatch(items, len(items) - refused, refused))
