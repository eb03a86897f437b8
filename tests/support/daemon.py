"""A server of somebody else's on a port of this machine, which can be stopped, killed and started again."""

import os
import random
import signal
from collections.abc import Sequence
from pathlib import Path

from tests.support import process, serving


class Daemon:
    """The server while it runs, and its port, which stays the same over restarts."""

    name = "the server"
    ready: tuple[str, ...] = ()  # what a line of its log has in it when it accepts connections

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder = folder  # where it works
        self.port = port  # 0: the first start finds a free one
        self.server: process.Process | None = None

    @property
    def pid(self) -> int:
        assert self.server is not None, f"{self.name} does not run"
        return self.server.pid

    def command(self, port: int) -> Sequence[str]:
        """What starts it on this port."""
        raise NotImplementedError

    def start(self) -> None:
        """Start on the port, or on a free one the first time; return when it accepts connections."""
        assert self.server is None, f"{self.name} runs already"
        said = "no free port was found"
        for port in [self.port] if self.port else filter(serving.is_free, random.sample(serving.PORTS, 5)):
            server = process.Process(self.command(port), self.folder, merge_stderr=True)
            try:
                server.wait_until(self._is_ready, "that it is ready")
            except AssertionError as error:  # perhaps somebody else has taken the port
                said = str(error)
            else:
                self.server, self.port = server, port
                return
            finally:
                if self.server is None:
                    server.kill()
        raise AssertionError(f"{self.name} did not start\n{said}")

    def end(self, number: signal.Signals) -> None:
        """Send a signal that ends it; return when all its processes are gone. A second call does nothing."""
        if self.server is not None:
            os.kill(self.server.pid, number)
            self.server.wait()  # for the end of its output too, which its child processes share
            self.server = None

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def _is_ready(self, lines: list[str]) -> bool:
        return any(word in line for line in lines for word in self.ready)
