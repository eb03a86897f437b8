"""`geartrain top` in a real terminal of 80 columns, by tmux."""

import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.cli.conftest import run
from tests.support import process, serving

COLUMNS, LINES = 80, 24

pytestmark = pytest.mark.peer("tmux")


class Terminal:
    """A pseudo-terminal."""

    def __init__(self, socket: Path, command: list[str]) -> None:
        self._tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
        size = ["-x", str(COLUMNS), "-y", str(LINES)]
        environment = process.clean_environment(socket.parent)
        subprocess.run(
            [*self._tmux, "new-session", "-d", *size, shlex.join(command)], check=True, env=environment, timeout=20
        )

    def type(self, *keys: str) -> None:
        subprocess.run([*self._tmux, "send-keys", *keys], check=True, timeout=20)

    @property
    def screen(self) -> str:
        shown = subprocess.run([*self._tmux, "capture-pane", "-p"], capture_output=True, timeout=20)
        return shown.stdout.decode()

    def until(self, seen: Callable[[str], bool], what: str) -> str:
        """The screen, once it is as expected; a terminal gives no sign when it changes."""
        deadline = time.monotonic() + process.PATIENCE
        while not seen(screen := self.screen):
            assert time.monotonic() < deadline, f"never saw {what}:\n{screen}"
            time.sleep(0.05)
        return screen

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, timeout=20)


@pytest.fixture
def terminal(server: serving.ServerProcess, tmp_path: Path) -> Iterator[Terminal]:
    run(server.url, "submit", "resize", "x")
    run(server.url, "submit", "a-function-with-a-rather-long-name", "x")
    command = [str(serving.installed_command()), "top", "--interval", "0.2", "--server", server.url]
    opened = Terminal(tmp_path / "tmux", command)
    yield opened
    opened.close()


def test_live_view_shows_functions_pauses_one_and_quits(server: serving.ServerProcess, terminal: Terminal) -> None:
    screen = terminal.until(lambda seen: "resize" in seen, "the function")
    (head,) = [line for line in screen.splitlines() if "FUNCTION" in line]
    assert "FAILED" in head  # the last column fits
    assert all(len(line) <= COLUMNS for line in screen.splitlines())
    terminal.type("/")
    terminal.until(lambda seen: "\u2594" in seen and "quit" not in seen, "the search line in place of the keys")
    terminal.type("resize", "Enter")
    terminal.until(lambda seen: "a-function" not in seen and "quit" in seen, "only what was searched for")
    terminal.type("p")
    terminal.until(lambda seen: "\u2016 resize" in seen, "the pause")
    (found,) = run(server.url, "status", "resize", "--json").json["functions"]
    assert found["paused"] is True
    terminal.type("p")
    terminal.until(lambda seen: "\u2016" not in seen, "the end of the pause")
    terminal.type("q")
    terminal.until(lambda seen: "FUNCTION" not in seen, "the end")
