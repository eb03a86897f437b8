"""The examples in all docstrings run and print what they show, on the compiled core as well."""

import ast
import doctest
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROMPT = re.compile(r"^\s*>>> ", re.MULTILINE)
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def modules_with_examples() -> Iterator[tuple[str, Path]]:
    """The names and sources of the modules of the package and of the tests that contain a prompt."""
    for folder, start in ((ROOT / "src" / "geartrain", ROOT / "src"), (ROOT / "tests", ROOT)):
        for path in sorted(folder.rglob("*.py")):
            if PROMPT.search(path.read_text(encoding="utf-8")):
                yield ".".join(path.relative_to(start).with_suffix("").parts).removesuffix(".__init__"), path


MODULES = dict(modules_with_examples())


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    """The source is parsed for them, because compiled classes and functions have no docstrings."""
    source = MODULES[name].read_text(encoding="utf-8")
    names = vars(importlib.import_module(name))
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.FAIL_FAST)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, WITH_DOCSTRING):
            place = f"{name}.{getattr(node, 'name', '')}".rstrip(".")
            runner.run(parser.get_doctest(ast.get_docstring(node) or "", dict(names), place, name, 0))
    assert runner.failures == 0
    assert runner.tries == len(PROMPT.findall(source)), "an example outside of a docstring does not run"


def test_modules_are_found() -> None:
    assert {"geartrain.address", "geartrain.app.app", "geartrain.engine.engine", "geartrain.testing"} <= set(MODULES)
