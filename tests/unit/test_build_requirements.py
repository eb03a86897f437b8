"""What a build needs is what the compiled modules import, and what an installation needs is what all modules import.

pip builds a wheel in an environment that has only build-system.requires. A library that is missing there has no types
for mypy, so that the compiled code differs from the one that the tests run, or cannot be made at all.
"""

import ast
import re
import runpy
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
BUILD = PROJECT["build-system"]["requires"]
RUNTIME = PROJECT["project"]["dependencies"]
TOOLS = {"setuptools", "mypy"}
# Extras of users, and what their distributions bring along or are called.
EXTRAS = ("mcp", "otel", "postgresql", "pydantic", "top")
BROUGHT_ALONG = {"opentelemetry": "opentelemetry_api", "rich": "textual"}


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The sources that setup.py compiles."""
    pytest.importorskip("setuptools", minversion="77", reason="setup.py needs it; the extra `compile` has it")
    monkeypatch.chdir(ROOT)
    modules: Callable[[], dict[str, list[Path]]] = runpy.run_path("setup.py")["compiled_modules"]
    return [path for library in modules().values() for path in library]


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("-", "_")


def imports(path: Path) -> Iterator[str]:
    """Every module, and every name in a module, that a source imports."""
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, f"{path} has a relative import, which this test does not follow"
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


def source_of(module: str) -> Path | None:
    """The file of a module of ours, relative to the root."""
    path = Path("src", *module.split("."))
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((candidate for candidate in candidates if candidate.exists()), None)


def libraries_of(sources: list[Path]) -> dict[str, Path]:
    """The libraries that these sources import, by themselves or through modules of ours, with one importer of each."""
    libraries: dict[str, Path] = {}
    # The package's own __init__ names the client library for type checkers. No type of it reaches the core.
    seen = {*sources, Path("src/geartrain/__init__.py")}
    queue = list(sources)
    while queue:
        importer = queue.pop()
        for module in imports(importer):
            top = module.partition(".")[0]
            if top != "geartrain":
                if top not in sys.stdlib_module_names:
                    libraries.setdefault(top, importer)
            elif (source := source_of(module)) and source not in seen:
                seen.add(source)
                queue.append(source)
    return libraries


def test_a_build_requires_the_libraries_that_the_compiled_modules_import(compiled: list[Path]) -> None:
    importers = {library: str(path) for library, path in libraries_of(compiled).items()}
    assert "mypy_extensions" in importers, "no import was found: does this test look in the right place?"
    required = {name_of(requirement) for requirement in BUILD} - TOOLS
    missing = {library: path for library, path in importers.items() if library not in required}
    assert missing == {}, "add these libraries to build-system.requires in pyproject.toml"
    assert required - importers.keys() == set(), "no compiled module imports these: remove them from there"


def test_lower_bounds_are_those_of_the_runtime_dependencies() -> None:
    runtime = {name_of(requirement): requirement for requirement in RUNTIME}
    build = {name_of(requirement): requirement for requirement in BUILD}
    shared = build.keys() & runtime.keys()
    assert {name: build[name] for name in shared} == {name: runtime[name] for name in shared}


def test_a_working_copy_is_compiled_with_the_tools_of_a_build() -> None:
    runtime = {name_of(requirement) for requirement in RUNTIME}
    tools = [requirement for requirement in BUILD if name_of(requirement) not in runtime]
    assert sorted(PROJECT["project"]["optional-dependencies"]["compile"]) == sorted(tools)


def test_an_installation_has_every_library_that_the_package_imports() -> None:
    """Not only the tests' environment, which has the libraries of the tests too."""
    optional = PROJECT["project"]["optional-dependencies"]
    installed = {
        name_of(requirement) for requirement in (*RUNTIME, *(one for name in EXTRAS for one in optional[name]))
    }
    sources = sorted((ROOT / "src" / "geartrain").rglob("*.py"))
    importers = {library: str(path) for library, path in libraries_of(sources).items()}
    missing = {name: path for name, path in importers.items() if BROUGHT_ALONG.get(name, name) not in installed}
    assert missing == {}, "add these libraries to the dependencies in pyproject.toml"
    assert {name_of(requirement) for requirement in RUNTIME} - importers.keys() == set()
