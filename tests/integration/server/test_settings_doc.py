"""docs/settings.md is generated from the table, and --check notices a stale page."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from geartrain.server.config.settings import TABLE

ROOT = Path(__file__).parents[3]
TOOL = ROOT / "tools" / "settings_doc.py"
SHARED = TOOL.with_name("written_page.py")  # which all such tools import


def check(tool: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True, timeout=60)


def test_page_is_up_to_date() -> None:
    answer = check(TOOL)
    assert answer.returncode == 0, answer.stderr


def test_stale_and_missing_pages_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    tool = tmp_path / "tools" / TOOL.name
    for source in (TOOL, SHARED):
        (tmp_path / "tools" / source.name).write_text(source.read_text())
    assert check(tool).returncode == 1
    page = tmp_path / "docs" / "settings.md"
    page.parent.mkdir()
    assert subprocess.run([sys.executable, str(tool)], timeout=60).returncode == 0
    assert check(tool).returncode == 0
    page.write_text(page.read_text().replace("64MiB", "65MiB"))
    answer = check(tool)
    assert answer.returncode == 1
    assert "settings.md is out of date: run python tools/settings_doc.py" in answer.stderr


def test_every_setting_has_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(TOOL.parent)
    page: str = runpy.run_path(str(TOOL))["page"]()
    for setting in TABLE.values():
        [line] = [line for line in page.splitlines() if line.startswith(f"| `{setting.name}` |")]
        assert setting.help in line
