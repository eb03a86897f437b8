"""The operators' verbs, one row each. Everything that names a verb is made from this table.

- the control function's dispatch and the reading of its arguments (`admin/control.py`)
- the HTTP routes, their parameters and bodies, and the OpenAPI document (`doors/http/verb_routes.py`)
- the commands of `geartrain` that act on jobs, functions and schedules (`cli/job_verbs.py`, `cli/cron.py`)
- bulk actions (`admin/jobs.py`) and the dashboard's buttons (`doors/http/static_files.py`)

A new verb is a row here and a method of the same name on `Admin`. This module is plain data and imports nothing of the
package, because the command line imports it at every start.
"""

from typing import Final, NamedTuple

# Types of arguments.
TEXT: Final = "text"
BYTES: Final = "bytes"  # text, or {"base64": "..."}
INTEGER: Final = "integer"
NUMBER: Final = "number"
BOOLEAN: Final = "boolean"
TEXTS: Final = "texts"  # a list
FILTER: Final = "filter"  # an object with the arguments of FILTER_ARGUMENTS

# Scopes, as tokens have them.
READ: Final = "read"
SUBMIT: Final = "submit"
WORK: Final = "work"
ADMIN: Final = "admin"

# What a verb is about.
SERVER: Final = "server"
FUNCTION: Final = "function"
JOB: Final = "job"
WORKER: Final = "worker"
SCHEDULE: Final = "schedule"

STATES: Final = ("scheduled", "queued", "running", "done", "failed", "cancelled", "dead")
PRIORITIES: Final = ("high", "normal", "low")
SORTS: Final = ("name", "queued", "oldest", "running", "failed")
EVENTS: Final = ("submitted", "started", "progress", "requeued", "scheduled", "done", "failed", "cancelled", "dead")


class Argument(NamedTuple):
    """An argument of a verb, as every way to the verb reads it.

    HTTP refuses values outside `minimum`, `maximum` and `longest` before the verb runs. The control function passes
    them on: the verb itself refuses or clamps them.
    """

    name: str
    type: str = TEXT
    help: str = ""
    required: bool = False
    default: str | int | float | bool | None = None  # of an argument that is not required
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    longest: int | None = None  # characters
    required_by_http: bool = False  # where leaving it out by mistake would do harm
    positional: bool = False  # on the command line; required ones always are
    metavar: str = ""  # on the command line


class Http(NamedTuple):
    """The HTTP route of a verb.

    A name in braces in the path is the verb's first argument. The other arguments are query parameters of a GET, and
    fields of the JSON body of any other method.
    """

    method: str
    path: str  # below /api/v1
    shows: str = ""  # the verb whose answer is sent, for a verb that has none of its own
    field: str = ""  # sends the answer as an object with this one field
    status: int = 200  # 204 where there is nothing to send
    problems: tuple[str, ...] = ()  # kinds that it may answer with, besides those that follow from the method


class CliCommand(NamedTuple):
    """The command of a verb: `geartrain cancel`, or `geartrain cron run` in the group `cron`."""

    name: str
    group: str = ""
    many: bool = False  # takes several values of its first argument, and repeats the verb for each
    report: str = ""  # printed afterwards; default: the first argument and the verb's `past`
    epilog: str = ""


class Button(NamedTuple):
    """The dashboard's button for a verb."""

    label: str
    label_all: str = ""  # for every job that matches a filter
    danger: bool = False
    question: str = ""  # asked before; `{name}` is the job, function or schedule
    detail: str = ""  # below the question


class Verb(NamedTuple):
    """A row of the table."""

    name: str  # in the control function; the name of the method of `Admin`
    about: str
    help: str  # one line, without a full stop
    arguments: tuple[Argument, ...] = ()
    scopes: tuple[str, ...] = (READ,)  # one of them is needed
    changes: bool = False  # answered when the change is durable
    query: bool = False  # the method takes a JobQuery made from the arguments
    streams: bool = False  # runs until its client leaves; only the control function has such verbs
    states: tuple[str, ...] = ()  # of jobs that it can be applied to
    action: str = ""  # its name in `bulk`
    engine_method: str = ""  # what the action does to each job
    past: str = ""  # "job H:1 is ...", when it is done
    http: Http | None = None
    command: CliCommand | None = None
    button: Button | None = None


