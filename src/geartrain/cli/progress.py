"""What long work says on stderr while somebody watches."""

import sys
import time
from typing import Final

_SECONDS_BETWEEN_REPORTS: Final = 0.2
_NOTICES_SHOWN: Final = 5


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
