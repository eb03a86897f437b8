"""The table of routes. The router, access control, the reading of requests and the OpenAPI document are made from it.

The routes of the operators' verbs come from `admin/verbs`; the others are written here.
"""

from typing import Any, Final

from geartrain.admin import views
from geartrain.doors.http import (
    batch,
    events,
    health,
    metrics,
    openapi,
    session,
    submission,
    submit,
    verb_routes,
    worker_commands,
)
from geartrain.doors.http.route import (
    ANY_TOKEN,
    ANYBODY,
    API,
    FOLLOWERS,
    READERS,
    WORKERS,
    RawBytes,
    Route,
    ServerSentEvents,
)

_NOT_FOUND: Final = ("not-found",)
_REFUSED: Final = ("not-found", "conflict", "unavailable")

JOB_ROUTES: Final = (
    Route(
        # The engine asks for the right to submit: jobs of the control function are for every token.
        "POST", f"{API}/jobs", submit.submit, ANY_TOKEN, "Submit a job, and wait for its end if requested",
        views.JobView, status=201, body=submission.Submission, others=(200, 202),
        problems=("queue-full", "unavailable", "not-over"),
    ),
    Route(
        "POST", f"{API}/jobs/batch", batch.submit, ANY_TOKEN, "Submit many background jobs",
        submission.SubmittedBatch, body=submission.SubmissionBatch, problems=("unavailable",),
    ),
    Route(
        "GET", f"{API}/jobs/{{handle}}/events", events.job_events, FOLLOWERS,
        "Stream the progress, data and warnings of a job, and its end", ServerSentEvents,
        problems=("not-found", "unavailable"),
    ),
)  # fmt: skip

_REPORT: Final = f"{API}/workers/{{id}}/jobs/{{handle}}"

WORKER_ROUTES: Final = (
    Route(
        "POST", f"{API}/workers", worker_commands.register, WORKERS, "Register a worker",
        worker_commands.RegisteredWorker, status=201, body=worker_commands.Registration,
        problems=("conflict", "unavailable"),
    ),
    Route(
        "POST", f"{API}/workers/{{id}}/claim", worker_commands.claim, WORKERS, "Claim the next job, or wait for one",
        worker_commands.ClaimedJob, query=worker_commands.ClaimQuery, others=(204,), problems=_NOT_FOUND,
    ),
    Route(
        "POST", f"{API}/workers/{{id}}/renew", worker_commands.renew, WORKERS, "Renew the worker's lease",
        worker_commands.WorkerRenewal, query=worker_commands.WorkerRenewalQuery, problems=_NOT_FOUND,
    ),
    Route(
        "DELETE", f"{API}/workers/{{id}}", worker_commands.unregister, WORKERS,
        "Unregister the worker; its jobs return to their queues", status=204, problems=_NOT_FOUND,
    ),
    Route(
        "POST", f"{_REPORT}/progress", worker_commands.progress, WORKERS, "Report the progress of a job", status=204,
        body=worker_commands.ProgressReport, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/data", worker_commands.data, WORKERS, "Send the body to the job's clients as partial data",
        status=204, body=RawBytes, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/warning", worker_commands.warning, WORKERS,
        "Send the body to the job's clients as a warning", status=204, body=RawBytes, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/complete", worker_commands.complete, WORKERS, "Complete a job; the body is the result",
        status=204, body=RawBytes, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/fail", worker_commands.fail, WORKERS, "Report that a job failed", status=204,
        body=worker_commands.FailureReport, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/reschedule", worker_commands.reschedule, WORKERS, "Put a job back, to run again later",
        status=204, body=worker_commands.Postponement, problems=_REFUSED,
    ),
)  # fmt: skip

SERVER_ROUTES: Final = (
    Route(
        "GET", f"{API}/connections", health.connections, READERS, "List open doors with their connections",
        list[views.DoorView],
    ),
    Route(
        "GET", f"{API}/events", events.server_events, READERS,
        "Stream the overview once a second, and job events if requested",
        ServerSentEvents, query=events.EventsQuery, problems=("unavailable",),
    ),
    Route("GET", f"{API}/session", session.session, ANYBODY, "Show the scopes of the client", session.SessionView),
    Route(
        "POST", f"{API}/login", session.log_in, ANYBODY, "Exchange a token for a session cookie", session.SessionView,
        body=session.Login, problems=("unauthorized",),
    ),
    Route("POST", f"{API}/logout", session.log_out, ANYBODY, "End the session of the cookie", status=204),
    Route("GET", f"{API}/openapi.json", openapi.description, ANY_TOKEN, "This document", dict[str, Any]),
    Route("GET", "/metrics", metrics.metrics, READERS, "Metrics for Prometheus", str),
    Route("GET", "/healthz", health.healthz, ANYBODY, "Check that the server answers", health.HealthStatus),
    Route(
        "GET", "/readyz", health.readyz, ANYBODY, "Check that the server accepts jobs and can make them durable",
        health.HealthStatus, problems=("unavailable",),
    ),
)  # fmt: skip

ROUTES: Final[tuple[Route, ...]] = (*verb_routes.routes(), *JOB_ROUTES, *WORKER_ROUTES, *SERVER_ROUTES)
