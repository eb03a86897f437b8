"""The manual pages: one for each verb, and groff understands them."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

from geartrain.cli import app

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("man_pages", ROOT / "tools" / "man_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return dict(module.pages())


def test_every_verb_has_a_page(pages: dict[str, str]) -> None:
    assert set(pages) == {"geartrain", *(f"geartrain-{verb}" for verb in app.VERBS)}


def test_options_and_examples_are_in_the_page(pages: dict[str, str]) -> None:
    assert "\\fB\\-\\-follow\\fR, \\fB\\-f\\fR" in pages["geartrain-move"]
    assert "\\fBgeartrain move gearman://old gearman://new\\fR moves everything that waits" in pages["geartrain-move"]


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_pages_are_valid(pages: dict[str, str]) -> None:
    text = "\n".join(pages.values())
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-K", "utf8", "-z"], input=text, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
