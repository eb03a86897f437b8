"""A folder that goes away with every process that works in it, even when the test run is killed.

    with scratch.Scratch("geartrain-postgresql-") as place:
        subprocess.Popen(["postgres", ...], cwd=place.path)

A second process watches over it: it holds the reading end of a pipe, which ends with the process that made the folder,
however that one ended. A server that was started by the user it runs as, or by root, can be cleared away so.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

PATIENCE = 20.0  # seconds for killed processes to be gone
LOOK_EVERY = 0.02


class Scratch:
    """The folder, and its watcher."""

    def __init__(self, prefix: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        # Of a session of its own: Ctrl-C in the terminal is for the tests.
        self._watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(self.path)], stdin=subprocess.PIPE, start_new_session=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Clear away what is there, and wait until it is done. A second call does nothing."""
        assert self._watcher.stdin is not None
        self._watcher.stdin.close()
        self._watcher.wait(2 * PATIENCE)


def processes_in(folder: Path) -> list[int]:
    """The processes whose working directory is this folder or one inside it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it is gone, or somebody else's
                if (entry / "cwd").readlink().is_relative_to(folder):
                    found.append(int(entry.name))
    return found


def clear(folder: Path) -> None:
    """Kill what works in the folder, and remove it."""
    deadline = time.monotonic() + PATIENCE
    while (left := processes_in(folder)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_EVERY)
    shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()  # until the process that made the folder has closed it, or has ended
    clear(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
