"""Write manual pages from the command's own help: geartrain(1), and one page for each verb.

python tools/man_pages.py FOLDER
"""

import datetime
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

import geartrain
from geartrain.cli import app

_MARKUP = re.compile(r"\*\*(.+?)\*\*|\*(.+?)\*|`(.+?)`")


def pages() -> Iterator[tuple[str, str]]:
    """The name and the text of each page."""
    command = typer.main.get_command(app.build())
    verbs: dict[str, Any] = dict(sorted(command.commands.items()))  # type: ignore[attr-defined]
    yield "geartrain", _overview(command, verbs)
    for name, verb in verbs.items():
        if name != "gearmand":  # it has the options of gearmand(8), and a parser of its own
            yield f"geartrain-{name}", _verb(f"geartrain-{name}", verb)


def _overview(command: Any, verbs: dict[str, Any]) -> str:
    lines = [*_head("geartrain", command), ".SH COMMANDS"]
    for name, verb in verbs.items():
        lines += [".TP", f"\\fBgeartrain {name}\\fR", _roff(_summary(verb))]
    return _page([*lines, *_notes(command), *_files(verbs)])


def _verb(page: str, verb: Any) -> str:
    lines = _head(page, verb)
    for name, below in getattr(verb, "commands", {}).items():
        lines += [
            ".SS",
            f"{page.replace('-', ' ')} {name}",
            _roff(_summary(below)),
            *_options(below),
            *_notes(below, ".PP"),
        ]
    return _page([*lines, *_options(verb), *_notes(verb), ".SH SEE ALSO", "\\fBgeartrain\\fR(1)"])


def _head(page: str, command: Any) -> list[str]:
    date = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.UTC).date()
    usage = page.replace("-", " ", 1)
    arguments = [parameter.metavar or parameter.name.upper() for parameter in _arguments(command)]
    synopsis = " ".join([f"\\fB{usage}\\fR", "[\\fIOPTIONS\\fR]", *(f"\\fI{_roff(word)}\\fR" for word in arguments)])
    return [
        f'.TH {page.upper()} 1 {date} "Geartrain {geartrain.__version__}" "Geartrain manual"',
        ".SH NAME", f"{page} \\- {_roff(_summary(command)).rstrip('.')}",
        ".SH SYNOPSIS", synopsis,
    ]  # fmt: skip


def _arguments(command: Any) -> list[Any]:
    return [parameter for parameter in command.params if parameter.param_type_name == "argument"]


def _options(command: Any) -> list[str]:
    lines: list[str] = []
    for parameter in command.params:
        if parameter.param_type_name == "option":
            names = ", ".join(f"\\fB{_roff(name)}\\fR" for name in (*parameter.opts, *parameter.secondary_opts))
            value = "" if parameter.is_flag else f" \\fI{_roff(parameter.metavar or parameter.name.upper())}\\fR"
            lines += [".TP", f"{names}{value}", _roff(parameter.help or "")]
    return [".SH OPTIONS", *lines] if lines else []


def _notes(command: Any, heading: str = ".SH NOTES") -> list[str]:
    """The text below the options: paragraphs, and lists of examples."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", (command.epilog or "").strip()):
        text = " ".join(block.split())
        if text.startswith("- "):
            lines += [".IP \\(bu 2", _roff(text[2:])]
        elif text:
            lines += [".PP", _roff(text)]
    return [heading, *lines] if lines else []


def _files(verbs: dict[str, Any]) -> list[str]:
    see = ", ".join(f"\\fBgeartrain-{name}\\fR(1)" for name in verbs if name != "gearmand")
    files = ("~/.config/geartrain/geartrain.toml", "/etc/geartrain/geartrain.toml")
    return [
        ".SH FILES",
        *(line for file in files for line in (".TP", f"\\fI{file}\\fR", "Settings.")),
        ".SH SEE ALSO",
        see,
    ]


def _summary(command: Any) -> str:
    return " ".join((command.help or "").partition("\n\n")[0].split())


def _roff(text: str) -> str:
    """Markdown as roff: no line may begin with a control character."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    marked = _MARKUP.sub(lambda match: f"\\fB{match[1] or match[2] or match[3]}\\fR", escaped)
    return "\\&" + marked if marked.startswith((".", "\\(aq")) else marked


def _page(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages():
        (folder / f"{name}.1").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
