"""Write docs/rights-table.md from the table that the tests try out, or check with --check that it is up to date.

python tools/rights_doc.py [--check]
"""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import written_page

from geartrain.rights import ADMIN, READ, SUBMIT, WORK

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
rights_table: Any = importlib.import_module("tests.support.rights_table")

PAGE = written_page.DOCS / "rights-table.md"
NAMES = {
    "gearman": "Gearman",
    "danga": "Danga's draft of 2005",
    "periodic": "Periodic",
    "memodb": "MemoDB",
    "gearmonkey": "GearMonkey",
    "http": "HTTP",
}
COLUMNS = (SUBMIT, WORK, READ, ADMIN)

OPENING = """\
# Rights of every request

<!-- Written by tools/rights_doc.py from tests/support/rights_table.py; change that instead. -->

Which [scope](security.md#rights) allows which request, by protocol. `tests/acceptance/test_rights_table.py` sends every
request with every scope, and checks that it is carried out or refused as this page says. A scope counts for the
function that a request names; requests that name none need it for all functions, and lists contain what the
peer may read.

Requests about a single job, such as `GET_STATUS`, are for everybody, but do not find jobs of functions for which the
peer may neither submit nor read. Those by which workers report are about jobs that they were given.

The control function `geartrain.control` can be submitted to by every peer with a right; each of its
[verbs](admin.md) asks for its own scope.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([OPENING, *("\n".join(_section(door)) for door in NAMES)])


def _section(door: str) -> Iterator[str]:
    by_scopes: dict[tuple[str, ...], list[str]] = {}
    for row in rights_table.ROWS:
        if row.door == door:
            by_scopes.setdefault(row.scopes, []).append(_shown(row))
    yield f"## {NAMES[door]}"
    yield f"Refused by {rights_table.REFUSALS[door]}."
    yield ""
    yield f"| request | {' | '.join(COLUMNS)} |"
    yield f"|---|{'---|' * len(COLUMNS)}"
    for scopes, requests in by_scopes.items():
        cells = ["yes" if scope == ADMIN or scope in scopes else "" for scope in COLUMNS]
        yield f"| {', '.join(dict.fromkeys(requests))} | {' | '.join(cells)} |"
    yield ""
    yield f"For everybody: {', '.join(f'`{name}`' for name in rights_table.EVERYBODY[door])}."
    yield ""


def _shown(row: Any) -> str:
    """As the protocol writes it; of GearMonkey's commands only the name, and the kind of the key where it matters."""
    if row.door == "gearmonkey":
        command, _, arguments = row.request.partition(" ")
        kind = arguments.partition(":")[0]
        return f"`{command} {kind}`" if kind in ("queue", "lock", "LIST") else f"`{command}`"
    request = row.request.replace(rights_table.FUNCTION, "NAME").replace(" 1000", " N")
    return f"`{request.replace('{dead}', 'HANDLE').replace('job {handle}', 'job HANDLE')}`"


if __name__ == "__main__":
    raise SystemExit(written_page.main(PAGE, page))