_HANDLE: Final = Argument("handle", BYTES, "Handle of the job, such as `H:host:17`", required=True)
_FUNCTION: Final = Argument("function", BYTES, "Name of the function, such as `reverse`", required=True)
_NAME: Final = Argument("name", TEXT, "Name of the schedule", required=True)

_PAGE: Final = (
    Argument("limit", INTEGER, "Entries per page", default=100, minimum=1, maximum=1000),
    Argument("after", TEXT, "`after` of the previous page", default="", longest=18),
)
FILTER_ARGUMENTS: Final = (
    Argument("state", TEXT, "Only jobs in this state", default="", choices=STATES),
    Argument("function", BYTES, "Only jobs of exactly this function", default=""),
    Argument("search", TEXT, "Part of a handle, a function, a unique key or a payload", default=""),
    Argument("door", TEXT, "Only jobs that were submitted by this protocol", default=""),
    Argument("since", NUMBER, "Not before this time, in seconds of the epoch", default=0.0, minimum=0, maximum=1e12),
    Argument("until", NUMBER, "Before this time, as `since`; 0: now", default=0.0, minimum=0, maximum=1e12),
)
# A worker names the job it runs by what its protocol calls it.
_RUNNING_JOB: Final = (
    Argument("reason", TEXT, "Why", default=""),
    Argument("handle", BYTES, "Handle of the job", default=""),
    Argument("function", BYTES, "Function of the job, with `unique` or `id`", default=""),
    Argument("unique", BYTES, "Unique key of the job", default=""),
    Argument("id", INTEGER, "Id of the job", default=0),
)

SERVER_VERBS: Final = (
    Verb("ping", SERVER, "Which server answers, and its version"),
    Verb(
        "overview", SERVER, "Counts, rates and latencies of the whole server", http=Http("GET", "/overview"),
    ),
    Verb(
        "history", SERVER, "One sample per second, for charts",
        (Argument("seconds", INTEGER, "How far back", default=300, minimum=1, maximum=86400),),
        http=Http("GET", "/history"),
    ),
    Verb("system", SERVER, "Version, platform, doors and store of the server", http=Http("GET", "/system")),
    Verb(
        "tail", SERVER, "Send events of jobs as they happen",
        (
            Argument("function", BYTES, "Only jobs of this function", default=""),
            Argument("what", TEXTS, "Only these events", choices=EVENTS),
        ),
        streams=True,
    ),
)  # fmt: skip

FUNCTION_VERBS: Final = (
    Verb(
        "functions", FUNCTION, "List functions",
        (
            Argument("search", TEXT, "Part of the name", default=""),
            Argument("sort", TEXT, "Order of the list", default="name", choices=SORTS),
            *_PAGE,
        ),
        http=Http("GET", "/functions"),
    ),
    Verb(
        "function", FUNCTION, "Show a function",
        (Argument("name", BYTES, "Name of the function", required=True),),
        http=Http("GET", "/functions/{name}"),
    ),
    Verb(
        "pause", FUNCTION, "Stop handing out jobs of a function until it is resumed",
        (_FUNCTION,), (ADMIN,), changes=True, past="paused",
        http=Http("POST", "/functions/{name}/pause", shows="function"),
        command=CliCommand(
            "pause", many=True,
            epilog="Jobs are still accepted, and running jobs continue. A pause survives a restart of the server.",
        ),
        button=Button("Pause"),
    ),
    Verb(
        "resume", FUNCTION, "Hand out jobs of a paused function again",
        (_FUNCTION,), (ADMIN,), changes=True, past="resumed",
        http=Http("POST", "/functions/{name}/resume", shows="function"),
        command=CliCommand("resume", many=True),
        button=Button("Resume"),
    ),
    Verb(
        "limit", FUNCTION, "Limit the number of jobs of a function, by priority",
        (
            _FUNCTION,
            *(
                Argument(
                    priority, INTEGER, f"Jobs above which a submission of {priority} priority is refused; 0: no limit",
                    default=0, minimum=0, maximum=2**53,
                )
                for priority in PRIORITIES
            ),
        ),
        (ADMIN,), changes=True, past="limited",
        http=Http("PUT", "/functions/{name}/limits", shows="function"),
        button=Button("Limits"),
    ),
    Verb(
        "drop", FUNCTION, "Delete a function that has neither jobs nor workers",
        (_FUNCTION,), (ADMIN,), changes=True, past="dropped",
        http=Http("DELETE", "/functions/{name}"),
        button=Button(
            "Drop", danger=True, question="Drop {name}?",
            detail="The function and its settings are deleted. It must have no jobs and no workers.",
        ),
    ),
)  # fmt: skip

