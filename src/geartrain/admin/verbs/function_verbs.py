"""The verbs about functions."""

from typing import Final

from geartrain.admin.verbs.row import (
    ADMIN,
    APPLIED,
    BYTES,
    DEFAULT,
    DEFAULT_NUMBER,
    DEFAULT_SECONDS,
    EVERYBODY,
    FAILURES,
    FUNCTION,
    INTEGER,
    LOCAL,
    LONGEST_SECONDS,
    NO_LIMIT,
    NUMBER,
    PAGE,
    PRIORITIES,
    SORTS,
    TEXT,
    WORK,
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


def _limits(otherwise: str) -> tuple[Argument, ...]:
    """The limits of running jobs; `otherwise` says what -1 and `default` mean."""
    default, text_default = f"; {DEFAULT_NUMBER}: {otherwise}", f"; `{NO_LIMIT}`: no limit; `{DEFAULT}`: {otherwise}"
    return (
        _count("max_running", f"How many of its jobs may run at once; 0: no limit{default}"),
        _count("max_running_per_partition", f"How many jobs of a partition may run at once; 0: no limit{default}"),
        Argument("rate", TEXT, f"How many of its jobs may start, such as `100/m`{text_default}", metavar="RATE"),
        _count("burst", "How many of them may start at once when none has started for a while; without it, one"),
        Argument("rate_per_partition", TEXT, f"The same for the jobs of a partition{text_default}", metavar="RATE"),
        _count("burst_per_partition", "The same for the jobs of a partition"),
        Argument(
            "partition_from_unique", TEXT,
            "A job that was submitted without a partition has the part of its unique key before this, such as `:`; "
            f"`{NO_LIMIT}`: it has none; `{DEFAULT}`: {otherwise}",
            metavar="TEXT",
        ),
    )  # fmt: skip


def _count(name: str, help: str) -> Argument:
    return Argument(name, INTEGER, help, minimum=DEFAULT_NUMBER, maximum=1_000_000, metavar="JOBS")


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
        "limit_running", FUNCTION, "Limit how many jobs of a function run at once, and how often one starts",
        (_FUNCTION, *_limits("what the code of the task says")),
        (ADMIN,), changes=True, past="limited", place=APPLIED,
        http=Http("PATCH", "/functions/{name}/limits", shows="function"),
        command=CliCommand(
            "limit",
            epilog="""
Limits that are not named stay as they are. They survive a restart of the server, count whichever protocol the workers
speak, and apply instead of what the code of the task says. In a cluster, each server counts its own jobs. Jobs above a
limit wait in the queue; `geartrain jobs` and the dashboard say what they wait for.

A partition is a part of a function's jobs that takes turns with the others, such as those of a tenant. Submissions name
it; for clients that cannot, `--partition-from-unique` takes it from the unique key.

**Examples**

- `geartrain limit resize --max-running 10`

- `geartrain limit mail --rate 100/m --burst 20` lets 20 start at once, and then one every 0.6 seconds

- `geartrain limit mail --partition-from-unique : --max-running-per-partition 2`, so that
  `gearman -f mail -u acme:17` is a job of the partition `acme`

- `geartrain limit mail --rate none` removes a limit, and `--rate default` restores what the code says
""",
        ),
        button=Button("Concurrency"),
    ),
    Verb(
        "declare_limits", FUNCTION, "Say how many jobs of a function may run, as the code of its workers does",
        (_FUNCTION, *_limits("no limit")),
        (WORK, ADMIN), changes=True, past="limited", place=APPLIED,
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
