"""A worker's job, as a task sees it."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from geartrain import failure_reasons, jsonbytes
from geartrain.app.server_control import JobReference, ServerControl
from geartrain.client.job import Job
from geartrain.errors import (
    AdminError,
    ArgumentsError,
    ClientError,
    ExpiredError,
    JobFailedError,
    ResultCutError,
    ResultGoneError,
)

_FETCHES: Final = 50  # results of parents that are fetched at a time
_log: Final = logging.getLogger("geartrain.app")


class WorkerJob:
    """The job of a task in a worker: sends updates from any thread, and asks the server about the job."""

    __slots__ = ("_job", "_loop", "_loop_thread", "attempt", "control", "payload")

    def __init__(self, job: Job, control: ServerControl, loop: asyncio.AbstractEventLoop, loop_thread: int) -> None:
        self.payload = job.payload
        self.attempt = job.attempt or 1
        self.control = control
        self._job = job
        self._loop = loop
        self._loop_thread = loop_thread  # its id

    @property
    def handle(self) -> bytes:
        return self._job.handle.encode("utf-8", "surrogateescape")

    @property
    def reference(self) -> JobReference:
        """How the protocol identifies the job."""
        names = (self._job.function, self._job.handle, self._job.unique)
        return JobReference(*(name.encode("utf-8", "surrogateescape") for name in names))

    @property
    def revoked(self) -> bool:
        return self._job.revoked

    async def is_controllable(self) -> bool:
        """Whether the server has verbs for jobs beyond the protocol, and the job can be identified."""
        return self.reference.identifies_job and await self.control.available()

    def progress(self, numerator: float, denominator: float) -> None:
        self._call(self._job.progress, numerator, denominator)

    def data(self, data: bytes) -> None:
        self._call(self._job.data, data)

    def warn(self, data: bytes) -> None:
        self._call(self._job.warn, data)

    async def find_attempt(self) -> None:
        """Ask the server for the number of this attempt, if the protocol did not say it."""
        if not self._job.attempt and await self.is_controllable():
            self.attempt = (await self.view())["attempts"]

    async def view(self) -> dict[str, Any]:
        """The server's view of the job, with its handle on the server."""
        return await self.control.job(self.reference, "running")

    async def parent_results(self, place: int, parents: Sequence[int]) -> Sequence[bytes | JobFailedError]:
        """Fetch the results of other jobs of its workflow: their ids differ from its own as their places do."""
        if not self.reference.identifies_job:
            raise ArgumentsError(
                f"{self.control.client.protocol} does not tell workers the handle of a job, so results of other jobs "
                "of its workflow cannot be found; use workers of another protocol"
            )
        known = self.control.has_engine_handles
        own = self.handle if known else jsonbytes.decode((await self.view())["handle"])
        prefix, _, id = own.rpartition(b":")
        slots = asyncio.Semaphore(_FETCHES)

        async def fetch(handle: bytes) -> bytes | JobFailedError:
            async with slots:
                return await self._parent_result(handle)

        return await asyncio.gather(*(fetch(b"%b:%d" % (prefix, int(id) - place + parent)) for parent in parents))

    async def _parent_result(self, handle: bytes) -> bytes | JobFailedError:
        name = handle.decode("utf-8", "replace")
        try:
            answer = await self.control.ask("watch", handle=jsonbytes.encode(handle))
        except (ResultGoneError, ResultCutError, AdminError) as error:
            if isinstance(error, AdminError) and error.kind != "not-found":
                raise
            raise ArgumentsError(f"an argument is the result of job {name}, which is not kept: {error}") from error
        view, result = answer["job"], jsonbytes.decode(answer["result"] or "")
        if view["state"] == "done":
            return result
        reason = failure_reasons.summary(view["reason"] or "") or view["state"]
        kind = ExpiredError if view["state"] == "expired" else JobFailedError
        return kind(
            f"job {name} of {jsonbytes.decode(view['function']).decode('utf-8', 'replace')} failed: {reason}",
            reason,
            view["code"] or 1,
            result,
        )

    async def keep_log(self, log: str) -> None:
        """Have the server keep these lines with the job, if it can; they are on its disk afterwards."""
        try:
            if not await self.is_controllable():
                return
            known = self.control.has_engine_handles
            handle = jsonbytes.encode(self.handle) if known else (await self.view())["handle"]
            await self.control.ask("add_log", handle=handle, lines=log)
        except AdminError as refusal:
            if refusal.kind not in ("conflict", "not-found"):  # a foreground job, or one that was cancelled meanwhile
                _log.warning("cannot keep log of job: %s: %s", self.reference, refusal)
        except (ClientError, OSError) as error:
            _log.warning("cannot keep log of job: %s: %s", self.reference, error)

    def release(self) -> None:
        """Do not answer for the job: what its function returns is ignored."""
        self._job.revoked = True

    def _call(self, method: Callable[..., None], *arguments: Any) -> None:
        if threading.get_ident() == self._loop_thread:
            method(*arguments)
        else:
            self._loop.call_soon_threadsafe(method, *arguments)
