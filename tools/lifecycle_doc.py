"""Writes the diagram of a job's life into docs/architecture.md, or says with --check that it is out of date.

The diagram is made from the engine's table of transitions and stands between two markers; the rest of the page
is left as it is.

    python tools/lifecycle_doc.py [--check]
"""

import written_page

from geartrain.engine import lifecycle

PAGE = written_page.DOCS / "architecture.md"
BEGIN = "<!-- Written by tools/lifecycle_doc.py from src/geartrain/engine/lifecycle.py; change that instead. -->\n"
END = "<!-- The end of what tools/lifecycle_doc.py wrote. -->\n"


def page() -> str:
    """The page with the diagram of today's table."""
    return written_page.between(PAGE, BEGIN, END, f"```mermaid\n{lifecycle.diagram()}\n```\n")


if __name__ == "__main__":
    raise SystemExit(written_page.main(PAGE, page))
