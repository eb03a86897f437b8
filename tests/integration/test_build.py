"""A wheel built as pip builds it for a user: from the source distribution of a clean clone, in isolation.

The clone is of HEAD, so uncommitted changes are not part of it. Everything here shares one wheel, because compiling the
core takes minutes.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD_SECONDS = 600
PACKAGE = "src/geartrain/"

pytestmark = [
    pytest.mark.peer("cc", "python-headers"),
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone of the repository"),
]


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """The output of a command that runs without our settings and without our import path."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("GEARTRAIN_", "PYTHONPATH", "GIT_"))
    }
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.args}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clone") / "geartrain"
    run("git", "clone", "--quiet", "--no-local", ROOT, folder, cwd=folder.parent)
    return folder


@pytest.fixture(scope="module")
def tracked(clone: Path) -> set[str]:
    """The files of the repository."""
    return set(run("git", "ls-files", cwd=clone).splitlines())


@pytest.fixture(scope="module")
def sdist(clone: Path) -> Path:
    pytest.importorskip("setuptools", minversion="77", reason="the build needs it; the extra `compile` has it")
    code = "from setuptools import build_meta; build_meta.build_sdist('dist')"
    run(sys.executable, "-c", code, cwd=clone)
    [archive] = (clone / "dist").iterdir()
    return archive


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C compiler without its optimizer, which takes half of the time and makes no difference here."""
    script = tmp_path_factory.mktemp("compiler") / "cc"
    script.write_text('#!/bin/sh\nexec cc "$@" -O0\n')
    script.chmod(0o755)
    return script


@pytest.fixture(scope="module")
def wheel(sdist: Path, compiler: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    run(*pip, "wheel", "--no-deps", "--no-cache-dir", "--wheel-dir", folder, sdist, cwd=folder, CC=str(compiler))
    [archive] = folder.iterdir()
    return archive


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel in it. It borrows the dependencies of the environment that runs the tests."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run(*pip, "install", "--no-deps", "--no-index", wheel, cwd=folder)
    packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip()
    borrowed = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    Path(packages, "borrowed.pth").write_text("\n".join(borrowed))
    return folder


def test_the_source_distribution_is_the_whole_project(sdist: Path, tracked: set[str]) -> None:
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers()}
    assert {name for name in tracked - names if not name.startswith(".")} == set()


def test_the_wheel_has_every_file_of_the_package(wheel: Path, tracked: set[str]) -> None:
    with zipfile.ZipFile(wheel) as archive:
        # Where a wheel is not for every platform, setuptools may put the sources below a .data folder.
        names = {name[name.index("geartrain/") :] for name in archive.namelist() if "geartrain/" in name}
    assert {name.removeprefix("src/") for name in tracked if name.startswith(PACKAGE)} - names == set()


def test_the_wheel_is_for_this_platform_only(wheel: Path) -> None:
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert f"-{version}-{version}-" in wheel.name
    assert not wheel.name.endswith("-any.whl")


def test_the_installed_command_runs_the_compiled_core(installed: Path) -> None:
    version = json.loads(run(installed / "bin" / "geartrain", "version", "--json", cwd=installed))
    assert version["core"] == "compiled"


def test_the_compiled_modules_are_those_of_the_new_environment(installed: Path) -> None:
    code = "import geartrain.engine.engine as engine; print(engine.__file__)"
    module = Path(run(installed / "bin" / "python", "-c", code, cwd=installed).strip())
    assert module.is_relative_to(installed)
    assert module.suffix == ".so"
