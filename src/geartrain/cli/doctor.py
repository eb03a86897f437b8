"""`geartrain doctor`: what is well, what is not, and what to do about it."""

import textwrap
from typing import Annotated, Final

import msgspec
import typer

from geartrain.cli import local_store, progress
from geartrain.maintenance.doctor import examination
from geartrain.maintenance.doctor.finding import Finding, Level

EPILOG = """
Each line says whether something is *ok*, a *warning* (it works, and somebody should know) or a *problem*, and what
to do. The exit code is 0 when there is no problem, and 1 otherwise. It looks and changes nothing, so it may be run
beside a server. Run it as the user that the server runs as, since it asks what that user may do.

**Examples**

- `geartrain doctor` before the first start, or when something is odd

- `geartrain doctor --config /etc/geartrain/geartrain.toml` checks what that server would use

- `geartrain doctor --thorough` reads a large store to its end, and compares its indexes

- `geartrain doctor --json | jq '.findings[] | select(.level != "ok")'`
"""

_WIDTH: Final = 110
_COLUMN: Final = 24


def doctor(
    store: local_store.Store = None,
    config: local_store.Config = None,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Read all of the store, however long that takes.")
    ] = False,
    json: local_store.Json = False,
) -> None:
    """Check settings, store, disk, ports and versions, and say what to do about each problem."""
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
        print(f"{progress.counted(problems, 'problem')}, {progress.counted(warnings, 'warning')}")
    if counts[Level.PROBLEM]:
        raise typer.Exit(1)


def _lines(finding: Finding) -> str:
    """The level and the check in a column of their own, the words beside them."""
    head = f"{finding.level.value:8} {finding.check:14} "
    indent = " " * _COLUMN
    text = textwrap.fill(finding.text, _WIDTH, initial_indent=head, subsequent_indent=indent)
    if not finding.advice:
        return text
    advice = textwrap.fill(f"-> {finding.advice}", _WIDTH, initial_indent=indent, subsequent_indent=indent)
    return f"{text}\n{advice}"
