"""Writes the tables of verbs into docs/admin.md, or says with --check that they are out of date.

The tables are made from the rows of src/geartrain/admin/verbs and are between two markers; the rest of the page is
left as it is.

    python tools/verbs_doc.py [--check]
"""

from collections.abc import Iterator

import written_page

from geartrain.admin import verbs
from geartrain.admin.verbs import Argument, Verb

PAGE = written_page.DOCS / "admin.md"
BEGIN = "<!-- Written by tools/verbs_doc.py from src/geartrain/admin/verbs; change that instead. -->\n"
END = "<!-- The end of what tools/verbs_doc.py wrote. -->\n"
TITLES = {
    verbs.SERVER: "Server verbs",
    verbs.FUNCTION: "Function verbs",
    verbs.JOB: "Job verbs",
    verbs.WORKER: "Worker verbs",
    verbs.SCHEDULE: "Schedule verbs",
    verbs.CLUSTER: "Cluster verbs",
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


def page() -> str:
    """The page with the tables of today's rows."""
    return written_page.between(PAGE, BEGIN, END, "\n".join(tables()))


if __name__ == "__main__":
    raise SystemExit(written_page.main(PAGE, page))
