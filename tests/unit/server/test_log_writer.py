"""The thread that writes the log: nothing waits for it, and lines that it cannot write are counted."""

import fcntl
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from geartrain.server.process import log, log_writer
from geartrain.server.process.log_limiter import LINES_PER_PERIOD
from geartrain.server.process.log_writer import FileTarget, LogWriter
from tests.support.peer import until

DOORS = logging.getLogger("geartrain.doors")
PATIENCE = 60.0


class HeldTarget:
    """Writes nothing until it is released."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.entered = threading.Event()
        self.lines: list[str] = []
        self.fails = False

    def write(self, level: int, line: str) -> None:
        self.entered.set()
        assert self.released.wait(PATIENCE)
        if self.fails:
            raise OSError("no space left")
        self.lines.append(line)

    def close(self) -> None:
        self.lines.append("closed")


@pytest.fixture
def target() -> Iterator[HeldTarget]:
    target = HeldTarget()
    yield target
    target.released.set()


def writer_to(target: log_writer.LogTarget) -> LogWriter:
    return LogWriter(target, lambda count: (logging.WARNING, f"dropped {count}"), lambda: None)


def test_lines_wait_while_a_write_does(target: HeldTarget) -> None:
    writer = writer_to(target)
    for number in range(10):
        writer.put(20, str(number))
    assert target.entered.wait(PATIENCE)
    assert target.lines == []
    target.released.set()
    writer.close()
    assert target.lines == [*map(str, range(10)), "closed"]


def test_lines_beyond_the_bound_are_dropped_and_counted(target: HeldTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_writer, "_MOST_BYTES", 5)
    writer = writer_to(target)
    for number in range(9):
        writer.put(20, str(number))
    target.released.set()
    until(lambda: "dropped 4" in target.lines, "the count")
    writer.put(20, "x")
    writer.close()
    assert target.lines == ["0", "1", "2", "3", "4", "dropped 4", "x", "closed"]


def test_lines_that_cannot_be_written_are_counted(target: HeldTarget) -> None:
    writer = writer_to(target)
    target.fails = True
    writer.put(20, "a")
    assert target.entered.wait(PATIENCE)
    writer.put(20, "b")
    target.released.set()
    done = threading.Event()
    writer.call(done.set)
    assert done.wait(PATIENCE)
    target.fails = False
    writer.put(20, "c")
    writer.close()
    assert target.lines[0] in ("c", "dropped 2")
    assert sorted(target.lines) == ["c", "closed", "dropped 2"]


def test_actions_keep_their_place_among_lines(target: HeldTarget) -> None:
    writer = writer_to(target)
    writer.put(20, "before")
    writer.call(lambda: target.lines.append("action"))
    writer.put(20, "after")
    target.released.set()
    writer.close()
    assert target.lines == ["before", "action", "after", "closed"]


def test_end_does_not_wait_for_a_write_for_ever(target: HeldTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_writer, "_CLOSE_SECONDS", 0.01)
    writer = writer_to(target)
    writer.put(20, "stuck")
    assert target.entered.wait(PATIENCE)
    writer.close()
    assert target.lines == []


@pytest.mark.parametrize("blocking", [True, False])
def test_line_that_is_larger_than_the_pipe(blocking: bool) -> None:
    reader, writing_end = os.pipe()
    fcntl.fcntl(writing_end, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writing_end, blocking)
    writer = writer_to(FileTarget(writing_end))
    writer.put(20, "x" * 100_000)
    with open(reader, "rb") as pipe:
        assert len(pipe.readline()) == 100_001
    writer.close()
    os.close(writing_end)


def test_summary_of_what_was_left_out_is_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    with log.opened(str(path), "info", "text"):
        for port in range(LINES_PER_PERIOD + 3):
            DOORS.warning("peer refused", extra={"fields": {"door": "gearman", "peer": f"10.0.0.1:{port}"}})
    *lines, summary = path.read_text().splitlines()
    assert len(lines) == LINES_PER_PERIOD
    assert summary.partition("warning ")[2] == (
        'gearman  similar lines left out  event="peer refused" peer=10.0.0.1 count=3 seconds=60'
    )
