"""Console blocks of a page, and a shell that runs their commands: for tests that walk through what a page shows."""

import re
from pathlib import Path
from typing import NamedTuple

from tests.support import process

# What the shell says about its own background jobs, at a moment of its choice: `[1]+  Terminated ...`.
JOB_NOTICE = re.compile(r"^\[\d+\].*\n", re.MULTILINE)


class Step(NamedTuple):
    """A command of a page, and what the page says it prints."""

    command: str
    output: str


def steps(text: str) -> list[Step]:
    """Every command of the console blocks, in order."""
    found: list[Step] = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append(Step(command, output))
    return found


class Shell:
    """One bash for all commands, which finds programs in `tools` first. Jobs that it started end with it."""

    def __init__(self, home: Path, tools: Path) -> None:
        self._home = home
        self._count = 0
        folder = home / "shell"
        folder.mkdir()
        self._shell = process.Process(["bash"], folder, stdin=True)
        self._shell.write(f"set -m; PATH={tools}:$PATH; trap 'kill $(jobs -p)' EXIT\n".encode())

    def run(self, command: str) -> str:
        """Whatever a command prints."""
        self._count += 1
        output = self._home / f"output{self._count}"
        # On a line of its own, so that it may end with `&`.
        self._shell.write(f"{{\n{command}\n}} >{output} 2>&1\necho {output.name}\n".encode())
        self._shell.wait_for_line(output.name)
        return JOB_NOTICE.sub("", output.read_text())

    def close(self) -> None:
        self._shell.write(b"exit 0\n", end=True)
        try:
            self._shell.wait()
        finally:
            self._shell.kill()
