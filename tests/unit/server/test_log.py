"""The log: its formats, its outputs, and the escaping of what peers send."""

import datetime
import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from geartrain.errors import StartError
from geartrain.server.process import log

DOORS = logging.getLogger("geartrain.doors")
SERVER = logging.getLogger("geartrain.server")
WHEN = datetime.datetime(2026, 11, 15, 19, 0, 0, 123456).timestamp()


@pytest.fixture(autouse=True)
def untouched_logging() -> Iterator[None]:
    """Restore the process's logging configuration."""
    root, ours = logging.getLogger(), logging.getLogger("geartrain")
    before = (root.level, ours.level, logging.raiseExceptions, list(root.handlers))
    yield
    root.setLevel(before[0])
    ours.setLevel(before[1])
    logging.raiseExceptions = before[2]
    assert root.handlers == before[3]


def record(message: str, *arguments: object, level: int = logging.WARNING, **fields: Any) -> logging.LogRecord:
    made = logging.LogRecord("geartrain.doors", level, __file__, 1, message, arguments, None)
    made.created = WHEN
    if fields:
        made.fields = fields
    return made


def text(made: logging.LogRecord) -> str:
    return log.TextFormatter().format(made)


def test_readable_line() -> None:
    line = text(record("a packet was refused", door="gearman", peer="127.0.0.1:5000", why="not a packet"))
    assert line == (
        '2026-11-15T19:00:00.123 warning gearman  a packet was refused  peer=127.0.0.1:5000 why="not a packet"'
    )


def test_line_without_fields_names_its_room() -> None:
    assert text(record("%d jobs", 3)) == "2026-11-15T19:00:00.123 warning doors  3 jobs"


@pytest.mark.parametrize(
    ("level", "word"), [(10, "debug"), (20, "info"), (25, "notice"), (40, "error"), (50, "critical")]
)
def test_levels_have_names(level: int, word: str) -> None:
    assert text(record("x", level=level)).split()[1] == word


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (7, "7"),
        (b"reverse", "reverse"),
        (b"\xff\x00", r'"\\xff\x00"'),
        ("", '""'),
        ("a b", '"a b"'),
        ("a=b", '"a=b"'),
        ('say "x"', r'"say \"x\""'),
        ("back\\slash", r'"back\\slash"'),
        ("two\nlines", r'"two\nlines"'),
        ("\x1b[2J", r'"\x1b[2J"'),
        ("line\u2028separator", r'"line\u2028separator"'),
        ("Jürgen", "Jürgen"),
    ],
)
def test_values_are_quoted_and_escaped(value: object, shown: str) -> None:
    assert text(record("x", why=value)).endswith(f"  why={shown}")


def test_message_cannot_break_the_line() -> None:
    line = text(record("first\n2026-11-15T19:00:00.123 error server  forged"))
    assert "\n" not in line
    assert r"first\n2026" in line


def test_traceback_follows_indented() -> None:
    made = record("it broke")
    try:
        raise ValueError("why")
    except ValueError:
        made.exc_info = sys.exc_info()
    first, *rest = text(made).splitlines()
    assert first.endswith("it broke")
    assert rest[-1] == "    ValueError: why"
    assert all(line.startswith("    ") for line in rest)
    assert json.loads(log.JsonFormatter().format(made))["traceback"].endswith("ValueError: why")


def test_json_line() -> None:
    made = record("a packet\nwas refused", door="gearman", peer="127.0.0.1:5000", size=7, why=b"\xff", on=None)
    line = log.JsonFormatter().format(made)
    assert "\n" not in line
    event = json.loads(line)
    assert datetime.datetime.fromisoformat(event.pop("time")).timestamp() == pytest.approx(WHEN, abs=0.001)
    assert event == {
        "level": "warning",
        "room": "doors",
        "door": "gearman",
        "message": "a packet\nwas refused",
        "peer": "127.0.0.1:5000",
        "size": 7,
        "why": "\\xff",
        "on": None,
    }


def test_fields_do_not_replace_what_every_line_has() -> None:
    event = json.loads(log.JsonFormatter().format(record("x", room="attic", time="never")))
    assert event["room"] == "doors"
    assert event["time"] != "never"


def test_file_gets_the_level_and_above(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    with log.opened(str(path), "info", "text"):
        DOORS.debug("a connection")
        SERVER.info("started", extra={"fields": {"pid": 7}})
        logging.getLogger("some.library").info("chatter")
        logging.getLogger("some.library").warning("a library's warning")
    SERVER.error("after the end")
    lines = path.read_text().splitlines()
    assert [re.sub(r"^\S+ ", "", line) for line in lines] == [
        "info server  started  pid=7",
        "warning some.library  a library's warning",
    ]


@pytest.mark.parametrize(("level", "seen"), [("debug", 5), ("notice", 3), ("error", 2), ("fatal", 0)])
def test_level_filters(level: str, seen: int, tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    with log.opened(str(path), level, "text"):
        for number in (10, 20, 30, 40, 50):
            SERVER.log(number, "x")
    assert len(path.read_text().splitlines()) == seen


def test_json_file(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    with log.opened(str(path), "info", "json"):
        SERVER.info("started", extra={"fields": {"pid": 7}})
    assert json.loads(path.read_text())["pid"] == 7


def test_file_is_reopened_after_rotation(tmp_path: Path) -> None:
    path, rotated = tmp_path / "server.log", tmp_path / "server.log.1"
    with log.opened(str(path), "warning", "text") as output:
        SERVER.warning("before")
        path.rename(rotated)
        SERVER.warning("between")
        output.reopen()
        SERVER.warning("after")
    assert [line.split()[-1] for line in rotated.read_text().splitlines()] == ["before", "between"]
    assert [line.split()[-1] for line in path.read_text().splitlines()] == ["after"]


def test_old_file_stays_in_use_when_reopening_fails(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    path = folder / "server.log"
    with log.opened(str(path), "info", "text") as output:
        moved = folder.rename(tmp_path / "moved")
        output.reopen()
        SERVER.info("still here")
    lines = (moved / "server.log").read_text().splitlines()
    assert "cannot reopen log file" in lines[0]
    assert f"file={path}" in lines[0]
    assert lines[1].endswith("still here")


def test_stderr_and_none(capsys: pytest.CaptureFixture[str]) -> None:
    with log.opened("stderr", "info", "text") as output:
        SERVER.info("seen")
        output.reopen()
    with log.opened("none", "debug", "text") as output:
        SERVER.critical("unseen")
        output.reopen()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("info server  seen\n")
    assert "unseen" not in err


def test_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"cannot open the log file .*/absent/x: No such file"):
        log.Log(str(tmp_path / "absent" / "x"), "info", "text")


def test_full_disk_is_ignored(capsys: pytest.CaptureFixture[str]) -> None:
    with log.opened("/dev/full", "info", "text"):
        SERVER.info("lost")
    assert capsys.readouterr().err == ""
