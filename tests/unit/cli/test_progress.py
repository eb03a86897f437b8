"""Progress on stderr."""

import pty
import select
from pathlib import Path

import pytest

from geartrain.cli import progress
from tests.unit.cli.conftest import Run
from tests.unit.cli.stores import fill, job


def test_progress_is_shown_on_a_terminal_and_erased(monkeypatch: pytest.MonkeyPatch, run: Run, path: Path) -> None:
    fill(path, *(job(id) for id in range(1, 2001)))
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_REPORTS", 0.0)
    reader, writer = pty.openpty()
    with open(writer, "w") as terminal, open(reader, "rb", buffering=0) as screen:
        monkeypatch.setattr("sys.stderr", terminal)
        assert run("dump").out.count("\n") == 2002
        shown = b""
        while select.select([screen], [], [], 0)[0]:
            shown += screen.read(1000)
    assert shown == b"\rdumping 1,000\rdumping 2,000\r             \r"


def test_progress_is_not_shown_in_a_file(monkeypatch: pytest.MonkeyPatch, run: Run, path: Path) -> None:
    fill(path, *(job(id) for id in range(1, 2001)))
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_REPORTS", 0.0)
    assert run("dump").err == ""
