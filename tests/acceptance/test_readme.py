"""The README's tour, command by command, against a real server; and that no page names what is not there.

The commands run as they are written, in one shell, with two differences: `make serve` becomes the installed
command on a free port, and the stock tools are given that port.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from geartrain.engine.engine import Engine
from tests.support import process, serving
from tests.support.console import Shell, Step, steps

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [
    README,
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]

SERVE = "make serve"
PORT = "4730"
HANDLES = "H:lap:"  # what the README's machine calls its jobs
TOOLS = ("gearman", "gearadmin")
# Commands that only look: what they show may come true a moment later, so they are asked again.
LOOKS = ("gearadmin --s", "echo status ")


def tour() -> list[Step]:
    """Every command of the section, in order."""
    return steps(README.read_text().partition("## A five-minute tour\n")[2].partition("\n## ")[0])


class Terminals:
    """The reader's two: one for the server, one shell for everything else."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.server: serving.ServerProcess | None = None
        self._port = home / "port"
        tools = home / "tools"
        tools.mkdir()
        for name in TOOLS:
            # The limit is for a tool that hangs: it must not outlive the test.
            script = f'#!/bin/sh\nexec timeout 60 {shutil.which(name)} -p "$(cat {self._port})" "$@"\n'
            (tools / name).write_text(script)
            (tools / name).chmod(0o755)
        self._shell = Shell(home, tools)

    def serve(self) -> str:
        """What `make serve` does; the one before must have ended."""
        if self.server is not None:
            assert self.server.wait() == -signal.SIGKILL
        command = [str(serving.installed_command()), "serve", "--listen", f"gearman://{serving.HOST}:0"]
        self.server = serving.ServerProcess(command, self.home)
        self.server.wait_for_doors(1)
        self._port.write_text(str(self.server.port))
        return "\n".join(self.server.lines) + "\n"

    def show(self, step: Step) -> str:
        """What a step prints, in the words of the README's machine."""
        if step.command == SERVE:
            printed = self.serve()
        else:
            printed = self._shell.run(step.command.replace(f" {PORT}", f" $(cat {self._port})"))
        assert self.server is not None, "the tour starts with the server"
        return printed.replace(f":{self.server.port}\n", f":{PORT}\n").replace(f"H:{os.uname().nodename}:", HANDLES)

    def close(self) -> None:
        try:
            self._shell.close()
        finally:
            if self.server is not None:
                self.server.kill()


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    both = Terminals(tmp_path)
    yield both
    both.close()


@pytest.mark.peer("gearman", "gearadmin", "nc")
def test_tour(terminals: Terminals) -> None:
    for step in tour():
        deadline = time.monotonic() + process.PATIENCE
        printed = terminals.show(step)
        while printed != step.output and step.command.startswith(LOOKS) and time.monotonic() < deadline:
            printed = terminals.show(step)
        assert printed == step.output, f"after $ {step.command}"
    assert terminals.server is not None
    assert terminals.server.wait() == 0
    terminals.server.check_stderr()


def test_tour_shows_what_it_is_there_for() -> None:
    """So that a change of the page's form cannot leave the test above with nothing to do."""
    commands = [step.command for step in tour()]
    assert commands[0] == SERVE
    assert commands.count(SERVE) == 2
    assert "kill -9 $(gearadmin --getpid)" in commands
    assert any(command.startswith("echo shutdown graceful") for command in commands)


def test_make_serve_runs_the_installed_command() -> None:
    # ARGS may come down from the `make test` that runs this.
    command = ["make", "--no-print-directory", "--dry-run", "serve", "ARGS="]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout.splitlines()[-1].split() == [".venv/bin/geartrain", "serve"]


def targets(page: Path) -> list[tuple[Path, str]]:
    """The files and anchors of our own that a page links to."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    found = []
    for link in links:
        name, _, anchor = link.partition("#")
        found.append(((page.parent / name).resolve() if name else page, anchor))
    return found


def anchors(page: Path) -> set[str]:
    """The names that headings get, as the usual renderers make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page: Path) -> None:
    for target, anchor in targets(page):
        assert target.exists(), f"{target} does not exist"
        assert not anchor or anchor in anchors(target), f"{target} has no heading for #{anchor}"


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
SOURCE = ROOT / "src" / "geartrain"


def test_files_that_the_architecture_names() -> None:
    files = set(re.findall(r"`((?:[a-z]+/)+[a-z_]+\.py)`", ARCHITECTURE))
    assert "engine/state.py" in files
    assert [name for name in sorted(files) if not ((SOURCE / name).exists() or (ROOT / name).exists())] == []


def test_verbs_that_the_architecture_names() -> None:
    """Each row of that table is a file, whom it is for, and its verbs."""
    rows = re.findall(
        r"^\| `engine/(?:client_verbs|worker_verbs|engine)\.py` \|[^|]*\|([^|]*)\|$", ARCHITECTURE, re.MULTILINE
    )
    verbs = re.findall(r"`([a-z_]+)`", " ".join(rows))
    assert {"submit", "claim", "tick"} <= set(verbs)
    assert [verb for verb in verbs if not hasattr(Engine, verb)] == []
