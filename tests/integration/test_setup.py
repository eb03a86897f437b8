"""The outcomes of a build: pure Python without the tools, an error where a compilation fails."""

import os
import runpy
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
COMPILE = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]

pytest.importorskip("setuptools", minversion="77", reason="setup.py needs it; the extra `compile` has it")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A working copy whose package has a single module."""
    for name in ("setup.py", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "src" / "geartrain").mkdir(parents=True)
    (tmp_path / "src" / "geartrain" / "model.py").write_text('SIZE: int = "large"\n')
    return tmp_path


@pytest.fixture
def setup(project: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names in the setup.py of that working copy, which is the current folder."""
    pytest.importorskip("mypyc", reason="the translation needs it; the extra `compile` has it")
    monkeypatch.chdir(project)
    monkeypatch.setenv("MYPYPATH", "src")
    return runpy.run_path("setup.py")


def build(project: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_in(project, COMPILE, **environment)


def run_in(project: Path, command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "GEARTRAIN_PURE"}
    return subprocess.run(
        command, cwd=project, env=clean | environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"CC": "no-such-compiler"}, "there is no C compiler (no-such-compiler)"),
        ({"GEARTRAIN_PURE": "1"}, "GEARTRAIN_PURE is set"),
    ],
)
def test_a_pure_build_says_why_and_leaves_nothing_compiled(
    project: Path, environment: dict[str, str], reason: str
) -> None:
    leftover = project / "src" / "geartrain" / f"model{EXTENSION_SUFFIXES[0]}"
    leftover.touch()
    answer = build(project, **environment)
    assert answer.returncode == 0, answer.stderr
    assert f"NOT COMPILED: {reason}. The pure Python version does the same work" in answer.stderr
    assert not leftover.exists()


def test_a_pure_wheel_is_for_every_platform_and_says_why(project: Path) -> None:
    code = "from setuptools import build_meta; build_meta.build_wheel('dist')"
    answer = run_in(project, [sys.executable, "-c", code], CC="no-such-compiler")
    assert answer.returncode == 0, answer.stderr
    [wheel] = (project / "dist").iterdir()
    assert wheel.name.endswith("-py3-none-any.whl")
    assert "NOT COMPILED: there is no C compiler (no-such-compiler)" in answer.stderr


@pytest.mark.peer("cc", "python-headers")
def test_a_failed_compilation_fails_the_build_and_names_the_way_out(project: Path) -> None:
    answer = build(project)
    assert answer.returncode != 0
    assert "the core could not be compiled: setup.py lists src/geartrain/" in answer.stderr
    assert "set GEARTRAIN_PURE=1" in answer.stderr


def test_a_pattern_without_a_module_is_an_error(setup: dict[str, Any]) -> None:
    with pytest.raises(setup["BuildError"], match=r"setup\.py lists src/geartrain/renamed\.py"):
        setup["matches"]("renamed.py")


def test_what_mypyc_does_not_accept_is_named(setup: dict[str, Any]) -> None:
    with pytest.raises(setup["BuildError"], match=r"model\.py:1: error: Incompatible types in assignment"):
        setup["translate"]({"geartrain.native": [Path("src/geartrain/model.py")]})
