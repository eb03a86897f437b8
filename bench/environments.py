"""Environments for queues of other people, one each, since they disagree about the versions of other libraries."""

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from bench.contenders import QUEUE_ENVIRONMENTS

ROOT = Path(__file__).parents[1]
INSTALL_SECONDS = 600


def extra(name: str) -> list[str]:
    """The requirements of an extra of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements: list[str] = project["optional-dependencies"][name]
    return requirements


def python_with(name: str, requirements: Sequence[str]) -> Path:
    """The interpreter of the environment of this name, which is made if it is missing or has something else in it."""
    home = QUEUE_ENVIRONMENTS / name
    python = home / "bin" / "python"
    stamp = home / "installed"
    if not stamp.exists() or stamp.read_text() != "\n".join(requirements):
        print(f"installing {name} into {home}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, timeout=INSTALL_SECONDS)
        install = [str(python), "-m", "pip", "install", "-qq", "--upgrade", *requirements]
        subprocess.run(install, check=True, timeout=INSTALL_SECONDS)
        stamp.write_text("\n".join(requirements))
    return python
