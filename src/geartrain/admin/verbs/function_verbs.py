"""The verbs about functions."""

from typing import Final

from geartrain.admin.verbs.row import (
    ADMIN,
    APPLIED,
    BYTES,
    DEFAULT_SECONDS,
    EVERYBODY,
    FAILURES,
    FUNCTION,
    INTEGER,
    LOCAL,
    LONGEST_SECONDS,
    NUMBER,
    PAGE,
    PRIORITIES,
    SORTS,
    TEXT,
    Argument,
    Button,
    CliCommand,
    Http,
    Verb,
)

_FUNCTION: Final = Argument("function", BYTES, "Name of the function, such as `reverse`", required=True)


def _seconds(name: str, help: str) -> Argument:
    """A setting of a function that is a time."""
    help = f"{help}, in seconds; {DEFAULT_SECONDS}: as the server's setting says"
    return Argument(name, NUMBER, help, minimum=DEFAULT_SECONDS, maximum=LONGEST_SECONDS, metavar="SECONDS")


FUNCTION_VERBS: Final = (
    Verb(
        "functions", FUNCTION, "List functions",
        (
            Argument("search", TEXT, "Part of the name", default=""),
            Argument("sort", TEXT, "Order of the list", default="name", choices=SORTS),
            *PAGE,
            LOCAL,
        ),
        place=EVERYBODY,
        http=Http("GET", "/functions"),
    ),
    Verb(
        "function", FUNCTION, "Show a function",
        (Argument("name", BYTES, "Name of the function", required=True), LOCAL),
        place=EVERYBODY,
        http=Http("GET", "/functions/{name}"),
    ),
    Verb(
        "function_history", FUNCTION, "Samples of a function over the last hour, and its latencies",
        (
            Argument("name", BYTES, "Name of the function", required=True),
            Argument("seconds", INTEGER, "How far back", default=3600, minimum=1, maximum=86400),
            LOCAL,
        ),
        place=EVERYBODY,
        http=Http("GET", "/functions/{name}/history"),
    ),
    Verb(
        "pause", FUNCTION, "Stop handing out jobs of a function until it is resumed",
        (_FUNCTION,), (ADMIN,), changes=True, past="paused", place=APPLIED,
        http=Http("POST", "/functions/{name}/pause", shows="function"),
        command=CliCommand(
            "pause", many=True,
            epilog="Jobs are still accepted, and running jobs continue. A pause survives a restart of the server.",
        ),
        button=Button("Pause"),
    ),
    Verb(
        "resume", FUNCTION, "Hand out jobs of a paused function again",
        (_FUNCTION,), (ADMIN,), changes=True, past="resumed", place=APPLIED,
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
        (ADMIN,), changes=True, past="limited", place=APPLIED,
        http=Http("PUT", "/functions/{name}/limits", shows="function"),
        button=Button("Limits"),
    ),
    Verb(
        "configure", FUNCTION, "Change settings of a function",
        (
            _FUNCTION,
            Argument("failures", TEXT, "What becomes of background jobs that fail", choices=FAILURES),
            _seconds("keep_for", "How long to keep the records of jobs that are done or cancelled"),
            _seconds("keep_failed_for", "How long to keep the records of jobs that failed"),
            Argument(
                "max_run", NUMBER,
                "How long a worker may take for a job, in seconds, whatever it says itself; 0 or -1: no limit",
                minimum=DEFAULT_SECONDS, maximum=LONGEST_SECONDS, metavar="SECONDS",
            ),
        ),
        (ADMIN,), changes=True, past="configured", place=APPLIED,
        http=Http("PATCH", "/functions/{name}/settings", shows="function"),
        command=CliCommand(
            "configure",
            epilog="""
Settings that are not named stay as they are. They survive a restart of the server, and apply instead of the server's
settings of the same meaning: `failures`, `keep_records_for` and `keep_failed_for`. A job that exceeds `max_run` is
taken from its worker, and fails or is queued again like one that exceeds the worker's own limit.

**Examples**

- `geartrain configure invoices --failures dead`

- `geartrain configure pings --keep-for 60 --failures forget`

- `geartrain configure invoices --max-run 300`

- `geartrain configure pings --keep-for -1` applies `keep_records_for` again
""",
        ),
        button=Button("Settings"),
    ),
    Verb(
        "drop", FUNCTION, "Delete a function that has neither jobs nor workers",
        (_FUNCTION,), (ADMIN,), changes=True, past="dropped", place=EVERYBODY,
        http=Http("DELETE", "/functions/{name}"),
        button=Button(
            "Drop", danger=True, question="Drop {name}?",
            detail="The function and its settings are deleted. It must have no jobs and no workers.",
        ),
    ),
)  # fmt: skip
