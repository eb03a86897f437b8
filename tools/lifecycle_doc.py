"""Writes the diagram of a job's life into docs/architecture.md, or says with --check that it is out of date.

The diagram is made from the engine's table of transitions and stands between two markers; the rest of the page
is left as it is.

    python tools/lifecycle_doc.py [--check]
"""

import sys
from pathlib import Path

from geartrain.engine import lifecycle

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
BEGIN = "<!-- Written by tools/lifecycle_doc.py from src/geartrain/engine/lifecycle.py; change that instead. -->\n"
END = "<!-- The end of what tools/lifecycle_doc.py wrote. -->\n"


def updated(text: str) -> str:
    """The page with the diagram of today's table; a ValueError if it has no place for it."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the two markers of the diagram are missing")
    return f"{before}{BEGIN}```mermaid\n{lifecycle.diagram()}\n```\n{END}{after}"


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    text = PAGE.read_text(encoding="utf-8")
    try:
        wanted = updated(text)
    except ValueError as error:
        print(f"{PAGE}: {error}", file=sys.stderr)
        return 1
    if not arguments:
        PAGE.write_text(wanted, encoding="utf-8")
    elif wanted != text:
        print(f"{PAGE} is out of date: run python tools/lifecycle_doc.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
