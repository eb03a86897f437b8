"""The programs in a page of the documentation: code blocks, some of which name their file.

```python file=shop/tasks.py
"""

import re
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```", re.DOTALL | re.MULTILINE)


class CodeBlock(NamedTuple):
    """A block of a page."""

    kind: str
    file: str  # empty: the block is a fragment
    text: str


def blocks(page: str, kind: str = "") -> list[CodeBlock]:
    """The blocks of `docs/page`, or those of a kind."""
    found = [CodeBlock(*groups) for groups in BLOCK.findall((DOCS / page).read_text())]
    return [block for block in found if not kind or block.kind == kind]


def write_files(page: str, folder: Path, **replacements: str) -> None:
    """Write the files of a page into a folder. `_4730="..."` replaces the addresses that the page has for that port."""
    for block in blocks(page):
        if block.file:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            text = block.text
            for port, url in replacements.items():
                text = re.sub(rf"\w+://127\.0\.0\.1:{port.lstrip('_')}", url, text)
            path.write_text(text)
