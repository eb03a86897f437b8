"""The log of a task that is kept with its job: what its code logs with `logging` while an attempt runs.

    app = App("shop", keep_logs="INFO")

A handler of the root logger collects the records that belong to an attempt. It goes by the context, which threads and
asyncio tasks of the attempt share, so attempts that run at the same time do not mix. It is there while such attempts
run, and sees what loggers let through: their levels apply first.
"""

import contextlib
import contextvars
import datetime
import logging
import threading
from collections import deque
from collections.abc import Iterator
from typing import Final

Level = str | int | bool | None  # of the option `keep_logs`

MOST_LINES: Final = 1000  # of one attempt; the last ones are kept
MOST_BYTES: Final = 60_000
_LONGEST_LINE: Final = 4000  # characters
OFF: Final = 0


def parse_level(level: Level) -> int:
    """The number of a level, `OFF` for none.

    >>> parse_level("info"), parse_level(logging.ERROR), parse_level(True), parse_level(None)
    (20, 40, 20, 0)
    """
    if level is None or level is False:
        return OFF
    if level is True:
        return logging.INFO
    number = logging.getLevelNamesMapping().get(level.upper()) if isinstance(level, str) else level
    if number is None or number <= 0:
        raise ValueError(f"unknown level {level!r} of keep_logs; use debug, info, warning, error or critical")
    return number


class TaskLog:
    """The lines of one attempt. Any thread may add to it."""

    def __init__(self, level: int, attempt: int) -> None:
        self.level = level
        self._attempt = attempt
        self._lines: deque[str] = deque()
        self._bytes = 0
        self._dropped = 0
        self._lock = threading.Lock()

    def add(self, record: logging.LogRecord) -> None:
        """Add a record; one with several lines, such as a traceback, is several lines here too."""
        try:
            lines = _FORMATTER.format(record).splitlines()
        except Exception as error:  # wrong arguments of the call: `logging` reports it on stderr
            lines = [f"(record cannot be formatted: {type(error).__name__})"]
        with self._lock:
            for line in lines:
                self._append(line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "...")

    def text(self) -> str:
        """All of it; empty if nothing was logged."""
        with self._lock:
            if not self._lines:
                return ""
            head = [f"attempt {self._attempt}"]
            if self._dropped:
                head.append(f"({self._dropped} earlier lines were left out)")
            return "\n".join([*head, *self._lines, ""])

    def _append(self, line: str) -> None:
        self._lines.append(line)
        self._bytes += _size(line)
        while len(self._lines) > MOST_LINES or self._bytes > MOST_BYTES:
            self._bytes -= _size(self._lines.popleft())
            self._dropped += 1


def _size(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1


class _LineFormatter(logging.Formatter):
    """Times in UTC, as in 2030-01-01T12:00:00.000Z: workers and readers may be in different places."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802  # its name there
        moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _LogHandler(logging.Handler):
    """Adds records to the log of the attempt that they belong to."""

    def __init__(self) -> None:
        super().__init__()
        self._uses = 0

    def emit(self, record: logging.LogRecord) -> None:
        log = _current.get()
        if log is not None and record.levelno >= log.level:
            log.add(record)
        if _is_only_handler(self, record.name):
            _print_as_before(record)

    @contextlib.contextmanager
    def attached(self) -> Iterator[None]:
        """Collect during the block."""
        root = logging.getLogger()
        with _attaching:
            self._uses += 1
            if self._uses == 1:
                root.addHandler(self)
        try:
            yield
        finally:
            with _attaching:
                self._uses -= 1
                if not self._uses:
                    root.removeHandler(self)


def _is_only_handler(handler: logging.Handler, name: str) -> bool:
    """Whether no handler of the application would have got a record of this logger."""
    logger: logging.Logger | None = logging.getLogger(name)
    while logger is not None:
        if any(other is not handler for other in logger.handlers):
            return False
        logger = logger.parent if logger.propagate else None
    return True


def _print_as_before(record: logging.LogRecord) -> None:
    """What `logging` does without any handler: warnings and errors are printed on stderr."""
    last_resort = logging.lastResort
    if last_resort is not None and record.levelno >= last_resort.level:
        last_resort.handle(record)


_FORMATTER: Final = _LineFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
_current: Final[contextvars.ContextVar[TaskLog | None]] = contextvars.ContextVar("geartrain_task_log", default=None)
_attaching: Final = threading.Lock()
_handler: Final = _LogHandler()


@contextlib.contextmanager
def collected(level: int, attempt: int) -> Iterator[TaskLog]:
    """The log of an attempt that runs in the block."""
    log = TaskLog(level, attempt)
    token = _current.set(log)
    try:
        with _handler.attached():
            yield log
    finally:
        _current.reset(token)
