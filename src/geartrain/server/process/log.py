"""The log: one readable line per event, or one JSON object per line.

    2026-11-15T19:00:00.123 info gearman  listening  address=gearman://127.0.0.1:4730

The message is a fixed text that names the event; docs/operations.md lists all of them. What varies is in fields, which
the code passes as `extra={"fields": {...}}`. Loggers are called `geartrain.<room>`; the field `door` names a protocol
and takes the room's place in the line. Control characters are escaped, so that no peer can write lines of its own.
"""

import contextlib
import datetime
import logging
import logging.handlers
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from geartrain.errors import StartError
from geartrain.server.process.log_limiter import LINES_PER_PERIOD, PERIOD_SECONDS, EventKey, GuardedLimiter, LineLimiter
from geartrain.server.process.log_writer import FileTarget, LogTarget, LogWriter, NoTarget, standard_error

# The names are gearmand's; Geartrain itself logs at critical, error, warning, info and debug.
LEVELS = {
    "fatal": 60,
    "alert": 55,
    "critical": logging.CRITICAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "notice": 25,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}
STDERR, SYSLOG, NONE = "stderr", "syslog", "none"
SYSLOG_SOCKET = "/dev/log"

_ROOT = "geartrain"
_LEVEL_NAMES = {number: name for name, number in LEVELS.items()}
_BARE_VALUE = re.compile(r"[^\s\"'=\\\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_log = logging.getLogger(f"{_ROOT}.server")


class LogEvent:
    """The parts of a log record, for a formatter."""

    def __init__(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = dict(getattr(record, "fields", {}))
        self.time = datetime.datetime.fromtimestamp(record.created).astimezone()
        self.level = _LEVEL_NAMES.get(record.levelno, record.levelname.lower())
        self.room = record.name.removeprefix(f"{_ROOT}.")
        self.source = str(fields.pop("door", self.room))  # the protocol where there is one
        self.message = record.getMessage()
        self.fields = fields
        self.traceback = _traceback(record)


class TextFormatter(logging.Formatter):
    """Lines for people. A traceback follows its line, indented, so that every unindented line is an event."""

    def __init__(self, with_time: bool = True) -> None:
        super().__init__()
        self._with_time = with_time

    def format(self, record: logging.LogRecord) -> str:
        event = LogEvent(record)
        time = event.time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{event.time.microsecond // 1000:03d} "
        line = f"{time if self._with_time else ''}{event.level} {event.source}  {_escaped(event.message)}"
        if event.fields:
            line += "  " + " ".join(f"{name}={_value(value)}" for name, value in event.fields.items())
        if event.traceback:
            line += "".join(f"\n    {traceback_line}" for traceback_line in event.traceback.splitlines())
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object per line; the fields are members of it under their own names."""

    def format(self, record: logging.LogRecord) -> str:
        event = LogEvent(record)
        line = {
            **{name: _plain(value) for name, value in event.fields.items()},
            "time": event.time.isoformat(timespec="milliseconds"),
            "level": event.level,
            "room": event.room,
            "message": event.message,
        }
        if event.source != event.room:
            line["door"] = event.source
        if event.traceback:
            line["traceback"] = event.traceback
        return msgspec.json.encode(line, order="sorted").decode()


def open_file(path: str, extra_flags: int = 0) -> int:
    """Open a file to append to it, and create it if it does not exist.

    A file that exists is opened without O_CREAT: in /tmp Linux refuses that even to root if the file is another user's.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | extra_flags
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        return os.open(path, flags | os.O_CREAT, 0o644)


class ReopeningFile(FileTarget):
    """A log file that can be reopened after log rotation."""

    def __init__(self, path: str, opener: Callable[[str], int] = open_file) -> None:
        self.path = os.path.abspath(path)
        super().__init__(opener(self.path))

    def use(self, descriptor: int) -> None:
        """Write to another file from now on."""
        os.close(self.descriptor)
        self.descriptor = descriptor

    def close(self) -> None:
        os.close(self.descriptor)


class SystemLog:
    """The system log. The handler adds the priority that belongs to the level."""

    def __init__(self, handler: logging.handlers.SysLogHandler) -> None:
        self._handler = handler

    def write(self, level: int, line: str) -> None:
        record = {"levelno": level, "levelname": logging.getLevelName(level), "msg": line}
        self._handler.emit(logging.makeLogRecord(record))

    def close(self) -> None:
        self._handler.close()


class LogHandler(logging.Handler):
    """Hands formatted lines to the writer, except those that the limiter leaves out."""

    def __init__(self, target: LogTarget, formatter: logging.Formatter, lines_per_peer: int) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self._limiter = GuardedLimiter(LineLimiter(lines_per_peer), self._summarise)
        self.writer = LogWriter(target, self._dropped, self._limiter.end_periods)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            allowed, is_first = self._limiter.allows(record)
            if allowed:
                self.writer.put(record.levelno, self.format(record))
            elif is_first:
                self.writer.wake()  # to set its timer
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Write what waits, and how many lines were left out so far."""
        super().close()
        self._limiter.report(float("inf"))
        self.writer.close()

    def _summarise(self, event: EventKey, count: int) -> None:
        fields = {"event": event.name, "peer": event.host, "count": count, "seconds": int(PERIOD_SECONDS)}
        if event.door:
            fields["door"] = event.door
        self.writer.put(logging.WARNING, self.event_line(logging.WARNING, "similar lines left out", fields))

    def _dropped(self, count: int) -> tuple[int, str]:
        return logging.WARNING, self.event_line(logging.WARNING, "log lines dropped", {"count": count})

    def event_line(self, level: int, event: str, fields: Mapping[str, object]) -> str:
        """The line of an event of the log itself, which passes neither the limiter nor a full queue."""
        record = {"name": _log.name, "levelno": level, "msg": event, "fields": fields}
        return self.format(logging.makeLogRecord(record))


def is_file(target: str) -> bool:
    """Whether the log's target is a path."""
    return target not in (STDERR, SYSLOG, NONE)


FORMATS = {"text": TextFormatter, "json": JsonFormatter}


class Log:
    """The log of the process while it is open. It also gets the warnings of libraries."""

    def __init__(self, target: str, level: str, format: str, lines_per_peer: int = LINES_PER_PERIOD) -> None:
        self.target = target
        self.level = level
        self._target = _target(target)
        formatter = TextFormatter(with_time=False) if target == SYSLOG else FORMATS[format]()
        self._handler = LogHandler(self._target, formatter, lines_per_peer)
        logging.raiseExceptions = False  # no traceback on stderr for each line that cannot be written
        number = LEVELS[level]
        logging.getLogger(_ROOT).setLevel(number)
        logging.getLogger().setLevel(max(number, logging.WARNING))
        logging.getLogger().addHandler(self._handler)

    def reopen(self) -> None:
        """Reopen the log file, for log rotation. If that fails, the old file stays in use."""
        file = self._target
        if not isinstance(file, ReopeningFile):
            return
        try:
            descriptor = open_file(file.path, os.O_NONBLOCK)  # does not wait for the reader of a FIFO
        except OSError as error:
            fields = {"file": file.path, "why": error.strerror}
            _log.error("cannot reopen log file", extra={"fields": fields})
        else:
            self._handler.writer.call(lambda: file.use(descriptor))
            _log.info("log file reopened")

    def close(self) -> None:
        logging.getLogger().removeHandler(self._handler)
        self._handler.close()


@contextlib.contextmanager
def opened(target: str, level: str, format: str, lines_per_peer: int = LINES_PER_PERIOD) -> Iterator[Log]:
    """Open the log for the block."""
    log = Log(target, level, format, lines_per_peer)
    try:
        yield log
    finally:
        log.close()


def _target(target: str) -> LogTarget:
    if target == STDERR:
        return standard_error()
    if target == NONE:
        return NoTarget()
    try:
        return SystemLog(_syslog()) if target == SYSLOG else ReopeningFile(target)
    except OSError as error:
        output = f"the system log at {SYSLOG_SOCKET}" if target == SYSLOG else f"the log file {target}"
        raise StartError(f"cannot open {output}: {error.strerror}") from None


def _syslog() -> logging.handlers.SysLogHandler:
    os.stat(SYSLOG_SOCKET)  # the handler would wait for it without an error
    handler = logging.handlers.SysLogHandler(SYSLOG_SOCKET, logging.handlers.SysLogHandler.LOG_DAEMON)
    handler.ident = f"geartrain[{os.getpid()}]: "
    handler.append_nul = False
    return handler


def _traceback(record: logging.LogRecord) -> str:
    if not record.exc_info:
        return ""
    return logging.Formatter().formatException(record.exc_info)


def _plain(value: Any) -> Any:
    """The value of a field in a type that JSON has."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return _text(value)


def _text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _value(value: Any) -> str:
    text = _text(value)
    if _BARE_VALUE.fullmatch(text):
        return text
    return '"' + _escaped(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _escaped(text: str) -> str:
    """The text with control characters and line ends escaped."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
