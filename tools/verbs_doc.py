"""Writes the tables of verbs into docs/admin.md, or says with --check that they are out of date.

The tables are made from the rows of src/geartrain/admin/verbs and are between two markers; the rest of the page is
left as it is.

    python tools/verbs_doc.py [--check]
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from geartrain.admin import verbs
from geartrain.admin.verbs import Argument, Verb

PAGE = Path(__file__).parent.parent / "docs" / "admin.md"
BEGIN = "<!-- Written by tools/verbs_doc.py from src/geartrain/admin/verbs; change that instead. -->\n"
END = "<!-- The end of what tools/verbs_doc.py wrote. -->\n"
TITLES = {
    verbs.SERVER: "Server verbs",
    verbs.FUNCTION: "Function verbs",
    verbs.JOB: "Job verbs",
    verbs.WORKER: "Worker verbs",
    verbs.SCHEDULE: "Schedule verbs",
}


def tables() -> Iterator[str]:
    """One table for each subject."""
    for about, title in TITLES.items():
        rows = [_row(verb) for verb in verbs.VERBS.values() if verb.about == about]
        yield "\n".join([f"### {title}", "| verb | arguments | HTTP | command |", "|---|---|---|---|", *rows, ""])


def _row(verb: Verb) -> str:
    arguments = ", ".join(_argument(argument) for argument in verb.arguments)
    http = f"`{verb.http.method} {verb.http.path}`" if verb.http is not None else ""
    command = f"`geartrain {f'{verb.command.group} {verb.command.name}'.strip()}`" if verb.command is not None else ""
    return f"| `{verb.name}`: {verb.help} | {arguments} | {http} | {command} |"


def _argument(argument: Argument) -> str:
    """An argument in bold if it is required, with its default if it has one."""
    name = f"**`{argument.name}`**" if argument.required else f"`{argument.name}`"
    choices = " or ".join(f"`{choice}`" for choice in argument.choices) if len(argument.choices) < 6 else ""
    default = f"`{argument.default}`" if argument.default not in (None, "", 0, False) and not choices else ""
    return f"{name} ({choices or default})" if choices or default else name


def updated(text: str) -> str:
    """The page with the tables of today's rows; a ValueError if it has no place for them."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the two markers of the tables are missing")
    return f"{before}{BEGIN}{chr(10).join(tables())}{END}{after}"


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
        print(f"{PAGE} is out of date: run python tools/verbs_doc.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
