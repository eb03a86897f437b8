"""The types of the public API, as a user's type checker sees them."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FILES = sorted(path for path in HERE.glob("*.py") if path != Path(__file__))


def mypy(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", "--no-error-summary", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_claim_holds_and_every_mistake_is_noticed(path: Path) -> None:
    """An `ignore` that nothing needs is an error too, so a mistake that is no longer noticed fails here."""
    outcome = mypy(str(path))
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_a_wrong_claim_would_be_noticed(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from geartrain.app import App\n\n@App('a').task\nasync def f(a: int) -> int: ...\n\nf.bind('x')\n"
    )
    assert "arg-type" in mypy(str(wrong)).stdout
