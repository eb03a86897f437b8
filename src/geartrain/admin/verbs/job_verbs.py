"""The verbs about jobs."""

from typing import Final

from geartrain.admin.verbs.row import (
    ADMIN,
    BOOLEAN,
    BYTES,
    EVERYBODY,
    FILTER_ARGUMENTS,
    FUNCTION,
    HOME,
    INTEGER,
    JOB,
    LOCAL,
    MEMBERS,
    NUMBER,
    PAGE,
    PRIORITIES,
    READ,
    SERVER,
    STATES,
    SUBMIT,
    TEXT,
    WORK,
    Argument,
    Button,
    CliCommand,
    Http,
    Verb,
)

_MEMBER_STATES: Final = (*STATES, "ended")  # ended: its record is no longer kept
_HANDLE: Final = Argument("handle", BYTES, "Handle of the job, such as `H:host:17`", required=True)
# A client or worker names a job by what its protocol calls it.
_NAMED_JOB: Final = (
    Argument("handle", BYTES, "Handle of the job", default=""),
    Argument("function", BYTES, "Function of the job, with `unique` or `id`", default=""),
    Argument("unique", BYTES, "Unique key of the job", default=""),
    Argument("id", INTEGER, "Id of the job", default=0),
)
_RUNNING_JOB: Final = (Argument("reason", TEXT, "Why", default=""), *_NAMED_JOB)

