"""A worker's job, as a task sees it."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from geartrain import failure_reasons, jsonbytes, number_ranges
from geartrain.app.server_control import JobReference, ServerControl
from geartrain.client.job import Job
from geartrain.errors import (
    AdminError,
    ArgumentsError,
    ClientError,
    ExpiredError,
    JobFailedError,
)

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
        first = int(own.rpartition(b":")[2]) - place  # the id of the first job
        found = await self._results(own, [first + parent for parent in parents])
        return [_result_of(parent, found.get(first + parent)) for parent in parents]

    async def _results(self, own: bytes, ids: list[int]) -> dict[int, dict[str, Any]]:
        """What the server has of jobs of this one's workflow, by id."""
        found: dict[int, dict[str, Any]] = {}
        wanted = number_ranges.write(number_ranges.ranges_of(ids))
        while wanted:
            answer = await self.control.ask("results", handle=jsonbytes.encode(own), ids=wanted)
            found.update((result["id"], result) for result in answer["results"])
            wanted = answer["rest"]
        return found

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


def _result_of(place: int, found: dict[str, Any] | None) -> bytes | JobFailedError:
    """The result of another job of the workflow, or the error that it ended with."""
    if found is None or (found["state"] == "done" and found["result"] is None):
        raise ArgumentsError(f"an argument is the result of job {place} of the workflow, which is no longer kept")
    result = jsonbytes.decode(found["result"] or "")
    if found["state"] == "done":
        return result
    reason = failure_reasons.summary(found["reason"] or "") or found["state"]
    kind = ExpiredError if found["state"] == "expired" else JobFailedError
    function = jsonbytes.decode(found["function"]).decode("utf-8", "replace")
    return kind(f"job {place} of the workflow, of {function}, failed: {reason}", reason, found["code"] or 1, result)
