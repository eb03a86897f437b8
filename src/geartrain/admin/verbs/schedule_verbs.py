"""The verbs about schedules."""

from typing import Final

from geartrain.admin.verbs.row import (
    ADMIN,
    APPLIED,
    BOOLEAN,
    BYTES,
    MISSED_POLICIES,
    NUMBER,
    PRIORITIES,
    SCHEDULE,
    TEXT,
    Argument,
    Button,
    CliCommand,
    Http,
    Verb,
)

_NAME: Final = Argument("name", TEXT, "Name of the schedule", required=True)

SCHEDULE_VERBS: Final = (
    Verb("crons", SCHEDULE, "List schedules", http=Http("GET", "/schedules")),
    Verb("cron", SCHEDULE, "Show a schedule", (_NAME,), http=Http("GET", "/schedules/{name}")),
    Verb(
        "cron_set", SCHEDULE, "Create or replace a schedule",
        (
            _NAME,
            Argument("expression", TEXT, "When: `0 3 * * *`, `@hourly`, `@every 15s`", required=True, longest=1000),
            Argument("function", BYTES, "Function of its jobs", required=True),
            Argument("payload", BYTES, "Payload of its jobs", default="", positional=True, private=True),
            Argument("priority", TEXT, "Priority of its jobs", default="normal", choices=PRIORITIES),
            Argument("unique", BOOLEAN, "Skip a run while the job of the previous run has not ended", default=False),
            Argument("timezone", TEXT, "Such as `Europe/Berlin`", default="UTC", longest=100, metavar="ZONE"),
            Argument(
                "missed", TEXT, "Runs that were missed: skip them, run once instead, or run all (the last 100)",
                default="once", choices=MISSED_POLICIES,
            ),
            Argument(
                "expires", NUMBER, "Seconds that a job may wait for a worker before it expires; 0: no limit",
                default=0.0, minimum=0, maximum=366 * 86_400, metavar="SECONDS",
            ),
        ),
        (ADMIN,), changes=True, past="saved", place=APPLIED,
        http=Http("PUT", "/schedules/{name}"),
        command=CliCommand(
            "add", "cron", report="{name} runs next at {next_at}",
            epilog="""
**The expression** has five fields: minute, hour, day of the month, month, day of the week. If it has six, the first is
the second. `@yearly` (or `@annually`), `@monthly`, `@weekly`, `@daily` (or `@midnight`) and `@hourly` stand for such
fields. `@every 15s` is an interval from `1s` to `366d`, such as `1h30m`; it counts from now.

**Missed runs.** A run is missed if the server was down, or the machine asleep, until a minute after its time. Missed
runs are replaced by a single run; `--missed skip` leaves them out, `--missed all` submits the last 100 of them.

**Examples**

- `geartrain cron add nightly '0 3 * * *' report`

- `geartrain cron add pulse '*/5 * * * *' check '{"host": "a"}' --timezone Europe/Berlin --unique`

- `geartrain cron add beat '@every 15s' check --missed skip`
""",
        ),
        button=Button("Edit"),
    ),
    Verb(
        "cron_remove", SCHEDULE, "Delete a schedule; jobs that it submitted remain",
        (_NAME,), (ADMIN,), changes=True, past="removed", place=APPLIED,
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
        (_NAME,), (ADMIN,), changes=True, past="paused", place=APPLIED,
        http=Http("POST", "/schedules/{name}/pause", shows="cron"),
        command=CliCommand("pause", "cron"),
        button=Button("Pause"),
    ),
    Verb(
        "cron_resume", SCHEDULE, "Resume a paused schedule",
        (_NAME,), (ADMIN,), changes=True, past="resumed", place=APPLIED,
        http=Http("POST", "/schedules/{name}/resume", shows="cron"),
        command=CliCommand("resume", "cron"),
        button=Button("Resume"),
    ),
)  # fmt: skip