JOB_VERBS: Final = (
    Verb(
        "jobs", JOB, "List jobs, newest first", (*FILTER_ARGUMENTS, *_PAGE), query=True, http=Http("GET", "/jobs"),
    ),
    Verb(
        "job", JOB, "Show a job with its attempts",
        (_HANDLE,), (READ, SUBMIT), http=Http("GET", "/jobs/{handle}"),
    ),
    Verb(
        "payload", JOB, "The payload of a job that has not ended, as bytes",
        (_HANDLE,), http=Http("GET", "/jobs/{handle}/payload", problems=("unsupported",)),
    ),
    Verb(
        "result", JOB, "The result of a job that has ended, as bytes",
        (_HANDLE, Argument("part", BOOLEAN, "Also if only the beginning of the result is kept", default=False)),
        (READ, SUBMIT),
        http=Http(
            "GET", "/jobs/{handle}/result", problems=("conflict", "unsupported", "result-gone", "result-cut")
        ),
    ),
    Verb(
        "retry", JOB, "Queue a dead job again",
        (_HANDLE,), (ADMIN,), changes=True, states=("dead",), action="retry", engine_method="retry",
        past="queued again",
        http=Http("POST", "/jobs/{handle}/retry", shows="job"),
        command=CliCommand(
            "retry", many=True,
            epilog="A job is dead when the server gave up on it: its workers disconnected, or it failed too often."
            " `geartrain jobs --state dead` lists dead jobs with their reasons.",
        ),
        button=Button("Retry", "Retry all"),
    ),
    Verb(
        "hasten", JOB, "Run a scheduled job now",
        (_HANDLE,), (ADMIN,), changes=True, states=("scheduled",), action="run", engine_method="run_now",
        past="queued now",
        http=Http("POST", "/jobs/{handle}/run", shows="job"),
        button=Button("Run now", "Run all now"),
    ),
    Verb(
        "cancel", JOB, "Cancel a job that is scheduled, queued or running",
        (_HANDLE,), (ADMIN,), changes=True, states=("scheduled", "queued", "running"), action="cancel",
        engine_method="cancel", past="cancelled",
        http=Http("POST", "/jobs/{handle}/cancel", shows="job"),
        command=CliCommand(
            "cancel", many=True,
            epilog="A worker that runs the job is notified if its protocol allows it. Its answer is ignored.",
        ),
        button=Button("Cancel", "Cancel all", danger=True),
    ),
    Verb(
        "delete", JOB, "Delete a dead job",
        (_HANDLE,), (ADMIN,), changes=True, states=("dead",), action="delete", engine_method="delete",
        past="deleted",
        http=Http("DELETE", "/jobs/{handle}"),
        command=CliCommand(
            "delete", many=True, epilog="Use `cancel` for jobs that are scheduled, queued or running.",
        ),
        button=Button(
            "Delete", "Delete all", danger=True, question="Delete {name}?",
            detail="The job, its payload and its reason cannot be restored.",
        ),
    ),
    Verb(
        "postpone", JOB, "Put a running job back, to run again later, on behalf of its worker",
        (Argument("seconds", NUMBER, "Seconds until it may run again", required=True), *_RUNNING_JOB),
        (WORK,), changes=True, states=("running",),
    ),
    Verb(
        "bury", JOB, "Mark a running job as dead, on behalf of its worker",
        _RUNNING_JOB, (WORK,), changes=True, states=("running",),
    ),
)  # fmt: skip

