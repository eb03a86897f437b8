"""A process of a pool, as its supervisor sees it."""

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Callable

import msgspec

from geartrain.cli.worker_process import AppSummary, WorkerMessage, WorkSettings


class PoolProcess:
    """A running process, and the socket on which it sends messages."""

    def __init__(self, process: asyncio.subprocess.Process, end: socket.socket) -> None:
        self.summary: AppSummary | None = None  # once it has imported the App
        self.limit = ""  # which limit it has reached, if it has
        self.was_connected = False
        # Each is set at its end too, so that nothing waits for a process that is gone.
        self.loaded = asyncio.Event()
        self.connected = asyncio.Event()
        self.replaceable = asyncio.Event()  # it has reached a limit
        self.restarting = False  # it was told to end because files have changed
        self._process = process
        self._end = end
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._wait())]

    @classmethod
    async def start(cls, settings: WorkSettings) -> "PoolProcess":
        """Start a process. It has a process group of its own, so that Ctrl-C reaches the supervisor alone."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "geartrain.cli.worker_process", str(theirs.fileno()), settings.target,
                pass_fds=(theirs.fileno(),), stdin=asyncio.subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        ours.setblocking(False)
        await asyncio.get_running_loop().sock_sendall(ours, msgspec.json.encode(settings) + b"\n")
        return cls(process, ours)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    @property
    def exit_code(self) -> int:
        """After its end; negative: the number of the signal that killed it."""
        return self._process.returncode or 0

    @property
    def ending(self) -> str:
        """How it has ended, for people."""
        if self.exit_code >= 0:
            return f"exit code {self.exit_code}"
        return f"killed by {signal.Signals(-self.exit_code).name}"

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def close(self) -> None:
        """Wait for its end, and close the socket."""
        await asyncio.gather(*self._tasks)
        self._end.close()

    async def _read(self) -> None:
        loop, buffer = asyncio.get_running_loop(), b""
        with contextlib.suppress(OSError):
            while part := await loop.sock_recv(self._end, 65536):
                *lines, buffer = (buffer + part).split(b"\n")
                for line in lines:
                    self._heard(msgspec.json.decode(line, type=WorkerMessage))

    def _heard(self, message: WorkerMessage) -> None:
        actions: dict[str, Callable[[], None]] = {
            "loaded": self.loaded.set, "connected": self.connected.set, "limit": self.replaceable.set,
        }  # fmt: skip
        self.summary = message.summary or self.summary
        self.limit = message.why or self.limit
        self.was_connected = self.was_connected or message.kind == "connected"
        actions[message.kind]()

    async def _wait(self) -> None:
        await self._process.wait()
        for event in (self.loaded, self.connected, self.replaceable):
            event.set()
