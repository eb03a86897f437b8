"""Which form of the core runs, and the check for outdated compiled modules."""

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import geartrain
from geartrain import compiled
from tests.support import compiled_core, process, serving

PACKAGE = Path(geartrain.__file__).parent
IS_COMPILED = any((PACKAGE / f"model{suffix}").exists() for suffix in EXTENSION_SUFFIXES)
SHOW = "from geartrain import compiled; import geartrain.engine.engine as e; print(compiled.form(), e.__file__)"


def run(pure: str | None) -> tuple[str, str]:
    """The form of the core in a new interpreter, and the suffix of a core module's file."""
    environment = {name: value for name, value in os.environ.items() if name != compiled.VARIABLE}
    if pure is not None:
        environment[compiled.VARIABLE] = pure
    command = [sys.executable, "-c", SHOW]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    form, _, file = answer.stdout.strip().partition(" ")
    return form, Path(file).suffix


@pytest.mark.parametrize("value", ["1", "yes", "TRUE"])
def test_pure_core_on_request(value: str) -> None:
    assert run(value) == ("pure", ".py")


@pytest.mark.parametrize("value", [None, "", "0", "no"])
def test_compiled_core_by_default(value: str | None) -> None:
    assert run(value) == (("compiled", ".so") if IS_COMPILED else ("pure", ".py"))


def test_other_packages_are_left_alone() -> None:
    assert compiled.SourceFinder().find_spec("json.decoder", [os.path.dirname(os.__file__)]) is None


def test_missing_module_is_not_found() -> None:
    assert compiled.SourceFinder().find_spec("geartrain.nothing", [str(PACKAGE)]) is None
    assert compiled.SourceFinder().find_spec("geartrain.nothing") is None


@pytest.fixture(scope="module")
def uncompiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package without compiled modules, as it is installed where no C compiler is."""
    folder = tmp_path_factory.mktemp("uncompiled")
    shutil.copytree(PACKAGE, folder / "geartrain", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return folder


def command(folder: Path, *words: str) -> list[str]:
    return ["env", "-u", compiled.VARIABLE, f"PYTHONPATH={folder}", sys.executable, "-m", "geartrain", *words]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["version"], "WARNING: the core is not compiled, and several times slower"),
        (["doctor", "--store", "memory"], "warning  core           not compiled"),
    ],
)
def test_fallback_to_the_pure_core_is_said(uncompiled: Path, words: list[str], said: str) -> None:
    environment = process.clean_environment(uncompiled)
    answer = subprocess.run(
        command(uncompiled, *words), cwd=uncompiled, env=environment, capture_output=True, text=True, timeout=60
    )
    assert said in answer.stdout


def test_fallback_to_the_pure_core_is_logged_at_the_start(uncompiled: Path, tmp_path: Path) -> None:
    words = command(uncompiled, "serve", "--store", "memory", "--listen", "gearman://127.0.0.1:0")
    server = serving.ServerProcess(words, tmp_path)
    try:
        server.wait_for_doors(1)
        assert server.says("warning server  core is not compiled  advice=")
    finally:
        server.kill()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A working copy with one compiled module and one that is not."""
    for number, name in enumerate(("plain.py", "swift.py", "swift.cpython-311.so", "native__mypyc.cpython-311.so")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000 + number, 1000 + number))
    return tmp_path


def test_fresh_compilation_is_not_outdated(tree: Path) -> None:
    assert compiled_core.outdated(tree) == []


def test_changed_source_is_outdated(tree: Path) -> None:
    os.utime(tree / "plain.py", (2000, 2000))
    assert compiled_core.outdated(tree) == []
    os.utime(tree / "swift.py", (2000, 2000))
    assert compiled_core.outdated(tree) == [tree / "swift.py"]


def test_without_a_library_nothing_is_outdated(tree: Path) -> None:
    (tree / "native__mypyc.cpython-311.so").unlink()
    os.utime(tree / "swift.py", (2000, 2000))
    assert compiled_core.outdated(tree) == []