WORKER_VERBS: Final = (
    Verb(
        "workers", WORKER, "List connected workers of every protocol",
        (Argument("search", TEXT, "Part of a name, an address or a function", default=""), *_PAGE),
        http=Http("GET", "/workers"),
    ),
)  # fmt: skip

SCHEDULE_VERBS: Final = (
    Verb("crons", SCHEDULE, "List schedules", http=Http("GET", "/schedules")),
    Verb("cron", SCHEDULE, "Show a schedule", (_NAME,), http=Http("GET", "/schedules/{name}")),
    Verb(
        "cron_set", SCHEDULE, "Create or replace a schedule",
        (
            _NAME,
            Argument("expression", TEXT, "Five cron fields: when it runs", required=True, longest=1000),
            Argument("function", BYTES, "Function of its jobs", required=True),
            Argument("payload", BYTES, "Payload of its jobs", default="", positional=True),
            Argument("priority", TEXT, "Priority of its jobs", default="normal", choices=PRIORITIES),
            Argument("unique", BOOLEAN, "Skip a run while the job of the previous run has not ended", default=False),
            Argument("timezone", TEXT, "Such as `Europe/Berlin`", default="UTC", longest=100, metavar="ZONE"),
        ),
        (ADMIN,), changes=True, past="saved",
        http=Http("PUT", "/schedules/{name}"),
        command=CliCommand(
            "add", "cron", report="{name} runs next at {next_at}",
            epilog="""
**The expression** has five fields: minute, hour, day of the month, month, day of the week. Names such as `@hourly` are
not supported. Runs that were missed while the server was down are replaced by a single run.

**Examples**

- `geartrain cron add nightly '0 3 * * *' report`

- `geartrain cron add pulse '*/5 * * * *' check '{"host": "a"}' --timezone Europe/Berlin --unique`
""",
        ),
        button=Button("Edit"),
    ),
    Verb(
        "cron_remove", SCHEDULE, "Delete a schedule; jobs that it submitted remain",
        (_NAME,), (ADMIN,), changes=True, past="removed",
        http=Http("DELETE", "/schedules/{name}"),
        command=CliCommand("remove", "cron"),
        button=Button(
            "Remove", danger=True, question="Remove the schedule {name}?", detail="Jobs that it submitted remain.",
        ),
    ),
    Verb(
        "cron_run", SCHEDULE, "Submit the job of a schedule now, besides its times",
        (_NAME,), (ADMIN,), changes=True, past="started",
        http=Http("POST", "/schedules/{name}/run", field="handle", status=201, problems=("queue-full",)),
        command=CliCommand("run", "cron", report="{answer}", epilog="It prints the handle of the job."),
        button=Button("Run now"),
    ),
    Verb(
        "cron_pause", SCHEDULE, "Pause a schedule",
        (_NAME,), (ADMIN,), changes=True, past="paused",
        http=Http("POST", "/schedules/{name}/pause", shows="cron"),
        command=CliCommand("pause", "cron"),
        button=Button("Pause"),
    ),
    Verb(
        "cron_resume", SCHEDULE, "Resume a paused schedule",
        (_NAME,), (ADMIN,), changes=True, past="resumed",
        http=Http("POST", "/schedules/{name}/resume", shows="cron"),
        command=CliCommand("resume", "cron"),
        button=Button("Resume"),
    ),
)  # fmt: skip

_ROWS: Final = (*SERVER_VERBS, *FUNCTION_VERBS, *JOB_VERBS, *WORKER_VERBS, *SCHEDULE_VERBS)


def table(rows: tuple[Verb, ...]) -> dict[str, Verb]:
    """The rows by name, with `bulk`, whose actions are the rows that have one."""
    actions = tuple(row.action for row in rows if row.action)
    bulk = Verb(
        "bulk", JOB, "Apply an action to all jobs that match a filter, up to 10,000 per call",
        (
            Argument("action", TEXT, "What to do with each job", required=True, choices=actions),
            Argument("filter", FILTER, "Which jobs", required_by_http=True),
        ),
        (ADMIN,), changes=True,
        http=Http("POST", "/jobs/bulk"),
    )  # fmt: skip
    return {row.name: row for row in (*rows, bulk)}


VERBS: Final = table(_ROWS)
