"""Every route, once: the router, the guard, reading parameters and bodies, and the description follow from it."""

from typing import Any, Final

from geartrain.admin import views
from geartrain.doors.http import (
    events,
    functions,
    jobs,
    metrics,
    openapi,
    overview,
    schedules,
    session,
    submit,
    worker_api,
)
from geartrain.doors.http.route import (
    ADMINS,
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

OVERALL: Final = (
    Route("GET", f"{API}/overview", overview.overview, READERS, "The whole server at a glance", views.Overview),
    Route(
        "GET", f"{API}/history", overview.history, READERS, "The last minutes, for charts",
        list[views.Sample], query=overview.HistoryQuery,
    ),
    Route("GET", f"{API}/system", overview.system, READERS, "What runs, and on what", views.System),
    Route(
        "GET", f"{API}/connections", overview.connections, READERS, "Every open door and its connections",
        list[views.DoorView],
    ),
    Route(
        "GET", f"{API}/events", events.server_events, READERS, "The overview once a second; job events if requested",
        Stream, query=events.EventsQuery, problems=("unavailable",),
    ),
)  # fmt: skip

FUNCTIONS: Final = (
    Route(
        "GET", f"{API}/functions", functions.functions, READERS, "Functions, page by page",
        views.Page[views.FunctionView], query=functions.FunctionsQuery,
    ),
    Route(
        "GET", f"{API}/functions/{{name}}", functions.function, READERS, "One function", views.FunctionView,
        problems=_NOT_FOUND,
    ),
    Route(
        "POST", f"{API}/functions/{{name}}/pause", functions.pause, ADMINS, "Hand out no jobs of it",
        views.FunctionView, problems=_REFUSED,
    ),
    Route(
        "POST", f"{API}/functions/{{name}}/resume", functions.resume, ADMINS, "Hand out its jobs again",
        views.FunctionView, problems=_REFUSED,
    ),
    Route(
        "PUT", f"{API}/functions/{{name}}/limits", functions.limits, ADMINS, "Limit how many jobs it may have",
        views.FunctionView, body=functions.Limits, problems=_REFUSED,
    ),
    Route(
        "DELETE", f"{API}/functions/{{name}}", functions.drop, ADMINS,
        "Forget a function that has neither jobs nor workers", status=204, problems=_REFUSED,
    ),
)  # fmt: skip

JOBS: Final = (
    Route(
        "GET", f"{API}/jobs", jobs.jobs, READERS, "Jobs by state, function, text, door and time",
        views.Page[views.JobView], query=jobs.JobsQuery,
    ),
    Route(
        "POST", f"{API}/jobs", submit.submit, SUBMITTERS, "Submit a job, and wait for its end if wanted",
        views.JobView, status=201, body=submit.Submission, others=(200, 202),
        problems=("queue-full", "unavailable", "not-over"),
    ),
    Route(
        "POST", f"{API}/jobs/bulk", jobs.bulk, ADMINS, "Cancel, retry, delete or run all jobs that fit a filter",
        views.BulkReport, body=jobs.Bulk, problems=_REFUSED,
    ),
    Route(
        "GET", f"{API}/jobs/{{handle}}", jobs.job, FOLLOWERS, "One job, alive, dead or over", views.JobView,
        problems=_NOT_FOUND,
    ),
    Route(
        "GET", f"{API}/jobs/{{handle}}/payload", jobs.payload, READERS, "Its payload, as it is", RawBytes,
        problems=("not-found", "unsupported"),
    ),
    Route(
        "GET", f"{API}/jobs/{{handle}}/result", jobs.result, FOLLOWERS, "Its result, as it is", RawBytes,
        problems=("not-found", "conflict", "unsupported"),
    ),
    Route(
        "GET", f"{API}/jobs/{{handle}}/events", events.job_events, FOLLOWERS,
        "Its progress, data and warnings as they come, and its end", Stream, problems=("not-found", "unavailable"),
    ),
    Route(
        "POST", f"{API}/jobs/{{handle}}/cancel", jobs.act("cancel"), ADMINS, "End it now", views.JobView,
        problems=_REFUSED,
    ),
    Route(
        "POST", f"{API}/jobs/{{handle}}/retry", jobs.act("retry"), ADMINS, "Give a dead job another life",
        views.JobView, problems=_REFUSED,
    ),
    Route(
        "POST", f"{API}/jobs/{{handle}}/run", jobs.act("hasten"), ADMINS, "Run a scheduled job now",
        views.JobView, problems=_REFUSED,
    ),
    Route(
        "DELETE", f"{API}/jobs/{{handle}}", jobs.delete, ADMINS, "Forget a dead job", status=204, problems=_REFUSED
    ),
)  # fmt: skip

_REPORT: Final = f"{API}/workers/{{id}}/jobs/{{handle}}"

STAFF: Final = (
    Route(
        "GET", f"{API}/workers", overview.workers, READERS, "Workers of every protocol, page by page",
        views.Page[views.WorkerView], query=overview.WorkersQuery,
    ),
    Route(
        "POST", f"{API}/workers", worker_api.register, WORKERS, "Register a worker", worker_api.Registered, status=201,
        body=worker_api.Registration, problems=("conflict", "unavailable"),
    ),
    Route(
        "POST", f"{API}/workers/{{id}}/claim", worker_api.claim, WORKERS, "Get the next job, or wait for one",
        worker_api.Assignment, query=worker_api.ClaimQuery, others=(204,), problems=_NOT_FOUND,
    ),
    Route(
        "POST", f"{API}/workers/{{id}}/renew", worker_api.renew, WORKERS, "Be heard of", worker_api.Registered,
        problems=_NOT_FOUND,
    ),
    Route(
        "DELETE", f"{API}/workers/{{id}}", worker_api.unregister, WORKERS, "Leave; its jobs go back to their queues",
        status=204, problems=_NOT_FOUND,
    ),
    Route(
        "POST", f"{_REPORT}/progress", worker_api.progress, WORKERS, "Say how far a job is", status=204,
        body=worker_api.ProgressReport, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/data", worker_api.data, WORKERS, "Send a part of the result: the body", status=204,
        body=RawBytes, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/warning", worker_api.warning, WORKERS, "Send a warning; the body is its text", status=204,
        body=RawBytes, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/complete", worker_api.complete, WORKERS, "Complete a job; the body is the result",
        status=204, body=RawBytes, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/fail", worker_api.fail, WORKERS, "A job could not be done", status=204,
        body=worker_api.FailureReport, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/reschedule", worker_api.reschedule, WORKERS, "A job shall run again later", status=204,
        body=worker_api.Postponement, problems=_REFUSED,
    ),
)  # fmt: skip

SCHEDULES: Final = (
    Route("GET", f"{API}/schedules", schedules.schedules, READERS, "All schedules", list[views.ScheduleView]),
    Route(
        "GET", f"{API}/schedules/{{name}}", schedules.schedule, READERS, "One schedule", views.ScheduleView,
        problems=_NOT_FOUND,
    ),
    Route(
        "PUT", f"{API}/schedules/{{name}}", schedules.put, ADMINS, "Make or change a schedule", views.ScheduleView,
        body=schedules.Schedule, problems=_REFUSED,
    ),
    Route(
        "DELETE", f"{API}/schedules/{{name}}", schedules.remove, ADMINS, "Remove a schedule", status=204,
        problems=_REFUSED,
    ),
    Route(
        "POST", f"{API}/schedules/{{name}}/run", schedules.run, ADMINS, "Run it now, besides its times",
        schedules.Run, status=201, problems=(*_REFUSED, "queue-full"),
    ),
    Route(
        "POST", f"{API}/schedules/{{name}}/pause", schedules.switch(True), ADMINS, "Let it rest", views.ScheduleView,
        problems=_REFUSED,
    ),
    Route(
        "POST", f"{API}/schedules/{{name}}/resume", schedules.switch(False), ADMINS, "Let it go on", views.ScheduleView,
        problems=_REFUSED,
    ),
)  # fmt: skip

ACCESS: Final = (
    Route("GET", f"{API}/session", session.session, ANYBODY, "What one may do here", session.Session),
    Route(
        "POST", f"{API}/login", session.log_in, ANYBODY, "Exchange a token for a cookie", session.Session,
        body=session.Login, problems=("unauthorized",),
    ),
    Route("POST", f"{API}/logout", session.log_out, ANYBODY, "End the cookie's session", status=204),
    Route("GET", f"{API}/openapi.json", openapi.description, ANY_TOKEN, "This description", dict[str, Any]),
    Route("GET", "/metrics", metrics.metrics, READERS, "Metrics for Prometheus", str),
    Route("GET", "/healthz", overview.healthz, ANYBODY, "Whether the server answers", overview.Health),
    Route(
        "GET", "/readyz", overview.readyz, ANYBODY, "Whether it takes jobs and can keep them", overview.Health,
        problems=("unavailable",),
    ),
)  # fmt: skip

ROUTES: Final[tuple[Route, ...]] = (*OVERALL, *FUNCTIONS, *JOBS, *STAFF, *SCHEDULES, *ACCESS)
