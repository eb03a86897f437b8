"""What the tools have in common that write a page of the documentation, or a part of one, from the code.

python tools/NAME_doc.py            writes the page
python tools/NAME_doc.py --check    fails if the page is out of date
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def main(page: Path, make: Callable[[], str], arguments: Sequence[str] | None = None) -> int:
    """Write a page, or check it; return the exit code. `make` raises ValueError if the page cannot be made."""
    tool = Path(sys.argv[0]).name
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words not in ([], ["--check"]):
        print(f"usage: python tools/{tool} [--check]", file=sys.stderr)
        return 2
    try:
        wanted = make()
    except ValueError as error:
        print(f"{page}: {error}", file=sys.stderr)
        return 1
    if not words:
        page.write_text(wanted, encoding="utf-8")
    elif not page.exists() or page.read_text(encoding="utf-8") != wanted:
        print(f"{page} is out of date: run python tools/{tool}", file=sys.stderr)
        return 1
    return 0


def between(page: Path, begin: str, end: str, part: str) -> str:
    """The page with this part between two lines; a ValueError if it has no place for it."""
    before, first, rest = page.read_text(encoding="utf-8").partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise ValueError(f"the line {(end if first else begin).strip()!r} is missing")
    return f"{before}{begin}{part}{end}{after}"
