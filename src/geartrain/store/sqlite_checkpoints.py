"""Checkpoints: copying the write-ahead log of a SQLite file into the file.

A checkpoint takes as long as ten commits, and whoever waits for a commit would wait for it. So a server has another
connection copy the log, in a thread, while commits go on and append to it. Then the thread of the commits copies the
few pages that came meanwhile, and the next commit begins the log anew.

Tools and tests, which nobody waits for, copy all of it at once.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

import apsw

PAGES: Final = 1000  # in the log, from which on it is copied
# With so many, the thread that copies is waited for: the disk is slow, and the log must not grow without end.
MOST_PAGES: Final = 4 * PAGES

_log = logging.getLogger("geartrain.store")


class LogCheckpoints:
    """When the log is copied, and by whom. The thread of the commits calls it."""

    def __init__(self, path: Path, connect: Callable[[], apsw.Connection]) -> None:
        self.in_background = False  # set by a server
        self._path = path
        self._connect = connect  # makes the connection that copies in the background
        self._connection: apsw.Connection | None = None
        self._thread = ThreadPoolExecutor(1, "checkpoint")  # which it starts when it is needed first
        self._copying: Future[bool] | None = None  # until the rest has been copied, too
        self._pages = 0  # in the log, since all of it was copied
        self._due = PAGES  # with so many, it is copied next

    def committed(self, connection: apsw.Connection, written: int) -> None:
        """A commit has written this many pages to the log."""
        self._pages += written
        if self._pages < self._due:
            return
        copying = self._copying
        if copying is None and self.in_background and self._pages < MOST_PAGES:
            self._begin()
        elif copying is None or self._pages >= MOST_PAGES or copying.done():
            self.wait()
            is_whole = self._copy(connection)
            self._due = PAGES
            if is_whole:
                self._pages = 0
            elif self.in_background:  # whoever reads an old state of the file keeps the log from beginning anew
                self._due += self._pages

    def wait(self) -> None:
        """Wait until nothing is being copied."""
        if self._copying is not None:
            self._copying.result()
            self._copying = None

    def close(self) -> None:
        """End the thread that copies, and close its connection. Both are made again when they are needed."""
        self.wait()
        self._thread.shutdown()
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        connection, self._connection = self._connection, None
        self._pages, self._due = 0, PAGES
        if connection is not None:
            connection.close(True)

    def _begin(self) -> None:
        """Begin to copy in the background."""
        try:
            if self._connection is None:
                self._connection = self._connect()
        except apsw.Error as error:
            self._report(error)
            return
        self._copying = self._thread.submit(self._copy, self._connection)

    def _copy(self, connection: apsw.Connection) -> bool:
        """Copy what is in the log; whether that was all. If it fails, commits are safe there, and a later one tries."""
        try:
            pages, copied = connection.wal_checkpoint()
        except apsw.Error as error:
            self._report(error)
            return False
        return pages == copied

    def _report(self, error: apsw.Error) -> None:
        fields = {"file": str(self._path), "why": str(error) or type(error).__name__}
        _log.warning("checkpoint failed", extra={"fields": fields})
