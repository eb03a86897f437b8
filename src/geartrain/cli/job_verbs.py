"""The verbs that act on jobs and functions by name: cancel, retry, delete, pause, resume.

They differ only in words, so they are made from one table.
"""

import sys
from collections.abc import Callable
from typing import Annotated, Final, NamedTuple

import typer

from geartrain.cli import exit_codes, remote, tables
from geartrain.errors import AdminError


class Verb(NamedTuple):
    """One of them."""

    name: str
    argument: str  # what the server calls the thing
    past: str  # for the report
    help: str
    epilog: str


VERBS: Final = (
    Verb(
        "cancel", "handle", "cancelled", "End jobs that wait or run.",
        "A worker that runs the job is told where its protocol can say so; its answer is ignored in any case.",
    ),
    Verb(
        "retry", "handle", "queued again", "Give dead jobs another life.",
        "A job is dead when it was given up: its workers vanished, or it failed too often."
        " `geartrain jobs --state dead` lists them with their reasons.",
    ),
    Verb("delete", "handle", "deleted", "Forget dead jobs for good.", "Jobs that wait or run are ended with `cancel`."),
    Verb(
        "pause", "function", "paused", "Hand out no more jobs of functions, until they are resumed.",
        "Jobs are still accepted, and those that run go on. A pause outlives a restart of the server.",
    ),
    Verb("resume", "function", "resumed", "Hand out jobs of paused functions again.", ""),
)  # fmt: skip


def command(verb: Verb) -> Callable[..., None]:
    """The verb as typer wants it."""
    metavar = f"{verb.argument.upper()}..."
    about = f"Whose, such as `{'H:host:17' if verb.argument == 'handle' else 'reverse'}`; several may be given."

    def act(
        names: Annotated[list[str], typer.Argument(metavar=metavar, help=about, show_default=False)],
        server: remote.Server = remote.USUAL,
        json: remote.Json = False,
    ) -> None:
        failed = 0
        for name in names:
            try:
                answer = remote.ask(server, verb.name, **{verb.argument: name})
            except AdminError as error:
                failed = exit_codes.code_for(error)
                print(f"geartrain: {error}", file=sys.stderr)
                continue
            tables.say([tables.json_line(answer) if json else f"{name} {verb.past}"])
        if failed:
            raise typer.Exit(failed)

    act.__doc__ = verb.help
    return act


def epilog(verb: Verb) -> str:
    return f"{verb.epilog}\n\n{exit_codes.EPILOG}" if verb.epilog else exit_codes.EPILOG


def add(app: typer.Typer) -> None:
    """Add all of them."""
    for verb in VERBS:
        app.command(verb.name, epilog=epilog(verb))(command(verb))
