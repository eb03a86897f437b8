"""The table of routes. The router, access control, the reading of requests and the OpenAPI document are made from it.

The routes of the operators' verbs come from `admin/verbs.py`; the others are written here.
"""

from typing import Any, Final

from geartrain.admin import views
from geartrain.doors.http import events, health, metrics, openapi, session, submit, verb_routes, worker_api
from geartrain.doors.http.route import (
    ANY_TOKEN,
    ANYBODY,
    API,
    FOLLOWERS,
    READERS,
    SUBMITTERS,
    WORKERS,
    RawBytes,
    Route,
    Stream,
)

_NOT_FOUND: Final = ("not-found",)
_REFUSED: Final = ("not-found", "conflict", "unavailable")

JOB_ROUTES: Final = (
    Route(
        "POST", f"{API}/jobs", submit.submit, SUBMITTERS, "Submit a job, and wait for its end if requested",
        views.JobView, status=201, body=submit.Submission, others=(200, 202),
        problems=("queue-full", "unavailable", "not-over"),
    ),
    Route(
        "GET", f"{API}/jobs/{{handle}}/events", events.job_events, FOLLOWERS,
        "Stream the progress, data and warnings of a job, and its end", Stream,
        problems=("not-found", "unavailable"),
    ),
)  # fmt: skip

_REPORT: Final = f"{API}/workers/{{id}}/jobs/{{handle}}"

WORKER_ROUTES: Final = (
    Route(
        "POST", f"{API}/workers", worker_api.register, WORKERS, "Register a worker", worker_api.Registered, status=201,
        body=worker_api.Registration, problems=("conflict", "unavailable"),
    ),
    Route(
        "POST", f"{API}/workers/{{id}}/claim", worker_api.claim, WORKERS, "Claim the next job, or wait for one",
        worker_api.Assignment, query=worker_api.ClaimQuery, others=(204,), problems=_NOT_FOUND,
    ),
    Route(
        "POST", f"{API}/workers/{{id}}/renew", worker_api.renew, WORKERS, "Renew the worker's lease",
        worker_api.Registered, problems=_NOT_FOUND,
    ),
    Route(
        "DELETE", f"{API}/workers/{{id}}", worker_api.unregister, WORKERS,
        "Unregister the worker; its jobs return to their queues", status=204, problems=_NOT_FOUND,
    ),
    Route(
        "POST", f"{_REPORT}/progress", worker_api.progress, WORKERS, "Report the progress of a job", status=204,
        body=worker_api.ProgressReport, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/data", worker_api.data, WORKERS, "Send the body to the job's clients as partial data",
        status=204, body=RawBytes, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/warning", worker_api.warning, WORKERS, "Send the body to the job's clients as a warning",
        status=204, body=RawBytes, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/complete", worker_api.complete, WORKERS, "Complete a job; the body is the result",
        status=204, body=RawBytes, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/fail", worker_api.fail, WORKERS, "Report that a job failed", status=204,
        body=worker_api.FailureReport, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/reschedule", worker_api.reschedule, WORKERS, "Put a job back, to run again later",
        status=204, body=worker_api.Postponement, problems=_REFUSED,
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
        Stream, query=events.EventsQuery, problems=("unavailable",),
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
