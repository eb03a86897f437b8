"""Dump a running server, and load a dump into one, page by page through its control verbs.

Neither end holds more than a page, besides the ids of the jobs. `ask` sends a control verb and returns its answer.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import IO, Any, Final, NamedTuple

import msgspec

from geartrain.errors import AdminError, ClientError, StoreError
from geartrain.maintenance.dump_writer import DumpCounts, Notice, Progress
from geartrain.store import dump
from geartrain.store.load_counts import Summary

PART_BYTES: Final = 1024 * 1024  # of a dump that is loaded; a part ends with the line that exceeds this
_FUNCTION_SETTINGS: Final = "order."  # how the names of these values begin
_REPORT_EVERY: Final = 1000  # lines

Ask = Callable[..., Awaitable[Any]]


class _Line(msgspec.Struct):
    """What tells the lines of a dump apart; other members are not read."""

    geartrain: str
    id: int = 0
    name: str = ""


_decoder: Final = msgspec.json.Decoder(_Line)


async def write_dump(
    ask: Ask, with_records: bool, write: Callable[[bytes], object], notice: Notice, progress: Progress
) -> DumpCounts:
    """Write a dump of the server, which goes on working.

    It has every background job that was accepted before and has not ended meanwhile, each once, as it was at one
    moment. A job that fails or is retried while the dump is made may come twice; the first line is written.
    """
    header = await ask("dump", part="header")
    write(header["lines"].encode())
    counts = {"value": 0, "job": 0, "record": 0}
    seen: set[int] = set()
    for part in ("values", "jobs", "records" if with_records else "failed", "retried"):
        after = ""
        while True:
            page = await ask("dump", part=part, dump=header["after"], after=after)
            for line in page["lines"].encode().splitlines(keepends=True):
                entry = _decoder.decode(line)
                if not entry.id or entry.id not in seen:
                    seen.add(entry.id)
                    counts[entry.geartrain] += 1
                    write(line)
            for text in page["skipped"]:
                notice(text)
            progress(sum(counts.values()))
            after = page["after"]
            if not after:
                break
    write(dump.end(counts["job"], counts["record"], counts["value"]))
    return DumpCounts(counts["job"], counts["record"], counts["value"])


async def load_dump(
    ask: Ask, source: IO[bytes], name: str, replace: bool, notice: Notice, progress: Progress
) -> Summary:
    """Load a dump into a server with the memory store; errors call the dump `name`.

    All lines are checked before the first is sent. If the connection ends in the middle, the same dump can be loaded
    again: what the server has is skipped.
    """
    check(source, name, progress)
    total = Summary(0, 0, 0, 0, 0, 0, 0)
    sent = 0
    for part in _parts(source):
        try:
            answer = await ask("load", lines=part.text.decode(), replace=replace)
        except (AdminError, ClientError):
            if sent:
                notice(f"{sent:,} lines of {name} were loaded before; load it again to continue where it ended")
            raise
        for text in answer.pop("notices"):
            notice(text)
        total = Summary(*(_sum(field, getattr(total, field), answer[field]) for field in Summary._fields))
        sent += part.lines
        progress(sent)
    return total


def check(source: IO[bytes], name: str, progress: Progress) -> None:
    """Read a whole dump; a StoreError names the first invalid line."""
    reader = dump.DumpReader()
    try:
        for number, _ in enumerate(reader.read(source), start=1):
            if not number % _REPORT_EVERY:
                progress(number)
    except dump.DumpError as error:
        raise StoreError(f"{name}: {error}; nothing was loaded") from None


class _DumpPart(NamedTuple):
    text: bytes  # a whole dump
    lines: int


def _parts(source: IO[bytes]) -> Iterator[_DumpPart]:
    """Divide a dump. Settings of functions come first, because jobs of a paused function must not run.

    The other values come last: schedules and fields name jobs.
    """
    yield from _parts_of(source, _is_function_setting)
    yield from _parts_of(source, lambda line: line.geartrain in ("job", "record"))
    yield from _parts_of(source, lambda line: line.geartrain == "value" and not _is_function_setting(line))


def _parts_of(source: IO[bytes], chosen: Callable[[_Line], bool]) -> Iterator[_DumpPart]:
    source.seek(0)
    header = next(iter(source))
    lines: list[bytes] = []
    counts = {"value": 0, "job": 0, "record": 0}
    size = 0
    for line in source:
        entry = _decoder.decode(line)
        if not chosen(entry):
            continue
        lines.append(line)
        counts[entry.geartrain] += 1
        size += len(line)
        if size > PART_BYTES:
            yield _part(header, lines, counts)
            lines, counts, size = [], dict.fromkeys(counts, 0), 0
    if lines:
        yield _part(header, lines, counts)


def _part(header: bytes, lines: list[bytes], counts: dict[str, int]) -> _DumpPart:
    end = dump.end(counts["job"], counts["record"], counts["value"])
    return _DumpPart(b"".join((header, *lines, end)), len(lines))


def _is_function_setting(line: _Line) -> bool:
    return line.geartrain == "value" and line.name.startswith(_FUNCTION_SETTINGS)


def _sum(field: str, total: int, more: int) -> int:
    return max(total, more) if field == "next_id" else total + more
