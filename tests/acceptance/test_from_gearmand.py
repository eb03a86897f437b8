"""The page `docs/from-gearmand.md`, command by command, with Debian's gearmand and our server.

The commands run as they are written, in one shell; ports and folders are others.
"""

import contextlib
import os
import random
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import process, serving
from tests.support.console import Shell, Step, steps
from tests.support.peer import until

PAGE = Path(__file__).parents[2] / "docs" / "from-gearmand.md"
PORTS = ("4729", "4730", "4780")
FOLDERS = ("/var/lib/gearman", "/var/lib/geartrain")
PID_FILES = ("gearmand.pid", "second.pid", "geartrain.pid")
# What is asked again until it is as on the page: gearmand's daemon returns before it listens.
ASKED_AGAIN = ("echo ", "gearadmin", "curl")


class Machine:
    """The page's machine: a shell, free ports for its ports, folders for its folders."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "shell"
        tools = home / "tools"
        tools.mkdir()
        (tools / "geartrain").symlink_to(serving.installed_command())
        ports = filter(serving.is_free, random.sample(serving.PORTS, 100))
        # By the page's name. Longer names are replaced first: one folder's name begins like the other's.
        self._names = {port: str(free) for port, free in zip(PORTS, ports, strict=False)}
        for folder in FOLDERS:
            self._names[folder] = str(home / Path(folder).name)
            Path(self._names[folder]).mkdir()
        self._shell = Shell(home, tools)
        self._shell.run("PATH=$PATH:/usr/sbin")

    def show(self, step: Step) -> str:
        """What a step prints, in the page's names."""
        command = step.command
        for name, ours in self._names.items():
            command = command.replace(name, ours)
        printed = self._shell.run(command)
        if command.startswith("kill"):
            until(lambda: not any(map(self._runs, re.findall(r"\w+\.pid", command))), "the server ends")
        for name, ours in reversed(self._names.items()):
            printed = printed.replace(ours, name)
        return printed

    def _runs(self, pid_file: str) -> bool:
        """Whether the server of this file has not ended; all of them remove it then."""
        return (self._folder / pid_file).exists()

    def close(self) -> None:
        for name in PID_FILES:  # what a failure left
            with contextlib.suppress(OSError, ValueError):
                os.kill(int((self._folder / name).read_text()), signal.SIGKILL)
        self._shell.close()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    one = Machine(tmp_path)
    yield one
    one.close()


@pytest.mark.peer("gearmand", "gearman", "gearadmin", "curl")
def test_page(machine: Machine) -> None:
    page = steps(PAGE.read_text())
    assert sum("geartrain import gearmand" in step.command for step in page) == 2
    assert sum("geartrain move" in step.command for step in page) == 1
    for step in page:
        deadline = time.monotonic() + process.PATIENCE
        printed = machine.show(step)
        while printed != step.output and step.command.startswith(ASKED_AGAIN) and time.monotonic() < deadline:
            printed = machine.show(step)
        assert printed == step.output, f"after $ {step.command}"
