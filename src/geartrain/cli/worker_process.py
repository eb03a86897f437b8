"""One process of `geartrain work module:app`: import the App, and run its tasks until a signal.

It runs in the command's own process, or as one of several below a supervisor (`cli/supervisor.py`). Then a socket
connects the two: the supervisor sends the settings and reads messages, one JSON object per line. If the supervisor
dies, the socket ends, and so does this process, after its running tasks.
"""

import asyncio
import contextlib
import socket
import sys
from collections.abc import Iterator

import msgspec

from geartrain import eventloop
from geartrain.app.app import App
from geartrain.app.worker import AppWorker
from geartrain.app.worker_options import WorkerOptions
from geartrain.cli import app_target, exit_codes, work_log
from geartrain.cli.main import exit_code
from geartrain.client import credentials


class WorkSettings(msgspec.Struct, frozen=True):
    """What `geartrain work` was told about an App."""

    target: str
    urls: tuple[str, ...] = ()  # empty: the App's own
    options: WorkerOptions = WorkerOptions()
    log_level: str = "info"
    log_json: bool = False
    token: str = ""  # of the command line, before the App's own


class AppSummary(msgspec.Struct, frozen=True):
    """What a process knows of the App, for the lines at the start."""

    app: str
    tasks: list[str]
    urls: list[str]


class WorkerMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a process tells its supervisor."""

    kind: str  # loaded, connected, or limit: it stops because of a limit, and another one has to take its place
    summary: AppSummary | None = None  # loaded
    why: str = ""  # limit


class Channel:
    """The process's end of the socket to its supervisor."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def receive_settings(self) -> WorkSettings:
        """Wait for the first line."""
        line = b""
        while not line.endswith(b"\n"):
            part = self._end.recv(65536)
            if not part:
                raise SystemExit(exit_codes.FAILED)  # the supervisor is gone
            line += part
        return msgspec.json.decode(line, type=WorkSettings)

    def send(self, message: WorkerMessage) -> None:
        """Tell the supervisor; if it is gone, `closed` says so."""
        with contextlib.suppress(OSError):
            self._end.sendall(msgspec.json.encode(message) + b"\n")

    async def closed(self) -> None:
        """Wait until the supervisor is gone."""
        self._end.setblocking(False)
        while await asyncio.get_running_loop().sock_recv(self._end, 4096):
            pass


class WorkerRun:
    """A process that runs the tasks of an App."""

    def __init__(self, settings: WorkSettings, channel: Channel | None = None) -> None:
        """Import the App; an AppError says why that is not possible."""
        log = work_log.WorkLog(settings.log_level, settings.log_json)
        self.app = load(settings)
        log.yield_to_application()
        self._channel = channel
        self._worker = AppWorker(self.app, settings.options)

    @property
    def summary(self) -> AppSummary:
        """What there is to say about the App."""
        return AppSummary(self.app.name, [task.name for task in self._worker.tasks], list(self.app.urls))

    def run(self) -> None:
        """Work until a signal, a limit or the end of a burst."""
        with asyncio.Runner(loop_factory=eventloop.best().factory) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        with self._supervised():
            await self._worker.serve()

    @contextlib.contextmanager
    def _supervised(self) -> Iterator[None]:
        channel = self._channel
        if channel is None:
            yield
            return
        self._worker.limit_reached = lambda why: channel.send(WorkerMessage("limit", why=why))
        tasks = [asyncio.create_task(self._tell_connected(channel)), asyncio.create_task(self._watch(channel))]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()

    async def _tell_connected(self, channel: Channel) -> None:
        await self._worker.connected()
        channel.send(WorkerMessage("connected"))

    async def _watch(self, channel: Channel) -> None:
        with contextlib.suppress(OSError):
            await channel.closed()
        self._worker.stop()


def load(settings: WorkSettings) -> App:
    """The App, with the servers and the token of the command line."""
    app = app_target.load(settings.target)
    if settings.urls:
        app.urls = settings.urls
    if settings.token:
        credentials.use_token(settings.token)
        app.token = None  # the one of the command line comes before the app's own
    return app


def main() -> None:
    """The program of a process below a supervisor; its argument is the number of its end of the socket."""
    sys.exit(exit_code(lambda: _main(socket.socket(fileno=int(sys.argv[1])))))


def _main(end: socket.socket) -> None:
    channel = Channel(end)
    run = WorkerRun(channel.receive_settings(), channel)
    channel.send(WorkerMessage("loaded", run.summary))
    run.run()


if __name__ == "__main__":
    main()
