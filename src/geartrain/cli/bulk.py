"""`cancel`, `retry` and `delete` for all jobs that match a filter, with the server's verb `bulk`."""

import dataclasses
import sys
from typing import Annotated, Any, Final

import typer

from geartrain.admin import verbs
from geartrain.admin.verbs import Verb
from geartrain.cli import formatting, job_filter, progress, remote, tables
from geartrain.errors import GeartrainError
from geartrain.job_query import STATES, JobQuery

_LISTED: Final = 50  # jobs that --dry-run lists, of any number that it counts
_HEAD: Final = ("HANDLE", "FUNCTION", "STATE", "SUBMITTED", "REASON")
EPILOG: Final = f"""
**Many jobs.** With options instead of handles, it applies to all jobs that match every one of them. `--dry-run` lists
the jobs, and changes nothing. A filter that leaves out nothing asks first, unless `--yes` is given. `--reason` selects
jobs that failed in the same way, as the dashboard groups them.
{job_filter.TIMES}"""

DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="List and count the jobs, and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, even if the options leave out no job.")]
OPTIONS: Final[dict[str, tuple[Any, Any]]] = {
    **{name: (option, None if name == "state" else "") for name, option in job_filter.OPTIONS.items()},
    "dry_run": (DryRun, False),
    "yes": (Yes, False),
}


def check(handles: list[str], options: dict[str, Any]) -> bool:
    """Whether the options say which jobs, instead of handles; wrong usage if both or neither do."""
    has_filter = any(options[name] for name in job_filter.OPTIONS)
    is_bulk = has_filter or (not handles and (options["yes"] or options["dry_run"]))
    if handles and (is_bulk or options["dry_run"]):
        raise typer.BadParameter("use either handles or options that select jobs, not both")
    if not handles and not is_bulk:
        raise typer.BadParameter("name jobs by their handles, or by options such as --state; --yes means all jobs")
    return is_bulk


def run(verb: Verb, server: str, as_json: bool, options: dict[str, Any]) -> None:
    """Apply the verb to all jobs that the options select, or list them."""
    dry_run, yes = options["dry_run"], options["yes"]
    query = job_filter.query(**{name: options[name] for name in job_filter.OPTIONS})
    if query.state is not None and query.state.name.lower() not in verb.states:
        raise typer.BadParameter(f"{verb.action} applies to jobs that are {' or '.join(verb.states)}")
    if dry_run:
        _list(verb, query, server, as_json)
        return
    if query.unrestricted and not yes:
        _confirm(verb, query)
    report = remote.with_client(server, lambda client: _apply(client, verb, query))
    if as_json:
        tables.print_lines([tables.json_line(report)])
        return
    tables.print_lines([f"{progress.count_of(report['done'], 'job')} {verb.past}"])
    if report["refused"]:
        refused = progress.count_of(report["refused"], "job")
        print(f"geartrain: {refused} refused, for example because another job has the unique key", file=sys.stderr)


def _confirm(verb: Verb, query: JobQuery) -> None:
    """Ask whether all jobs are meant. Without a terminal, that is refused."""
    states = query.state.name.lower() if query.state is not None else " or ".join(verb.states)
    if not sys.stdin.isatty():
        raise GeartrainError(f"this would {verb.action} all jobs that are {states}; add --yes if that is meant")
    if not typer.confirm(f"{verb.action} all jobs that are {states}?", err=True):
        raise typer.Exit(1)


async def _apply(client: Any, verb: Verb, query: JobQuery) -> dict[str, int]:
    """Repeat `bulk`, which has a limit per call, until no more jobs match."""
    done = refused = 0
    line = progress.ProgressLine(f"{verb.past}:")
    try:
        while True:
            filter = job_filter.arguments(query)
            answer = await remote.inquire(
                client, "bulk", answer_within=_ANSWER_SECONDS, action=verb.action, filter=filter
            )
            done += answer["done"]
            refused = answer["refused"]  # those of earlier calls are among them again
            line(done)
            if not answer["more"] or not answer["done"]:
                return {"done": done, "refused": refused}
    finally:
        line.end()


_ANSWER_SECONDS: Final = 600.0  # ten thousand jobs on a slow disk


def _list(verb: Verb, query: JobQuery, server: str, as_json: bool) -> None:
    jobs, count = remote.with_client(server, lambda client: _select(client, verb, query, as_json))
    if as_json:
        tables.print_lines(map(tables.json_line, jobs))
        return
    if jobs:
        tables.print_lines(tables.table(_HEAD, map(_row, jobs), state="STATE"))
    if count > len(jobs):
        print(f"only the newest {len(jobs)} are shown", file=sys.stderr)
    print(f"{progress.count_of(count, 'job')} would be {verb.past}", file=sys.stderr)


async def _select(client: Any, verb: Verb, query: JobQuery, everything: bool) -> tuple[list[dict[str, Any]], int]:
    """The jobs that the verb would be applied to: the newest of them, or all, and their number."""
    states = [query.state] if query.state is not None else [STATES[name] for name in verb.states]
    jobs: list[dict[str, Any]] = []
    count = 0
    for state in states:
        async for job in job_filter.matching(client, dataclasses.replace(query, state=state)):
            count += 1
            if everything or len(jobs) < _LISTED * len(states):
                jobs.append(job)
    jobs.sort(key=lambda job: int(job["id"]), reverse=True)
    return (jobs if everything else jobs[:_LISTED]), count


def _row(job: dict[str, Any]) -> tuple[str, ...]:
    return (
        formatting.value(job["handle"]),
        formatting.value(job["function"]),
        str(job["state"]),
        formatting.local_time(job["submitted_at"]),
        formatting.value(job["reason"], 60),
    )


def is_action(verb: Verb) -> bool:
    """Whether the verb is an action on jobs, which can be applied to all that match a filter."""
    return bool(verb.action) and verb.about == verbs.JOB