JOB_VERBS: Final = (
    Verb(
        "submit", FUNCTION, "Submit a background job, and return its handle",
        (
            Argument("function", BYTES, "Function of the job", required=True),
            Argument("payload", BYTES, "Payload of the job", default="", private=True),
            Argument("priority", TEXT, "Priority of the job", default="normal", choices=PRIORITIES),
            Argument("unique", BYTES, "Unique key of the job", default=""),
            Argument("run_at", NUMBER, "When it may run, in seconds of the epoch; 0: now", default=0.0),
            Argument("timeout", NUMBER, "Seconds that a worker may take; 0: no limit", default=0.0),
            Argument("keep_for", NUMBER, "Seconds that its record is kept at least", default=0.0),
            Argument("expires_at", NUMBER, "No worker gets it from then on; 0: it does not expire", default=0.0),
            Argument("partition", BYTES, "Partition of the job, such as a tenant; they take turns", default=""),
            Argument(
                "after", TEXT, "Handles of jobs that must end before it runs, with spaces between them", default="",
                longest=4_000_000,
            ),
            Argument(
                "on_failure", TEXT, "If one of them fails, is cancelled or expires: `cancel` it, or `run` it",
                default="cancel", choices=("cancel", "run"),
            ),
        ),
        (SUBMIT,), changes=True,
    ),
    Verb(
        "submit_workflow", SERVER, "Submit many background jobs that may wait for each other, all of them or none",
        (
            Argument(
                "jobs", MEMBERS, "The jobs; `after` of each has places of others in this list", required=True,
                private=True,
            ),
            Argument("name", TEXT, "What people call it", default="", longest=200),
        ),
        (SUBMIT,), changes=True, http=Http("POST", "/workflows", status=201, problems=("queue-full",)),
    ),
    Verb(
        "workflow", JOB, "Show a workflow with the states of its jobs",
        (_HANDLE, Argument("state", TEXT, "List only jobs in this state", default="", choices=_MEMBER_STATES), *PAGE),
        (READ, SUBMIT), place=HOME, http=Http("GET", "/workflows/{handle}"),
    ),
    Verb(
        "results", JOB, "The results of other jobs of a workflow, for the worker of one of them",
        (
            Argument("handle", BYTES, "Handle of the job that needs them", required=True),
            Argument("ids", TEXT, "Ids of the others as ranges, such as `8-1007 1010-1010`", required=True),
        ),
        (READ, SUBMIT, WORK), place=HOME,
    ),
    Verb(
        "jobs", JOB, "List jobs, newest first", (*FILTER_ARGUMENTS, *PAGE, LOCAL), query=True, place=EVERYBODY,
        http=Http("GET", "/jobs"),
    ),
    Verb(
        "failures", JOB, "Failed and dead jobs in groups of equal reasons",
        (*FILTER_ARGUMENTS, LOCAL), query=True, place=EVERYBODY, http=Http("GET", "/failures"),
    ),
    Verb(
        "job", JOB, "Show a job with its attempts",
        (_HANDLE,), (READ, SUBMIT), place=HOME, http=Http("GET", "/jobs/{handle}"),
    ),
    Verb(
        "find", JOB, "Show a job by the name that a protocol has for it, before and after its end",
        _NAMED_JOB, (READ, SUBMIT, WORK), place=HOME,
    ),
    Verb(
        "watch", JOB, "Send the reports of a job, and answer with its result when it has ended",
        _NAMED_JOB, (READ, SUBMIT, WORK), streams=True,
    ),
    Verb(
        "payload", JOB, "The payload of a job that has not ended or has failed, as bytes",
        (_HANDLE,), place=HOME, http=Http("GET", "/jobs/{handle}/payload", problems=("unsupported",)),
    ),
    Verb(
        "result", JOB, "The result of a job that has ended, as bytes",
        (_HANDLE, Argument("part", BOOLEAN, "Also if only the beginning of the result is kept", default=False)),
        (READ, SUBMIT), place=HOME,
        http=Http(
            "GET", "/jobs/{handle}/result", problems=("conflict", "unsupported", "result-gone", "result-cut")
        ),
    ),
    Verb(
        "log", JOB, "The log that the workers of a job have kept with it, as bytes",
        (_HANDLE,), (READ, SUBMIT), place=HOME, http=Http("GET", "/jobs/{handle}/log"),
    ),
    Verb(
        "retry", JOB, "Queue a dead or failed job again",
        (_HANDLE,), (ADMIN,), changes=True, states=("dead", "failed"), action="retry", engine_method="retry",
        past="queued again", place=HOME,
        http=Http("POST", "/jobs/{handle}/retry", shows="job"),
        command=CliCommand(
            "retry", many=True,
            epilog="A job has failed if its worker said so or took too long. It is dead if the server gave up on it:"
            " its workers disconnected, or it failed too often. `geartrain jobs --state failed` and `--state dead` list"
            " such jobs with their reasons. A job that is retried keeps its handle."
            "\n\n**Examples**"
            "\n\n- `geartrain retry H:host:17 H:host:18`"
            "\n\n- `geartrain retry --state failed --function mail --since 1d --dry-run`",
        ),
        button=Button("Retry", "Retry all"),
    ),
    Verb(
        "hasten", JOB, "Run a scheduled job now",
        (_HANDLE,), (ADMIN,), changes=True, states=("scheduled",), action="run", engine_method="run_now",
        past="queued now", place=HOME,
        http=Http("POST", "/jobs/{handle}/run", shows="job"),
        button=Button("Run now", "Run all now"),
    ),
    Verb(
        "cancel", JOB, "Cancel a job that is scheduled, blocked, queued or running",
        (_HANDLE,), (ADMIN,), changes=True, states=("scheduled", "blocked", "queued", "running"), action="cancel",
        engine_method="cancel", past="cancelled", place=HOME,
        http=Http("POST", "/jobs/{handle}/cancel", shows="job"),
        command=CliCommand(
            "cancel", many=True,
            epilog="A worker that runs the job is notified if its protocol allows it. Its answer is ignored."
            "\n\n**Examples**"
            "\n\n- `geartrain cancel --function mail --state queued --search ada@example.org`",
        ),
        button=Button("Cancel", "Cancel all", danger=True),
    ),
    Verb(
        "delete", JOB, "Delete a dead or failed job",
        (_HANDLE,), (ADMIN,), changes=True, states=("dead", "failed"), action="delete", engine_method="delete",
        past="deleted", place=HOME,
        http=Http("DELETE", "/jobs/{handle}"),
        command=CliCommand(
            "delete", many=True, epilog="Use `cancel` for jobs that are scheduled, blocked, queued or running.",
        ),
        button=Button(
            "Delete", "Delete all", danger=True, question="Delete {name}?",
            detail="The job, its payload and its reason cannot be restored.",
        ),
    ),
    Verb(
        "postpone", JOB, "Put a running job back, to run again later, on behalf of its worker",
        (Argument("seconds", NUMBER, "Seconds until it may run again", required=True), *_RUNNING_JOB),
        (WORK,), changes=True, states=("running",), place=HOME,
    ),
    Verb(
        "bury", JOB, "Mark a running job as dead, on behalf of its worker",
        _RUNNING_JOB, (WORK,), changes=True, states=("running",), place=HOME,
    ),
    Verb(
        "add_log", JOB, "Add lines to the log of a running background job, on behalf of its worker",
        (Argument("lines", BYTES, "What to add", required=True, private=True), *_NAMED_JOB),
        (WORK,), changes=True, states=("running",), place=HOME,
    ),
)  # fmt: skip
