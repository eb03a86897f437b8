"""A child process whose output can be waited for, line by line, and that never outlives its test."""

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

PATIENCE = 60.0  # seconds until a missing line or end is a failure; a passing test never waits this long
TAIL = 4000  # characters of its stderr that are shown when something went wrong


class Process:
    """A running command. It works in `home`, where its stderr is kept as well, unless that goes with its stdout."""

    def __init__(self, command: Sequence[str], home: Path, stdin: bool = False, merge_stderr: bool = False) -> None:
        self.home = home
        self.lines: list[str] = []  # what it said on stdout so far, without line ends
        self._stderr_path = Path(os.devnull) if merge_stderr else home / "stderr"
        self._heard = threading.Condition()
        self._silent = False  # stdout has ended
        with self._stderr_path.open("ab") as stderr:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if merge_stderr else stderr,
                cwd=home,
                env=clean_environment(home),
            )
        self._command = " ".join(command)
        self._reader = threading.Thread(target=self._read_stdout, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def stderr(self) -> str:
        """What it said there so far."""
        return self._stderr_path.read_text(errors="replace")

    def says(self, text: str) -> bool:
        """Whether this comes on stderr: a server's log is written by a thread, a moment after the event."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.stderr:
            if time.monotonic() > deadline or self.process.poll() is not None:
                return text in self.stderr
        return True

    @property
    def closed(self) -> bool:
        """Whether it ended and was waited for."""
        assert self.process.stdout is not None
        return self.process.stdout.closed

    def write(self, data: bytes, end: bool = False) -> None:
        """Send to its stdin, and close that if this is the end.

        A process that is gone already says more about that in its account than a broken pipe would.
        """
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(data)
            self.process.stdin.flush()
            if end:
                self.process.stdin.close()

    def wait_until(self, heard: Callable[[list[str]], bool], what: str) -> None:
        """Return once the lines so far are what is waited for."""
        with self._heard:
            self._heard.wait_for(lambda: self._silent or heard(self.lines), PATIENCE)
            if not heard(self.lines):
                raise AssertionError(f"never said: {what}\n{self.account()}")

    def wait_for_line(self, line: str, count: int = 1) -> None:
        self.wait_until(lambda lines: lines.count(line) >= count, f"{line!r} {count} time(s)")

    def wait(self, seconds: float = PATIENCE) -> int:
        """The exit code, once it has ended by itself; all its lines are read then."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds} s\n{self.account()}") from None
        self._reader.join(seconds)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # what was written and never read
                    pipe.close()
        return code

    def kill(self) -> None:
        """SIGKILL, and wait for its end. A second call does nothing."""
        if not self.closed:
            self.process.kill()
            self.wait()

    def account(self) -> str:
        """What a person needs to see about a process that misbehaved."""
        code = self.process.poll()
        state = "still running" if code is None else f"exit code {code}"
        said = "\n".join(self.lines)
        return f"$ {self._command}  ({state})\nstdout:\n{said}\nstderr:\n{self.stderr[-TAIL:]}"

    def _read_stdout(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._heard:
                self.lines.append(line.decode(errors="replace").rstrip("\r\n"))
                self._heard.notify_all()
        with self._heard:
            self._silent = True
            self._heard.notify_all()


def clean_environment(home: Path, source: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Ours, without what would configure a server or lead it to a user's files; the form of the core stays."""
    kept = {
        name: value
        for name, value in source.items()
        if name == "GEARTRAIN_PURE" or not name.startswith(("GEARTRAIN_", "GEARMAND_", "GEARMAN_", "PG", "XDG_"))
    }
    folders = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "STATE", "CACHE")}
    return {**kept, **folders, "HOME": str(home), "XDG_RUNTIME_DIR": str(home)}
