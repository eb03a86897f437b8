"""Every route, once: the router, the guard, reading parameters and bodies, and the description follow from it."""

from typing import Any, Final

from geartrain.steering import views
from geartrain.web import (
    following,
    functions,
    glance,
    jobs,
    live,
    metrics,
    openapi,
    schedules,
    session,
    submission,
    workers,
)
from geartrain.web.route import (
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
    Route("GET", f"{API}/overview", glance.overview, READERS, "The whole server at a glance", views.Overview),
    Route(
        "GET", f"{API}/history", glance.history, READERS, "The last minutes, for charts",
        list[views.Sample], query=glance.HistoryQuery,
    ),
    Route("GET", f"{API}/system", glance.system, READERS, "What runs, and on what", views.System),
    Route(
        "GET", f"{API}/connections", glance.connections, READERS, "Every open door and its connections",
        list[views.DoorView],
    ),
    Route(
        "GET", f"{API}/events", live.events, READERS, "The overview once a second, and events of jobs if asked for",
        Stream, query=live.EventsQuery, problems=("unavailable",),
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
        "POST", f"{API}/jobs", submission.submit, SUBMITTERS, "Submit a job, and wait for its end if wanted",
        views.JobView, status=201, body=submission.Submission, others=(200, 202),
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
        "GET", f"{API}/jobs/{{handle}}/events", following.events, FOLLOWERS,
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
        "GET", f"{API}/workers", glance.workers, READERS, "Workers of every protocol, page by page",
        views.Page[views.WorkerView], query=glance.WorkersQuery,
    ),
    Route(
        "POST", f"{API}/workers", workers.register, WORKERS, "Register a worker", workers.Registered, status=201,
        body=workers.Registration, problems=("conflict", "unavailable"),
    ),
    Route(
        "POST", f"{API}/workers/{{id}}/claim", workers.claim, WORKERS, "Get the next job, or wait for one",
        workers.Assignment, query=workers.ClaimQuery, others=(204,), problems=_NOT_FOUND,
    ),
    Route(
        "POST", f"{API}/workers/{{id}}/renew", workers.renew, WORKERS, "Be heard of", workers.Registered,
        problems=_NOT_FOUND,
    ),
    Route(
        "DELETE", f"{API}/workers/{{id}}", workers.unregister, WORKERS, "Leave; its jobs go back to their queues",
        status=204, problems=_NOT_FOUND,
    ),
    Route(
        "POST", f"{_REPORT}/progress", workers.progress, WORKERS, "Say how far a job is", status=204,
        body=workers.ProgressReport, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/data", workers.data, WORKERS, "Send a part of the result: the body", status=204,
        body=RawBytes, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/warning", workers.warning, WORKERS, "Send a warning; the body is its text", status=204,
        body=RawBytes, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/complete", workers.complete, WORKERS, "A job is done; the body is its result", status=204,
        body=RawBytes, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/fail", workers.fail, WORKERS, "A job could not be done", status=204,
        body=workers.FailureReport, problems=_REFUSED,
    ),
    Route(
        "POST", f"{_REPORT}/reschedule", workers.reschedule, WORKERS, "A job shall run again later", status=204,
        body=workers.Postponement, problems=_REFUSED,
    ),
)  # fmt: skip

SCHEDULES: Final = (
    Route("GET", f"{API}/schedules", schedules.schedules, READERS, "All schedules", list[views.CronView]),
    Route(
        "GET", f"{API}/schedules/{{name}}", schedules.schedule, READERS, "One schedule", views.CronView,
        problems=_NOT_FOUND,
    ),
    Route(
        "PUT", f"{API}/schedules/{{name}}", schedules.put, ADMINS, "Make or change a schedule", views.CronView,
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
        "POST", f"{API}/schedules/{{name}}/pause", schedules.switch(True), ADMINS, "Let it rest", views.CronView,
        problems=_REFUSED,
    ),
    Route(
        "POST", f"{API}/schedules/{{name}}/resume", schedules.switch(False), ADMINS, "Let it go on", views.CronView,
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
    Route("GET", "/healthz", glance.healthz, ANYBODY, "Whether the server answers", glance.Health),
    Route(
        "GET", "/readyz", glance.readyz, ANYBODY, "Whether it takes jobs and can keep them", glance.Health,
        problems=("unavailable",),
    ),
)  # fmt: skip

ROUTES: Final[tuple[Route, ...]] = (*OVERALL, *FUNCTIONS, *JOBS, *STAFF, *SCHEDULES, *ACCESS)
