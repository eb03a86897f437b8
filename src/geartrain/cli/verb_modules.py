"""The verbs of the command, and the module of each.

A module adds the verb by `add(app)` if it has that, else by a function with the module's name. The table is written out
here, operators' verbs too, so that a verb is found without importing their table.
"""

from typing import Final

VERBS: Final = {
    "serve": "serve",
    "submit": "submit",
    "work": "work",
    "status": "status",
    "workers": "workers",
    "jobs": "jobs",
    "show": "show",
    "reload": "job_verbs",
    "pause": "job_verbs",
    "resume": "job_verbs",
    "limit": "job_verbs",
    "configure": "job_verbs",
    "retry": "job_verbs",
    "cancel": "job_verbs",
    "delete": "job_verbs",
    "workflow": "workflow",
    "cron": "cron",
    "token": "token",
    "top": "top",
    "tail": "tail",
    "audit": "audit",
    "users": "users",
    "cluster": "cluster",
    "bench": "bench",
    "dump": "dump",
    "load": "load",
    "import": "import_jobs",
    "move": "move",
    "bridge": "bridge",
    "mcp": "mcp",
    "outbox": "outbox",
    "doctor": "doctor",
    "compact": "compact",
    "version": "version",
}

# Verbs that scripts call often: their modules do not import typer, so they can be called without it. All others may
# end with typer's exceptions, which only typer handles.
WITHOUT_TYPER: Final = frozenset({"submit", "status", "version"})
