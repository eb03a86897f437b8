"""The operators' verbs, one row each. Everything that names a verb is made from this table.

- the control function's dispatch and the reading of its arguments (`admin/control.py`)
- the HTTP routes, their parameters and bodies, and the OpenAPI document (`doors/http/verb_routes.py`)
- the commands of `geartrain` that act on jobs, functions and schedules (`cli/job_verbs.py`, `cli/cron.py`)
- bulk actions (`admin/jobs.py`) and the dashboard's buttons (`doors/http/static_files.py`)

A new verb is a row in one of these modules and a method of the same name on `Admin`. The modules are plain data and
import nothing else of the package, because the command line imports them at every start.
"""

from typing import Final

from geartrain.admin.verbs.cluster_verbs import CLUSTER_VERBS
from geartrain.admin.verbs.function_verbs import FUNCTION_VERBS
from geartrain.admin.verbs.job_verbs import JOB_VERBS
from geartrain.admin.verbs.row import (
    ADMIN,
    APPLIED,
    BOOLEAN,
    BYTES,
    CLUSTER,
    DEFAULT,
    DEFAULT_SECONDS,
    DUMP_PARTS,
    EVENTS,
    EVERYBODY,
    FAILURES,
    FILTER,
    FILTER_ARGUMENTS,
    FUNCTION,
    HERE,
    HOME,
    INTEGER,
    JOB,
    LOCAL,
    LONGEST_SECONDS,
    MEMBERS,
    MISSED_POLICIES,
    NUMBER,
    PRIORITIES,
    READ,
    SCHEDULE,
    SERVER,
    SORTS,
    STATES,
    SUBMIT,
    TEXT,
    TEXTS,
    WORK,
    WORKER,
    Argument,
    Button,
    CliCommand,
    Http,
    Verb,
)
from geartrain.admin.verbs.schedule_verbs import SCHEDULE_VERBS
from geartrain.admin.verbs.server_verbs import SERVER_VERBS, WORKER_VERBS

__all__ = (
    "ADMIN",
    "APPLIED",
    "BOOLEAN",
    "BYTES",
    "CLUSTER",
    "DEFAULT",
    "DEFAULT_SECONDS",
    "DUMP_PARTS",
    "EVENTS",
    "EVERYBODY",
    "FAILURES",
    "FILTER",
    "FILTER_ARGUMENTS",
    "FUNCTION",
    "HERE",
    "HOME",
    "INTEGER",
    "JOB",
    "LOCAL",
    "LONGEST_SECONDS",
    "MEMBERS",
    "MISSED_POLICIES",
    "NUMBER",
    "PRIORITIES",
    "READ",
    "SCHEDULE",
    "SERVER",
    "SORTS",
    "STATES",
    "SUBMIT",
    "TEXT",
    "TEXTS",
    "VERBS",
    "WORK",
    "WORKER",
    "Argument",
    "Button",
    "CliCommand",
    "Http",
    "Verb",
    "table",
)

_ROWS: Final = (*SERVER_VERBS, *FUNCTION_VERBS, *JOB_VERBS, *WORKER_VERBS, *SCHEDULE_VERBS, *CLUSTER_VERBS)


def table(rows: tuple[Verb, ...]) -> dict[str, Verb]:
    """The rows by name, with `bulk`, whose actions are the rows that have one."""
    actions = tuple(row.action for row in rows if row.action)
    bulk = Verb(
        "bulk", JOB, "Apply an action to all jobs that match a filter, up to 10,000 per call",
        (
            Argument("action", TEXT, "What to do with each job", required=True, choices=actions),
            Argument("filter", FILTER, "Which jobs", required_by_http=True),
        ),
        (ADMIN,), changes=True, place=EVERYBODY,
        http=Http("POST", "/jobs/bulk"),
    )  # fmt: skip
    return {row.name: row for row in (*rows, bulk)}


VERBS: Final = table(_ROWS)
