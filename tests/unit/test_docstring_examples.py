"""The examples in all docstrings of the package run and print what they show."""

import doctest
import importlib
from pathlib import Path

import pytest

import geartrain

PACKAGE = Path(geartrain.__file__).parent


def modules_with_examples() -> list[str]:
    paths = (path for path in PACKAGE.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))
    names = (".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths)
    return sorted(name.removesuffix(".__init__") for name in names)


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    results = doctest.testmod(module, optionflags=doctest.FAIL_FAST)
    assert results.failed == 0
    if (module.__file__ or "").endswith(".py"):  # doctest does not look into compiled classes
        assert results.attempted > 0


def test_modules_are_found() -> None:
    assert {"geartrain.address", "geartrain.app.app", "geartrain.testing"} <= set(modules_with_examples())
