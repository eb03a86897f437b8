"""Write docs/command-line.md from the command itself; --check fails if the page is out of date.

python tools/cli_doc.py [--check]
"""

import enum
import inspect
import re
import typing
from collections.abc import Iterator
from typing import Any

import typer
import written_page
from typer.models import ArgumentInfo

from geartrain.cli import app, connection_options, exit_codes

PAGE = written_page.DOCS / "command-line.md"

OPENING = """\
# The command line

<!-- Written by tools/cli_doc.py from src/geartrain/cli/; change that instead. -->

`geartrain` is one command with many verbs. Verbs that talk to a server find it by `--server URL` or
`GEARTRAIN_SERVER`; the default address is `gearman://127.0.0.1:4730`. All verbs for operators work over every protocol,
except `tail`, which works over three of them. `--server` accepts several URLs of one protocol, separated by commas; one
of the servers that answer is used.

For a server [with users](security.md#users), name the file with your token with `--token-file FILE`, which every verb
with `--server` has, or set `GEARTRAIN_TOKEN` or `GEARTRAIN_TOKEN_FILE`. A token with the right `read` is enough for all
verbs that only show something. Danga's protocol and MemoDB's cannot carry a token; use a certificate there.

With a URL such as `gearmans://` or `https://` the connection uses TLS. If the server's certificate is not signed by an
authority that this machine trusts, name the authority with `--tls-ca FILE`; if the server asks for a certificate,
present one with `--tls-certificate FILE` and `--tls-key FILE`. Every verb with `--server` has these three options, and
`GEARTRAIN_TLS_CA`, `GEARTRAIN_TLS_CERTIFICATE` and `GEARTRAIN_TLS_KEY` do the same.

Output on a terminal has colours (`NO_COLOR=1` turns them off). `--json` prints JSON: one object, or one per line for
lists.

`geartrain --install-completion` installs completion of verbs and options in your shell.
"""

SETTINGS = "It has an option for each setting: see [settings.md](settings.md)."


def page() -> str:
    """The whole page."""
    return "\n".join([OPENING, exit_codes.EPILOG.strip() + "\n", *_sections(app.build(), "geartrain")])


class _GroupCommand:
    """A group that does something without a command below it."""

    def __init__(self, group: typer.Typer) -> None:
        assert group.registered_callback is not None
        self.callback = group.registered_callback.callback
        self.epilog = group.info.epilog


def _sections(group: typer.Typer, path: str) -> Iterator[str]:
    for command in group.registered_commands:
        yield _section(command, f"{path} {command.name}")
    for below in group.registered_groups:
        assert below.typer_instance is not None
        name = f"{path} {below.typer_instance.info.name}"
        if below.typer_instance.info.invoke_without_command is True:  # it is a command itself
            yield _section(_GroupCommand(below.typer_instance), name)
        else:
            yield f"## {name}\n\n{below.typer_instance.info.help}\n"
        yield from _sections(below.typer_instance, name)


def _section(command: Any, path: str) -> str:
    lines = [f"## {path}", "", command.callback.__doc__, ""]
    if path == "geartrain serve":
        lines += [SETTINGS, ""]
    else:
        left_out = {"return", "context", *connection_options.OPTIONS}  # the page's opening explains these options
        hints = typing.get_type_hints(command.callback, include_extras=True)
        rows = [
            _row(name, *_parts(hint), _default(command, name)) for name, hint in hints.items() if name not in left_out
        ]
        lines += ["| option | description |", "|---|---|", *rows, ""] if rows else []
    epilog = re.sub(r"\n{3,}", "\n\n", (command.epilog or "").replace(exit_codes.EPILOG.strip(), "")).strip()
    return "\n".join([*lines, f"{epilog}\n"] if epilog else lines)


def _parts(hint: Any) -> tuple[Any, Any]:
    """The type of a parameter, and its typer option or argument."""
    type, about, *_ = typing.get_args(hint)
    return type, about


def _default(command: Any, name: str) -> Any:
    return inspect.signature(command.callback).parameters[name].default


def _row(name: str, type: Any, about: Any, default: Any) -> str:
    """One row of the table."""
    if isinstance(about, ArgumentInfo):
        names = about.metavar or name.upper()
    else:
        words = "" if type is bool else f" {about.metavar or _choices(type) or name.upper()}"
        # Inside Annotated, typer keeps the first name where a default would be.
        given = [word for word in (about.default, *(about.param_decls or ())) if isinstance(word, str)]
        names = ", ".join(given or [f"--{name.replace('_', '-')}"]) + words
    text = " ".join((about.help or "").split())
    if about.show_default and default not in (None, False, "", inspect.Parameter.empty):
        text += f" Default: `{getattr(default, 'value', default)}`."
    return f"| `{_cell(names)}` | {_cell(text)} |"


def _choices(type: Any) -> str:
    kinds: list[Any] = [kind for kind in (type, *typing.get_args(type)) if isinstance(kind, enum.EnumMeta)]
    return "|".join(choice.value for kind in kinds for choice in kind)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    raise SystemExit(written_page.main(PAGE, page))
