"""`geartrain doctor`: check an installation, and advise on each problem."""

import textwrap
from typing import Annotated, Final

import msgspec
import typer

from geartrain.cli import local_store, progress
from geartrain.maintenance.doctor import examination
from geartrain.maintenance.doctor.finding import Finding, Level

EPILOG = """
Each line is *ok*, a *warning* (it works, but deserves attention) or a *problem*, with advice. The exit code is 0 if
there is no problem, else 1. Doctor changes nothing and can run beside a server. Run it as the server's user: it checks
what that user may do.

**Examples**

- `geartrain doctor` before the first start, or when something seems wrong

- `geartrain doctor --config /etc/geartrain/geartrain.toml` checks the settings of that server

- `geartrain doctor --store 'postgresql://geartrain@db/jobs'` checks PostgreSQL, its settings, and the servers on it

- `geartrain doctor --thorough` reads the whole store and compares its indexes

- `geartrain doctor --json | jq '.findings[] | select(.level != "ok")'`
"""

_WIDTH: Final = 110
_COLUMN: Final = 24


def doctor(
    store: local_store.Store = None,
    config: local_store.Config = None,
    thorough: Annotated[bool, typer.Option("--thorough", help="Read the whole store, however long it takes.")] = False,
    json: local_store.Json = False,
) -> None:
    """Check settings, store, disk, ports and versions, and advise on each problem."""
    findings: list[Finding] = []
    for finding in examination.examine({"store": store, "config": config}, thorough):
        findings.append(finding)
        if not json:
            print(_lines(finding), flush=True)
    counts = {level.value: sum(finding.level is level for finding in findings) for level in Level}
    if json:
        print(msgspec.json.encode({**counts, "findings": [finding._asdict() for finding in findings]}).decode())
    else:
        problems, warnings = counts[Level.PROBLEM], counts[Level.WARNING]
        print(f"{progress.count_of(problems, 'problem')}, {progress.count_of(warnings, 'warning')}")
    if counts[Level.PROBLEM]:
        raise typer.Exit(1)


def _lines(finding: Finding) -> str:
    """The level and the check in the left columns, text and advice beside them."""
    head = f"{finding.level.value:8} {finding.check:14} "
    indent = " " * _COLUMN
    text = textwrap.fill(finding.text, _WIDTH, initial_indent=head, subsequent_indent=indent)
    if not finding.advice:
        return text
    advice = textwrap.fill(f"-> {finding.advice}", _WIDTH, initial_indent=indent, subsequent_indent=indent)
    return f"{text}\n{advice}"
