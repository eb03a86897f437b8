"""The server's audit log: the newest entries in memory, and all of them in a file if `audit_file` names one.

The file is written by a thread (`process/log_writer.py`), so that nothing waits for the disk. Entries that cannot be
written are counted and reported in the server's log. Refusals and logins are limited per host and minute; an entry with
`left_out` says how many more there were.
"""

import asyncio
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from geartrain import audit
from geartrain.audit import AuditEntry, AuditPage, AuditQuery, Origin, Peer
from geartrain.errors import StartError
from geartrain.rights import Identity
from geartrain.server.audit_search import search_entries, search_file
from geartrain.server.process.log import ReopeningFile
from geartrain.server.process.log_limiter import PERIOD_SECONDS, EventKey, GuardedLimiter, LineLimiter, host_of
from geartrain.server.process.log_writer import LogWriter

ENTRIES_IN_MEMORY: Final = 1000
LINES_PER_PEER: Final = 20  # refusals, and as many logins, of one host per minute
_MOST_HOSTS: Final = 50  # beyond it, hosts are counted together
_FLUSH_SECONDS: Final = 2.0  # how long a search waits for entries that are being written
_NOWHERE: Final = Origin("", "")

_log = logging.getLogger("geartrain.audit")


class AuditFile(ReopeningFile):
    """The file. It reports the first write that fails, and the first that succeeds again."""

    def __init__(self, path: str) -> None:
        super().__init__(path, audit.open_file)
        self._failing = False
        self._cut = _ends_within_line(self.path)  # of a process that was killed, or a full disk

    def write(self, level: int, line: str) -> None:
        try:
            if self._cut:
                super().write(level, "")  # ends the line that was cut
            self._cut = True
            super().write(level, line)
        except OSError as error:
            if not self._failing:
                self._failing = True
                fields = {"file": self.path, "why": error.strerror}
                _log.error("audit file cannot be written", extra={"fields": fields})
            raise
        self._cut = False
        if self._failing:
            self._failing = False
            _log.warning("audit file can be written again", extra={"fields": {"file": self.path}})


class AuditLog:
    """One per server; implements `audit.Audit`."""

    def __init__(self, path: str = "") -> None:
        self._entries: deque[tuple[int, AuditEntry]] = deque(maxlen=ENTRIES_IN_MEMORY)  # with their numbers
        self._number = 0
        self._limiter = GuardedLimiter(LineLimiter(LINES_PER_PEER, _MOST_HOSTS), self._summarise)
        self._guard = threading.Lock()  # the writer's thread records summaries
        self._file = _open(path) if path else None
        end_periods = self._limiter.end_periods
        self._writer = LogWriter(self._file, _dropped, end_periods) if self._file is not None else None

    @property
    def path(self) -> str:
        """The file; empty if entries are in memory only."""
        return self._file.path if self._file is not None else ""

    def record(
        self,
        verb: str,
        outcome: str = audit.OK,
        *,
        identity: Identity | None = None,
        peer: Peer | None = None,
        arguments: Mapping[str, Any] | None = None,
        why: str = "",
    ) -> None:
        """Record something that was done, or refused."""
        origin = peer.origin() if peer is not None else _NOWHERE
        if (outcome == audit.REFUSED or verb == audit.LOGIN) and not self._allows(verb, outcome, origin.peer):
            return
        self._add(
            AuditEntry(
                time=audit.now(),
                verb=verb,
                outcome=outcome,
                who=audit.who(identity, peer),
                protocol=origin.protocol,
                peer=origin.peer,
                arguments=audit.plain(arguments or {}),
                why=audit.plain(why),
            )
        )

    async def search(self, query: AuditQuery) -> AuditPage:
        """The entries that match, the newest first; of the file if there is one."""
        self._limiter.report(time.monotonic())
        if self._file is None:
            return search_entries(list(self._entries), query)
        return await asyncio.to_thread(self._search_file, self._file.path, query)

    def reopen(self) -> None:
        """Reopen the file, for log rotation. If that fails, the old file stays in use."""
        file = self._file
        if file is None or self._writer is None:
            return
        try:
            descriptor = audit.open_file(file.path, os.O_NONBLOCK)
        except OSError as error:
            _log.error("cannot reopen audit file", extra={"fields": {"file": file.path, "why": error.strerror}})
        else:
            self._writer.call(lambda: file.use(descriptor))
            _log.info("audit file reopened")

    def close(self) -> None:
        """Write what waits, and how many entries were left out so far."""
        self._limiter.report(float("inf"))
        if self._writer is not None:
            self._writer.close()

    def _allows(self, verb: str, outcome: str, peer: str) -> bool:
        # One limit for all refusals of a host, whatever it asks for: the verbs would be as many limits.
        event = EventKey(audit.REFUSED if outcome == audit.REFUSED else verb, "", host_of(peer))
        self._limiter.report(time.monotonic())
        allowed, is_first = self._limiter.allows_event(event)
        if is_first and self._writer is not None:
            self._writer.wake()  # to set its timer
        return allowed

    def _add(self, entry: AuditEntry) -> None:
        with self._guard:
            self._number += 1
            self._entries.append((self._number, entry))
        if self._writer is not None:
            self._writer.put(logging.INFO, audit.line(entry))

    def _summarise(self, event: EventKey, count: int) -> None:
        refused = event.name == audit.REFUSED
        self._add(
            AuditEntry(
                time=audit.now(),
                verb="" if refused else event.name,
                outcome=audit.REFUSED if refused else audit.OK,
                peer=event.host,
                left_out=count,
                why=f"more than {LINES_PER_PEER} in {PERIOD_SECONDS:g} seconds",
            )
        )

    def _search_file(self, path: str, query: AuditQuery) -> AuditPage:
        written = threading.Event()
        if self._writer is not None:
            self._writer.call(written.set)
            written.wait(_FLUSH_SECONDS)
        return search_file(path, query)


def _open(path: str) -> AuditFile:
    try:
        return AuditFile(path)
    except OSError as error:
        raise StartError(f"cannot open the audit file {path}: {error.strerror}") from None


def _ends_within_line(path: str) -> bool:
    """Whether the last line of a file has no end."""
    try:
        with open(path, "rb") as file:
            if not file.seek(0, os.SEEK_END):
                return False
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:
        return False


def _dropped(count: int) -> tuple[int, str]:
    """The entry that says how many could not be written."""
    entry = AuditEntry(
        time=audit.now(), verb="", outcome=audit.FAILED, who=audit.SERVER, left_out=count, why="could not be written"
    )
    return logging.WARNING, audit.line(entry)
