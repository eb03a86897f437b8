"""The thread that writes a log, so that nothing else waits for a pipe that nobody reads or for a slow disk.

Lines wait in a queue of bounded size. When it is full, or a line cannot be written, lines are dropped and counted; the
count is written as a line of its own once writing succeeds again.
"""

import contextlib
import os
import select
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, TextIO

_MOST_BYTES: Final = 1024 * 1024  # that wait, about ten thousand lines
_CLOSE_SECONDS: Final = 2.0  # how long the end of the process waits for lines that are still in the queue

Item = tuple[int, str] | Callable[[], None]  # a level and its line, or something to do between two lines


class LogTarget(Protocol):
    """Where lines go. Only the writer's thread uses it."""

    def write(self, level: int, line: str) -> None:
        """Write a line, without its end; an OSError if that fails."""

    def close(self) -> None: ...


class FileTarget:
    """An open file or pipe. Each line is one system call, without a buffer."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def write(self, level: int, line: str) -> None:
        data = line.encode("utf-8", "backslashreplace") + b"\n"
        while data:
            try:
                data = data[os.write(self.descriptor, data) :]
            except BlockingIOError:  # another process that has it open made it non-blocking
                select.select([], [self.descriptor], [])

    def close(self) -> None:
        """Leave it open: it belongs to the process."""


class StreamTarget:
    """A text stream in place of stderr, such as a test's."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, level: int, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Leave it open: it belongs to somebody else."""


class NoTarget:
    """For a log that is switched off."""

    def write(self, level: int, line: str) -> None: ...

    def close(self) -> None: ...


def standard_error() -> LogTarget:
    """The descriptor rather than Python's stream, whose lock would make the end of the process wait for the reader."""
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        return FileTarget(2)
    return StreamTarget(sys.stderr)


class LogWriter:
    """The queue and its thread.

    `count_dropped` makes the level and line that report how many lines were dropped. `idle` is called by the thread
    before it waits, and returns in how many seconds to call it again; None means not before there is more to write.
    """

    def __init__(
        self, target: LogTarget, count_dropped: Callable[[int], tuple[int, str]], idle: Callable[[], float | None]
    ) -> None:
        self._target = target
        self._count_dropped = count_dropped
        self._idle = idle
        self._changed = threading.Condition()
        self._queue: deque[Item] = deque()
        self._size = 0  # bytes of the lines in the queue
        self._dropped = 0
        self._closing = False
        self._woken = False
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def put(self, level: int, line: str) -> None:
        """Have a line written, or count it as dropped if too many wait."""
        with self._changed:
            if self._size + len(line) > _MOST_BYTES:
                self._dropped += 1
                return
            self._size += len(line)
            self._queue.append((level, line))
            self._changed.notify()

    def call(self, action: Callable[[], None]) -> None:
        """Have something done by the thread, after the lines that are in the queue."""
        with self._changed:
            self._queue.append(action)
            self._changed.notify()

    def wake(self) -> None:
        """Have the thread call `idle`."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def close(self) -> None:
        """Write what is in the queue, for a bounded time, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(_CLOSE_SECONDS)
        if not self._thread.is_alive():  # otherwise it is stuck in a write, and ends with the process
            self._target.close()

    def _run(self) -> None:
        while True:
            seconds = self._idle()
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing or self._woken, seconds)
                self._woken = False
                if self._closing and not self._queue:
                    return
                items = list(self._queue)
                self._queue.clear()
            for item in items:
                self._do(item)
            self._report_dropped()

    def _do(self, item: Item) -> None:
        if not isinstance(item, tuple):
            item()
            return
        written = self._write(*item)
        with self._changed:
            self._size -= len(item[1])
            self._dropped += not written

    def _report_dropped(self) -> None:
        with self._changed:
            count, self._dropped = self._dropped, 0
        if count and not self._write(*self._count_dropped(count)):
            with self._changed:
                self._dropped += count

    def _write(self, level: int, line: str) -> bool:
        with contextlib.suppress(OSError, ValueError):  # a stream that was closed raises ValueError
            self._target.write(level, line)
            return True
        return False
