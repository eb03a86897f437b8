"""Submit, work and finish a job with the client that openapi-python-client made; prints what it saw as JSON.

Run by the peer's own interpreter, with the folder of the generated package as the first argument.
"""

import io
import json
import sys

sys.path.insert(0, sys.argv[1])

from geartrain_client import Client
from geartrain_client.api.jobs import get_jobs, get_jobs_handle, get_jobs_handle_result, post_jobs, post_jobs_batch
from geartrain_client.api.workers import (
    delete_workers_id,
    post_workers,
    post_workers_id_claim,
    post_workers_id_jobs_handle_complete,
    post_workers_id_jobs_handle_progress,
)
from geartrain_client.models import (
    JobState,
    Priority,
    ProblemDetails,
    ProgressReport,
    Registration,
    Submission,
    SubmissionBatch,
)
from geartrain_client.types import File

url, function = sys.argv[2:]
with Client(base_url=url) as client:
    job = post_jobs.sync(client=client, body=Submission(function=function, payload="hello", priority=Priority.HIGH))
    assert job.state is JobState.QUEUED, job
    several = post_jobs_batch.sync(
        client=client, body=SubmissionBatch(jobs=[Submission(function=function), Submission(function="")])
    )
    worker = post_workers.sync(client=client, body=Registration(functions=[function])).id
    claimed = post_workers_id_claim.sync(worker, client=client, wait=10)
    progress = ProgressReport(numerator=1, denominator=2)
    post_workers_id_jobs_handle_progress.sync(worker, claimed.handle, client=client, body=progress)
    running = get_jobs_handle.sync(job.handle, client=client)
    result = File(payload=io.BytesIO(claimed.payload.upper().encode() + b"\xff"))
    completed = post_workers_id_jobs_handle_complete.sync_detailed(worker, claimed.handle, client=client, body=result)
    delete_workers_id.sync(worker, client=client)
    ended = get_jobs_handle.sync(job.handle, client=client)
    unknown = get_jobs_handle.sync("H:none:1", client=client)
    assert isinstance(unknown, ProblemDetails), unknown
    print(
        json.dumps(
            {
                "priority": claimed.priority,
                "progress": [running.numerator, running.denominator],
                "completed": completed.status_code,
                "state": ended.state,
                "result": get_jobs_handle_result.sync(job.handle, client=client).payload.read().hex(),
                "batch": [several.accepted, several.refused, several.items[1].problem.kind],
                "listed": len(get_jobs.sync(client=client, function=function).items),
                "unknown": unknown.kind,
            }
        )
    )
