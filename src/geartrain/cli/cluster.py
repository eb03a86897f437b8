"""`geartrain cluster`: the servers that share a store.

The commands below it are made from the table of verbs.
"""

import os
from typing import Any, Final

import typer

from geartrain.cli import exit_codes, formatting, job_verbs, remote, tables

EPILOG: Final = f"""
Every server of a cluster can be asked; the one that answers has a star. It asks the others for what only they know. A
server that does not answer within a second has dashes. The leader runs schedules and removes old records.

**Columns.** JOBS have their home at the server; of these, LENT ones are run by workers of other servers. BORROWED jobs
of other servers are run by its own workers. LINK is how long a message to it and back takes.

{exit_codes.EPILOG}
**Examples**

- `geartrain cluster`

- `geartrain cluster --json | jq -r 'select(.state != "serving") | .name'`
"""

_HEAD: Final = (
    "SERVER", "NODE", "ADDRESS", "VERSION", "STATE", "LAST COMMIT", "LEASE LEFT", "JOBS", "LENT", "BORROWED", "WORKERS",
    "LINK", "STARTED",
)  # fmt: skip
_RIGHT: Final = frozenset({"NODE", "LAST COMMIT", "LEASE LEFT", "JOBS", "LENT", "BORROWED", "WORKERS", "LINK"})


def add(app: typer.Typer) -> None:
    """Add the command, and those below it."""
    group = typer.Typer(name="cluster", rich_markup_mode="markdown", invoke_without_command=True, epilog=EPILOG)
    group.callback()(cluster)
    job_verbs.add(group, group="cluster")
    app.add_typer(group)


def cluster(
    context: typer.Context,
    server: remote.Server = remote.DEFAULT_URL,
    local: remote.Local = False,
    json: remote.Json = False,
) -> None:
    """List the servers that share the store, or act on one of them."""
    if context.invoked_subcommand is not None:
        os.environ[remote.URL_VARIABLE] = server  # also for `geartrain cluster --server URL drain NAME`
        return
    nodes = remote.ask(server, "nodes", **remote.only(local))
    tables.print_lines(map(tables.json_line, nodes) if json else tables.table(_HEAD, map(_row, nodes), _RIGHT))


def _row(node: dict[str, Any]) -> tuple[str, ...]:
    marks = [node["state"], *(["leader"] if node["leader"] else []), *(["draining"] if node["draining"] else [])]
    return (
        formatting.one_line(node["name"], 60) + (" *" if node["answers"] else ""),
        str(node["node"]),
        node["address"] or "-",
        node["version"],
        ", ".join(marks),
        formatting.duration(node["commit_age"]),
        "-" if node["lease_left"] is None else formatting.duration(max(node["lease_left"], 0.0)),
        *(_number(node.get(name)) for name in ("jobs", "lent", "borrowed", "workers")),
        _milliseconds(node.get("round_trip")),
        formatting.local_time(node["started_at"]),
    )


def _number(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.1f}ms"
