"""`geartrain workflow`: many jobs that wait for each other, submitted at once."""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from geartrain import jsonbytes
from geartrain.cli import command_group, exit_codes, formatting, remote, tables
from geartrain.errors import GeartrainError

_FUNCTION: Final = "geartrain.workflow"
_PAGE: Final = 1000

SUBMIT_EPILOG: Final = f"""
The file is JSON: `{{"name": "import", "jobs": [...]}}`. A job has a `function`, and may have a `payload`, `after` (the
places of other jobs in the list, from 0), `on_failure` (`cancel` or `run`, if one of these fails), `priority`,
`run_at`, `timeout`, `keep_for`, `expires_at` and `partition`. A payload that is not text is `{{"base64": "..."}}`. The
server accepts all jobs or none. The command prints the handle of the workflow; with `--json`, the handles of the jobs
as well.

A workflow is a job too: `geartrain cancel HANDLE` cancels everything that has not ended, `geartrain retry HANDLE` runs
what failed again and goes on from there, and `geartrain submit --after HANDLE` waits for it.

{exit_codes.EPILOG}
**Examples**

- `geartrain workflow submit import.json --wait`

- `echo '{{"jobs": [{{"function": "fetch"}}, {{"function": "merge", "after": [0]}}]}}' | geartrain workflow submit -`
"""

_MEMBERS_HEAD: Final = ("PLACE", "HANDLE", "FUNCTION", "STATE", "AFTER")
_LIST_HEAD: Final = ("HANDLE", "NAME", "STATE", "SUBMITTED", "FINISHED", "REASON")


def add(app: typer.Typer) -> None:
    """Add the group of commands."""
    commands: command_group.Commands = {
        "submit": (submit, SUBMIT_EPILOG),
        "show": (show, exit_codes.EPILOG),
        "list": (list_workflows, exit_codes.EPILOG),
    }
    command_group.add(app, "workflow", "Many jobs that wait for each other, submitted at once.", commands)


def submit(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The workflow; `-` reads standard input.")],
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait until all jobs have ended.")] = False,
    server: remote.Server = remote.DEFAULT_URL,
    json: remote.Json = False,
) -> None:
    """Submit a workflow: all of its jobs or none."""
    workflow = _read(file)
    answer = remote.ask(server, "submit_workflow", **workflow)
    handle = jsonbytes.decode(answer["handle"])
    tables.print_lines([tables.json_line(answer) if json else handle.decode("utf-8", "backslashreplace")])
    if wait:
        sys.stdout.flush()
        remote.with_client(server, lambda client: client.job(handle).result())


def show(
    handle: Annotated[str, typer.Argument(metavar="HANDLE", help="The workflow's handle.", show_default=False)],
    limit: Annotated[int, typer.Option(metavar="N", min=0, help="Show at most N of its jobs.")] = 50,
    server: remote.Server = remote.DEFAULT_URL,
    json: remote.Json = False,
) -> None:
    """Show a workflow: how many of its jobs are in which state, and the first of them."""
    workflow = remote.ask(server, "workflow", handle=handle, limit=min(max(limit, 1), _PAGE))
    jobs = workflow["jobs"][:limit]
    while workflow["after"] and len(jobs) < limit:
        page = remote.ask(server, "workflow", handle=handle, limit=_PAGE, after=workflow["after"])
        workflow["after"] = page["after"]
        jobs = (jobs + page["jobs"])[:limit]
    if json:
        tables.print_lines([tables.json_line({**workflow, "jobs": jobs})])
        return
    counts = ", ".join(f"{count:,} {state}" for state, count in sorted(workflow["states"].items()))
    state = workflow["state"]
    facts = tables.facts(
        [
            ("handle", formatting.value(workflow["handle"], 100)),
            ("name", formatting.one_line(workflow["name"], 200)),
            ("state", tables.coloured(state, tables.STATE_COLOURS.get(state, ""))),
            ("reason", workflow["reason"]),
            ("jobs", f"{workflow['count']:,}: {counts}"),
            ("submitted", formatting.local_time(workflow["submitted_at"])),
            ("finished", formatting.local_time(workflow["finished_at"]) if workflow["finished_at"] else ""),
        ]
    )
    members = tables.table(_MEMBERS_HEAD, map(_member, jobs), right=frozenset({"PLACE"}), state="STATE") if jobs else []
    more = workflow["count"] - len(jobs)
    tables.print_lines([*facts, *members, *([f"and {more:,} more (--limit)"] if more else [])])


def list_workflows(
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=_PAGE, help="Show at most N, the newest.")] = 50,
    server: remote.Server = remote.DEFAULT_URL,
    json: remote.Json = False,
) -> None:
    """List workflows, the newest first."""
    jobs = remote.ask(server, "jobs", function=_FUNCTION, limit=limit)["items"]
    if json:
        tables.print_lines(map(tables.json_line, jobs))
    else:
        tables.print_lines(tables.table(_LIST_HEAD, map(_row, jobs), state="STATE") if jobs else ["no workflows"])


def _read(file: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
        workflow = json_module.loads(text)
    except OSError as error:
        raise GeartrainError(f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise GeartrainError(f"{file} is not JSON: {error}") from None
    if not isinstance(workflow, dict) or not workflow.keys() <= {"name", "jobs"} or "jobs" not in workflow:
        raise GeartrainError(f'{file} is not a workflow: it must be an object with "jobs", and maybe "name"')
    return workflow


def _member(job: dict[str, Any]) -> tuple[str, ...]:
    after = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in job["after"])
    return (
        str(job["place"]),
        formatting.value(job["handle"]),
        formatting.value(job["function"]),
        job["state"],
        formatting.one_line(after, 40),
    )


def _row(job: dict[str, Any]) -> tuple[str, ...]:
    return (
        formatting.value(job["handle"]),
        formatting.one_line(job["workflow"] or "", 40),
        "running" if job["state"] == "blocked" else job["state"],
        formatting.local_time(job["submitted_at"]),
        formatting.local_time(job["finished_at"]) if job["finished_at"] else "",
        formatting.one_line(job["reason"], 60),
    )
