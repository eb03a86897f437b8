"""Checks of the servers that share a PostgreSQL store, and of their jobs."""

from typing import Final

from geartrain.maintenance.doctor.database import Database, DatabaseCheck
from geartrain.maintenance.doctor.finding import Check, Finding
from geartrain.model import JobState
from geartrain.store.shared import FENCED, JOINING, LEFT, SERVING, STATES

_DEAD: Final = int(JobState.DEAD)
_SILENT_SECONDS: Final = 60.0  # the longest lease: after that, others have fenced it


def servers(database: Database, check: Check) -> Finding:
    """Which servers there are, and how they are."""
    rows = database.query(
        "SELECT name, state, leader, draining, version, extract(epoch FROM clock_timestamp() - beat)::float8 "
        f"FROM {{s}}.nodes WHERE state IN ({SERVING}, {JOINING}) ORDER BY id"
    ).fetchall()
    if not rows:
        return check.ok("none is running")
    texts = []
    for name, state, leader, draining, version, age in rows:
        marks = [STATES[state], *(["leader"] if leader else []), *(["draining"] if draining else []), version]
        texts.append(f"{name} ({', '.join(marks)}, last commit {age:.0f} s ago)")
    silent = [name for name, *_, age in rows if age > _SILENT_SECONDS]
    if silent:
        return check.warning(
            "; ".join(texts),
            f"{', '.join(silent)} did not commit for more than a minute, and no other server has noticed: start one",
        )
    return check.ok("; ".join(texts))


def orphans(database: Database, check: Check) -> Finding:
    """Whether jobs wait for a server that takes them over."""
    ranges, jobs, running = database.row(
        "WITH orphans AS (SELECT r.low, r.high FROM {s}.ranges r LEFT JOIN {s}.nodes n ON n.id = r.node "
        f"WHERE n.id IS NULL OR n.state IN ({LEFT}, {FENCED})) "
        "SELECT (SELECT count(*) FROM orphans), "
        "(SELECT count(*) FROM {s}.jobs j JOIN orphans o ON j.id >= o.low AND j.id < o.high), "
        f"(SELECT count(*) FROM {{s}}.nodes WHERE state = {SERVING})"
    )
    if not jobs:
        return check.ok("every job has a server")
    text = f"{jobs:,} jobs in {ranges} ranges have no server"
    if running:
        return check.warning(
            text, "a server takes them over in seconds, unless all have reached their setting takeover_jobs: raise it"
        )
    return check.ok(f"{text}; the next one that starts takes them over")


def jobs(database: Database, check: Check) -> Finding:
    """How many jobs are unfinished, and how many are dead."""
    unfinished, dead = database.row(
        f"SELECT count(*) FILTER (WHERE state <> {_DEAD}), count(*) FILTER (WHERE state = {_DEAD}) FROM {{s}}.jobs"
    )
    text = f"{unfinished:,} unfinished, {dead:,} dead"
    if dead:
        return check.warning(
            text,
            "`geartrain jobs --state dead` lists the dead jobs of a server with their reasons; "
            "`geartrain retry` queues them again, `geartrain delete` removes them",
        )
    return check.ok(text)


def broken_rows(database: Database, check: Check) -> Finding:
    """Whether servers have set aside rows that they could not read as jobs."""
    count = database.row("SELECT count(*) FROM {s}.broken")[0]
    if not count:
        return check.ok("none")
    return check.warning(
        f"{count:,} rows could not be read as jobs and were set aside",
        f"`SELECT found, complaint, id FROM {database.schema}.broken` shows the reasons; "
        "submit these jobs again if they matter, then delete the rows",
    )


def is_running(database: Database, name: str, machine: str) -> bool:
    """Whether the server of that name runs on this machine, as far as the others know."""
    statement = f"SELECT FROM {{s}}.nodes WHERE name = %s AND machine = %s AND state IN ({SERVING}, {JOINING})"
    return database.query(statement, name, machine).fetchone() is not None


CHECKS: Final[tuple[tuple[str, DatabaseCheck], ...]] = (
    ("servers", servers),
    ("orphans", orphans),
    ("jobs", jobs),
    ("broken rows", broken_rows),
)
