"""The log of `geartrain work`: lines with timestamps on standard error, or JSON, for the worker and the application.

An application that configures `logging` itself keeps its configuration: its handlers get the worker's events too.
"""

import logging
import os
import sys

from geartrain.server.process.log import LEVELS, JsonFormatter, LogEvent


class WorkFormatter(logging.Formatter):
    """Lines for people: time, level, logger and process, message; then the traceback, indented."""

    def format(self, record: logging.LogRecord) -> str:
        event = LogEvent(record)
        time = event.time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{event.time.microsecond // 1000:03d}"
        lines = [f"{time} {event.level} {event.room}[{os.getpid()}]  {event.message}"]
        lines += [f"    {line}" for line in event.traceback.splitlines()]
        return "\n".join(lines)


class WorkLog:
    """The log of this process."""

    def __init__(self, level: str, as_json: bool) -> None:
        """Log to standard error from now on."""
        self._handler = logging.StreamHandler(sys.stderr)
        self._handler.setFormatter(JsonFormatter() if as_json else WorkFormatter())
        root = logging.getLogger()
        root.addHandler(self._handler)
        root.setLevel(LEVELS[level])

    def yield_to_application(self) -> None:
        """After the application was imported: if it has set handlers of its own, use those alone."""
        root = logging.getLogger()
        if any(handler is not self._handler for handler in root.handlers):
            root.removeHandler(self._handler)
