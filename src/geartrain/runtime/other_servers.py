"""The other servers of a cluster, as doors see them: jobs that this server does not have are asked for there.

A door looks for a job in the engine first. Only if it is not there, and `DistantServers.exist`, it asks here. A server
alone has an `DistantServers` that knows nobody, so it never asks.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

from mypy_extensions import mypyc_attr

from geartrain.engine.interfaces import Watcher
from geartrain.model import JobState

_log = logging.getLogger("geartrain.cluster")

Answerer = Callable[[bytes], Awaitable[bytes]]
Hearer = Callable[[int, bytes], None]  # gets the number of the server that tells


class JobName(NamedTuple):
    """How a client names a job: by its handle, by its unique key, or by its function and one of both."""

    handle: bytes = b""
    unique: bytes = b""
    function: bytes = b""


class DistantJob(NamedTuple):
    """A job of another server, as it was a moment ago."""

    node: int  # the server that has it; 0: none that can be reached, and the store has the job
    id: int
    handle: bytes
    function: bytes
    state: int
    is_running: bool
    numerator: int = 0
    denominator: int = 0
    seconds_left: int = 0
    clients: int = 0  # that wait for it

    @property
    def is_dead(self) -> bool:
        return self.state == JobState.DEAD


class UnreachableError(Exception):
    """The server that has a job does not answer."""


@mypyc_attr(allow_interpreted_subclasses=True)
class DistantServers:
    """Those of a server alone: there are none."""

    def __init__(self) -> None:
        self.exist = False  # whether there is somebody to ask
        # What doors can be asked and told by their like at other servers, by names that are the same at all of them.
        # They are set before there are links.
        self.answerers: dict[str, Answerer] = {}
        self.hearers: dict[str, Hearer] = {}
        self.on_link: list[Callable[[int], None]] = []  # called with the number of a server that can be reached now
        self._tasks: set[asyncio.Task[None]] = set()

    def tell(self, what: str, content: bytes, node: int = 0) -> None:
        """Tell one other server something, or all of them; who cannot be reached does not hear it."""

    async def ask_home(self, id: int, what: str, content: bytes) -> bytes:
        """The answer of the server that has a job; empty if there is none."""
        return b""

    async def find(self, name: JobName) -> DistantJob | None:
        """The live or dead job of that name, if another server has it."""
        return None

    async def watch(self, name: JobName, watcher: Watcher, on_loss: Callable[[], None]) -> DistantJob | None:
        """Let a watcher hear what happens to a job, wherever it is; None if it has ended, or cannot be watched.

        It hears the progress so far first, and watches a stand-in for the job until `engine.unwatch_all`. If the
        connection to its server is lost before that, it watches nothing any more, and `on_loss` is called.
        """
        return None

    async def cancel(self, job: DistantJob, reason: str) -> bool:
        """Cancel a job that was found, and wait until that is durable; whether it was still there.

        An UnreachableError if its server does not answer.
        """
        return False

    async def retry(self, job: DistantJob) -> bool:
        """The same for queueing a dead job again; a DuplicateKeyError if another job has its unique key now."""
        return False

    async def delete(self, job: DistantJob) -> bool:
        """The same for deleting a dead job."""
        return False

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Have a coroutine run that asks here and answers a peer afterwards."""
        task = asyncio.ensure_future(self._run(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:
            _log.exception("an answer of another server could not be handled")

    def close(self) -> None:
        """Ask no more: the server stops."""
        self.exist = False
        for task in list(self._tasks):
            task.cancel()
