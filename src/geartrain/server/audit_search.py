"""Searching the audit log from its end, a page at a time."""

import logging
from collections.abc import Iterator, Sequence
from typing import IO, Final

import msgspec

from geartrain import audit
from geartrain.audit import AuditEntry, AuditPage, AuditQuery
from geartrain.server import audit_files
from geartrain.server.audit_files import AuditPart

_BLOCK: Final = 64 * 1024
# Bytes that are searched for one page. A page that has few entries for this reason still has an `after`.
_MOST_BYTES: Final = 32 * 1024 * 1024

_LONGEST_LINE: Final = 1024 * 1024  # of what is no entry, but may be in the file

_log = logging.getLogger("geartrain.audit")
_decoder = msgspec.json.Decoder(AuditEntry)

# Where an entry begins, and the entry; None for a line that is none.
Item = tuple[int, AuditEntry | None]


class AuditFilter:
    """A query, ready to compare with."""

    def __init__(self, query: AuditQuery) -> None:
        self._query = query
        self._since = audit.at(query.since) if query.since else ""
        self._until = audit.at(query.until) if query.until else ""

    def is_too_old(self, entry: AuditEntry) -> bool:
        """Whether it and all before it are too old."""
        return entry.time < self._since

    def matches(self, entry: AuditEntry) -> bool:
        query = self._query
        return (
            (not self._until or entry.time < self._until)
            and query.who in ("", entry.who)
            and query.verb in ("", entry.verb)
            and not (query.refused and entry.outcome != audit.REFUSED)
        )


def search_entries(entries: Sequence[tuple[int, AuditEntry]], query: AuditQuery) -> AuditPage:
    """A page of entries in memory, which are numbered from 1 in the order of their times."""
    return _page((item for item in reversed(entries) if not query.after or item[0] < query.after), query)


def search_file(path: str, query: AuditQuery) -> AuditPage:
    """A page of the log in a file and its older parts. The position of an entry is that of its first byte.

    An OSError if the file cannot be read.
    """
    parts = audit_files.parts(path)
    size = parts[-1].begin + parts[-1].size
    # A position beyond the end says nothing: the oldest part was removed meanwhile.
    end = query.after if 0 < query.after <= size else size
    return _page(_decoded(_lines_of_parts(parts, end)), query, max(end - _MOST_BYTES, 0))


def _lines_of_parts(parts: Sequence[AuditPart], end: int) -> Iterator[tuple[int, bytes]]:
    """The lines before a position of the log, from the last to the first. A part is opened when it is reached."""
    for part in reversed(parts):
        if part.begin >= end:
            continue
        try:
            with part.opened() as file:
                for position, line in _lines_before(file, min(end - part.begin, part.size)):
                    yield part.begin + position, line
        except OSError as error:
            if part is parts[-1]:
                raise
            fields = {"file": str(part.path), "why": error.strerror or str(error)}
            _log.warning("old audit file cannot be read", extra={"fields": fields})


def _page(items: Iterator[Item], query: AuditQuery, stop_at: int = 0) -> AuditPage:
    """The first entries that match. The search ends at the position `stop_at`."""
    matching, filter = list[AuditEntry](), AuditFilter(query)
    for position, entry in items:
        if entry is not None and filter.is_too_old(entry):
            return AuditPage(matching, 0)
        if entry is not None and filter.matches(entry):
            matching.append(entry)
        if len(matching) == query.limit or position < stop_at:
            return AuditPage(matching, position)
    return AuditPage(matching, 0)


def _decoded(lines: Iterator[tuple[int, bytes]]) -> Iterator[Item]:
    """The entries in lines. A line that was cut, or written by somebody else, is none."""
    for position, line in lines:
        try:
            yield position, _decoder.decode(line)
        except msgspec.DecodeError:
            yield position, None


def _lines_before(file: IO[bytes], end: int) -> Iterator[tuple[int, bytes]]:
    """The lines before a position and where each begins, from the last to the first."""
    rest = b""  # the beginning of the block that was read last, whose line may begin before it
    while end:
        start = max(end - _BLOCK, 0)
        file.seek(start)
        block = file.read(end - start) + rest
        first = block.find(b"\n") + 1 if start else 0
        if start and not first:
            first = len(block)  # no line begins in it
        position = start + len(block)
        for line in reversed(block[first:].splitlines(keepends=True)):
            position -= len(line)
            yield position, line
        rest = block[:first] if first <= _LONGEST_LINE else b""
        end = start
