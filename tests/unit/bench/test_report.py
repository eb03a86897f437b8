"""Rounds, groups and what is told of them, with contenders that are no servers."""

import contextlib
import io
import json
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

from bench import groups, page, report, run
from bench.contenders import Contender, Place
from bench.figures import Sample
from bench.groups import Effort, Row, SideBySide, Turn
from bench.progress import Progress

ORDER: list[str] = []  # who was measured, one after the other


@contextlib.contextmanager
def nobody() -> Iterator[Place]:
    yield Place(("none://127.0.0.1:1",), 0)


@contextlib.contextmanager
def broken() -> Iterator[Place]:
    raise RuntimeError("no such program")
    yield


OURS = Contender("ours", "a test", nobody, ours=True)
THEIRS = Contender("theirs", "another test", nobody, "theirs-peer")
BROKEN = Contender("broken", "does not start", broken)
ABSENT = Contender("absent", "is not installed", nobody, "absent-peer")
FIGURES = {"ours": 30.0, "theirs": 10.0}


def act(contender: Contender, place: Place, effort: Effort) -> Sample:
    ORDER.append(contender.name)
    return Sample(FIGURES[contender.name], p50=0.001)


@pytest.fixture
def board() -> report.Board:
    """Three rounds of one row."""
    ORDER.clear()
    row = Row("row", "a row", "what it is", "jobs/s", (OURS, THEIRS, BROKEN, ABSENT))
    made = report.Board([SideBySide("group", "A group", [(row, act)])], frozenset({"row"}))
    run.measure(made, groups.QUICK._replace(rounds=3), {"absent-peer": "why"})
    return made


def test_each_round_begins_with_another(board: report.Board) -> None:
    assert ORDER == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]


def test_one_that_does_not_start_is_named_and_stops_nobody(board: report.Board) -> None:
    assert len(board.failures) == 3
    assert "broken" in board.failures[0]
    assert "no such program" in board.failures[0]
    assert [len(rounds) for rounds in board.of(board.groups[0].rows[0]).values()] == [3, 3]


def test_ours_is_three_times_theirs(board: report.Board) -> None:
    assert board.ratios(board.groups[0].rows[0]) == {"ours": {"theirs": 3.0}}


def test_the_table_has_every_figure_and_no_one_who_has_none(board: report.Board) -> None:
    text = "\n".join(report.table(board))
    line = next(line for line in text.splitlines() if line.startswith("  theirs"))
    assert line.split() == ["theirs", "10.0", "1.00", "1,000", "3.00"]
    assert "broken" not in text


def test_the_document_has_every_round(board: report.Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report.machine, "ours", lambda: {"version": "1.0"})
    effort = groups.QUICK._replace(rounds=3)
    found = report.document(board, effort, True, {"absent-peer": "why"}, 0.0)
    assert found["date"] == "1970-01-01T00:00:00+00:00"
    assert found["missing"] == {"absent-peer": "why"}
    [row] = found["rows"]
    assert [(each["name"], each["median"], len(each["rounds"])) for each in row["contenders"]] == [
        ("ours", 30.0, 3),
        ("theirs", 10.0, 3),
    ]


def test_the_picture_says_how_many_times(board: report.Board) -> None:
    [(name, drawing)] = report.pictures(board, "below").items()
    texts = [each.text for each in ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}text")]
    assert name == "bench-group.svg"
    assert {"3.00 x", "1.00 x", "below", "a row (jobs/s; theirs = 1)"} <= set(texts)


def test_a_figure_that_a_step_did_not_bring_is_named() -> None:
    made = report.Board([], frozenset())
    step = groups.Step("a step", (("row", "ours"), ("row", "theirs")), list)
    made.enter(step, [groups.Finding("row", "ours", Sample(1))])
    assert made.failures == ["row, theirs: not measured in this run"]


def test_a_missing_peer_takes_no_part() -> None:
    row = Row("row", "a row", "", "", (OURS, ABSENT))
    turn = Turn(0, groups.QUICK, frozenset({"row"}), {"absent-peer": "why"})
    assert groups.present(row, turn) == (OURS,)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_lines_where_there_is_no_terminal() -> None:
    out = io.StringIO()
    bar = Progress(2, out)
    bar.step("one")
    bar.finish()
    bar.step("two")
    assert out.getvalue() == "[1/2 one]\n[2/2 two]\n"


def test_progress_is_a_bar_on_a_terminal() -> None:
    out = Terminal()
    times = iter([0.0, 30.0])
    bar = Progress(4, out, lambda: next(times))
    for _ in range(3):
        bar.finish()
    bar.step("last")
    assert out.getvalue().startswith("\r[##################......] 4/4 last (0:10 left)")


def test_the_page_has_the_ratio_of_each_row_and_its_range(board: report.Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report.machine, "ours", lambda: {"version": "1.0", "core": "pure", "python": "3.11"})
    board.rounds["row", "ours"][1] = Sample(20.0)
    found = report.document(board, groups.QUICK._replace(rounds=3), False, {"absent-peer": "why"}, 0.0)
    found["machine"] = {"cores": 2, "processor": "a processor", "load_average": 0.1}
    lines = list(page.page(json.loads(json.dumps(found))))
    assert "| a row | 3.00 (2.00 to 3.00) |" in lines
    assert lines[lines.index("## A group") + 2] == "| | theirs |"
    assert "Not measured: absent-peer (why)." in lines
