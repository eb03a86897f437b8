"""Progress and notices on stderr while a long command runs."""

import sys
import time
from typing import Final

_SECONDS_BETWEEN_REPORTS: Final = 0.2
_NOTICES_SHOWN: Final = 5


class ProgressLine:
    """A count on stderr, in one line that is erased at the end; nothing where stderr is not a terminal."""

    def __init__(self, activity: str) -> None:
        self._activity = activity
        self._visible = sys.stderr.isatty()
        self._next = time.monotonic() + _SECONDS_BETWEEN_REPORTS
        self._width = 0

    def __call__(self, count: int) -> None:
        if self._visible and time.monotonic() >= self._next:
            self._next = time.monotonic() + _SECONDS_BETWEEN_REPORTS
            line = f"{self._activity} {count:,}"
            self._width = len(line)
            print(f"\r{line}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._width:
            print(f"\r{' ' * self._width}\r", end="", file=sys.stderr, flush=True)
            self._width = 0


class Notices:
    """Prints the first few notices on stderr, and at the end how many more there were."""

    def __init__(self, progress: ProgressLine) -> None:
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
            print(f"geartrain: and {self.count - _NOTICES_SHOWN:,} more", file=sys.stderr)


def count_of(count: int, thing: str) -> str:
    """
    >>> count_of(1, "job"), count_of(1200, "job")
    ('1 job', '1,200 jobs')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
