"""What the verbs for a store's file have in common: how it is named, how they report, how they fail."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Annotated, Final

import typer

from geartrain.errors import GeartrainError
from geartrain.server import sources
from geartrain.server.settings import TABLE, Settings

_SECONDS_BETWEEN_REPORTS: Final = 0.2
_NOTICES_SHOWN: Final = 5

Store = Annotated[
    str | None,
    typer.Option(
        TABLE["store"].flag,
        metavar="STORE",
        help="The store, such as `sqlite:///var/lib/geartrain/jobs.db`. [default: what `geartrain serve` uses]",
        show_default=False,
    ),
]
Config = Annotated[
    str | None,
    typer.Option(
        sources.CONFIG_FLAG,
        metavar="FILE",
        help="Read the server's settings from this TOML file.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Report as one JSON object, for machines.")]


def settings(store: str | None, config: str | None) -> Settings:
    """What `geartrain serve` would use with these flags."""
    return sources.load({"store": store, "config": config})


@contextlib.contextmanager
def plain_errors(file: str) -> Iterator[None]:
    """What the system refuses to do with a file is one line on stderr, as our own errors are."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise GeartrainError(f"{file}: {error.strerror or error}") from None


class Progress:
    """Counts on stderr while somebody watches, in one line that goes away at the end."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._watched = sys.stderr.isatty()
        self._next = time.monotonic() + _SECONDS_BETWEEN_REPORTS
        self._width = 0

    def __call__(self, count: int) -> None:
        if self._watched and time.monotonic() >= self._next:
            self._next = time.monotonic() + _SECONDS_BETWEEN_REPORTS
            line = f"{self._doing} {count:,}"
            self._width = len(line)
            print(f"\r{line}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._width:
            print(f"\r{' ' * self._width}\r", end="", file=sys.stderr, flush=True)
            self._width = 0


class Notices:
    """The first few on stderr, then only how many more there were."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.count = 0

    def __call__(self, text: str) -> None:
        self.count += 1
        if self.count <= _NOTICES_SHOWN:
            self._progress.end()
            print(f"geartrain: {text}", file=sys.stderr)

    def end(self) -> None:
        self._progress.end()
        if self.count > _NOTICES_SHOWN:
            print(f"geartrain: and {self.count - _NOTICES_SHOWN:,} more like these", file=sys.stderr)


def counted(count: int, thing: str) -> str:
    """
    >>> counted(1, "job"), counted(1200, "job")
    ('1 job', '1,200 jobs')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
