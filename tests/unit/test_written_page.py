"""The tools that write pages: what they do with a page that is missing, out of date, or cannot be made."""

import runpy
from pathlib import Path

import pytest

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "written_page.py"))
main, between = TOOL["main"], TOOL["between"]


def test_a_page_is_written_and_then_up_to_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    assert main(page, lambda: "new\n", ["--check"]) == 1
    assert "is out of date" in capsys.readouterr().err
    assert main(page, lambda: "new\n", []) == 0
    assert page.read_text() == "new\n"
    assert main(page, lambda: "new\n", ["--check"]) == 0
    assert main(page, lambda: "newer\n", ["--check"]) == 1
    assert page.read_text() == "new\n", "a check writes nothing"
    assert main(page, lambda: "newer\n", ["--chekc"]) == 2


def test_a_part_of_a_page_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\nBEGIN\nold\nEND\nafter\n")
    assert main(page, lambda: between(page, "BEGIN\n", "END\n", "new\n"), []) == 0
    assert page.read_text() == "before\nBEGIN\nnew\nEND\nafter\n"
    assert main(page, lambda: between(page, "BEGIN\n", "FINIS\n", "new\n"), []) == 1
    assert "the line 'FINIS' is missing" in capsys.readouterr().err
