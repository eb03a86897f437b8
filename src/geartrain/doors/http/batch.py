"""POST /jobs/batch: submit many background jobs with one request.

All jobs of a request are submitted in one tick, so the store writes them in one transaction: after a crash either all
of those that were accepted are there, or none. A job that is refused does not keep the others from being accepted.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from geartrain.doors.http import job_json, problems
from geartrain.doors.http import request as api
from geartrain.doors.http import submit as single
from geartrain.doors.http.problems import ProblemDetails, Refusal
from geartrain.doors.http.request import ApiRequest
from geartrain.doors.http.response import Response
from geartrain.doors.http.route import Answer
from geartrain.doors.http.submission import Submission, SubmissionBatch, SubmittedItem
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import RESERVING
from geartrain.errors import RequestError
from geartrain.runtime.submitted_handle import SubmittedHandle

_encode: Final = msgspec.json.Encoder().encode


def submit(request: ApiRequest) -> Answer:
    """POST /jobs/batch."""
    batch: SubmissionBatch = request.body
    jobs = batch.jobs
    for submission in jobs:
        if submission.after:
            raise Refusal("bad-request", "jobs of a batch cannot wait for others (after): submit them one by one")
    outcomes = [_submit(request, submission) for submission in jobs]
    for outcome in outcomes:
        if isinstance(outcome, LiveJob) and outcome.state is RESERVING:
            return _settle(request, outcomes)
    return api.when_durable(_response(outcomes))


async def _settle(request: ApiRequest, outcomes: list[LiveJob | ProblemDetails]) -> Response:
    """Wait until it is known which jobs have the unique keys."""
    tick_loop = request.context.tick_loop
    engine = tick_loop.engine
    settled = [SubmittedHandle(engine, outcome) if isinstance(outcome, LiveJob) else outcome for outcome in outcomes]
    await tick_loop.durable()
    for outcome in settled:
        if isinstance(outcome, SubmittedHandle):
            await outcome.settled()
    return _response(settled)


def _submit(request: ApiRequest, submission: Submission) -> LiveJob | ProblemDetails:
    try:
        job = single.queue_usual(request, submission)
        if job is not None:
            return job
        single.check(submission)
        if not submission.background or submission.wait:
            raise Refusal("bad-request", "jobs of a batch run in the background, and nothing waits for them")
        return single.queue(request.begin_tick(), submission)
    except Refusal as refusal:
        return problems.details(refusal.kind, refusal.detail)
    except RequestError as error:
        return problems.details(problems.kind_of(error), str(error))


def _response(outcomes: Sequence[LiveJob | SubmittedHandle | ProblemDetails]) -> Response:
    """A `SubmittedBatch` as JSON, without an object for each of a thousand items."""
    items: list[bytes] = []
    refused = 0
    for outcome in outcomes:
        if isinstance(outcome, (LiveJob, SubmittedHandle)):
            handle = outcome.handle
        else:
            refused += 1
            items.append(_encode(SubmittedItem(problem=outcome)))
            continue
        items.append(b'{"handle":%b,"problem":null}' % job_json.string(handle))
    body = b'{"items":[%b],"accepted":%d,"refused":%d}' % (b",".join(items), len(items) - refused, refused)
    return Response(body, 200, None, api.JSON)
