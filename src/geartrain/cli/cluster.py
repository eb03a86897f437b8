"""`geartrain cluster`: the servers that share a store.

The commands below it are made from the table of verbs.
"""

import os
from typing import Any, Final

import typer

from geartrain.cli import exit_codes, formatting, job_verbs, remote, tables

EPILOG: Final = f"""
Every server of a cluster can be asked; the one that answers has a star, and it alone knows what is left of its lease
and how many jobs it has. The leader runs schedules and removes old records.

{exit_codes.EPILOG}
**Examples**

- `geartrain cluster`

- `geartrain cluster --json | jq -r 'select(.state != "serving") | .name'`
"""

_HEAD: Final = ("SERVER", "NODE", "ADDRESS", "VERSION", "STATE", "LAST COMMIT", "LEASE LEFT", "JOBS", "STARTED")
_RIGHT: Final = frozenset({"NODE", "LAST COMMIT", "LEASE LEFT", "JOBS"})


def add(app: typer.Typer) -> None:
    """Add the command, and those below it."""
    group = typer.Typer(name="cluster", rich_markup_mode="markdown", invoke_without_command=True, epilog=EPILOG)
    group.callback()(cluster)
    job_verbs.add(group, group="cluster")
    app.add_typer(group)


def cluster(context: typer.Context, server: remote.Server = remote.DEFAULT_URL, json: remote.Json = False) -> None:
    """List the servers that share the store, or act on one of them."""
    if context.invoked_subcommand is not None:
        os.environ[remote.URL_VARIABLE] = server  # also for `geartrain cluster --server URL drain NAME`
        return
    nodes = remote.ask(server, "nodes")
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
        "-" if node["jobs"] is None else f"{node['jobs']:,}",
        formatting.local_time(node["started_at"]),
    )
