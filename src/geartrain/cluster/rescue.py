"""Jobs that only a server's memory has: the database lost them, and the server was fenced before it wrote them again.

A database that fails over to a standby which was behind has lost the last commits. Every server then writes all its
jobs again. One that is too slow for that, or stands still, is fenced: the others take over what the database has, and
the rest would be gone. So the process takes its jobs along when it starts anew. It asks the database which of them are
there, or have ended, and submits the others once more, with ids of its new node and with their old handles.

It goes on with that until they are durable, whatever the database does meanwhile. If the server is fenced once more,
its next start has what is left, with the ids that were tried last: a job whose commit was carried out after all is not
submitted a second time.

Such a job gives up its unique key: another job may have been accepted with it meanwhile, and both were acknowledged.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Sequence
from typing import Any, Final

from geartrain.engine.job import LiveJob
from geartrain.errors import StoreError
from geartrain.model import JobState, pack_parents, unpack_parents
from geartrain.runtime.committer import Committer
from geartrain.runtime.tick import TickLoop
from geartrain.store import contract, rows
from geartrain.store.shared import SharedStore

_ASKED_AT_ONCE: Final = 10_000  # jobs
_SUBMITTED_AT_ONCE: Final = 10_000  # jobs, so that the commits of a server that brings many along renew its lease
_PAUSE_SECONDS: Final = 1.0  # after an attempt that has failed

_Row = tuple[Any, ...]

_log = logging.getLogger("geartrain.cluster")


class _StopError(Exception):
    """The server is to stop, or was fenced."""


class LostJobs:
    """Some jobs that were acknowledged, and that the database may lack."""

    def __init__(self, jobs: Sequence[_Row]) -> None:
        self.left = list(jobs)  # rows of those that are not known to be durable
        self.submitted = 0  # that the database had lost

    async def submit_again(
        self, store: SharedStore, committer: Committer, tick_loop: TickLoop, stopped: asyncio.Event
    ) -> None:
        """Submit those that the store has no trace of, until they are durable or the server stops."""
        is_asked = False  # once: what a commit of this server that has failed leaves there is removed by the next one
        while self.left and not stopped.is_set():
            try:
                if not is_asked:
                    await self._drop_found(store, committer, stopped)
                    is_asked = True
                await self._submit(tick_loop, stopped)
            except _StopError:
                break
            except StoreError as error:
                fields = {"jobs": len(self.left), "why": str(error)}
                _log.warning("jobs that the database lacks are not written yet, trying again", extra={"fields": fields})
                await _pause(stopped)
        if self.submitted:
            fields = {"jobs": self.submitted}
            _log.warning("submitted jobs again that the database had lost", extra={"fields": fields})

    async def _drop_found(self, store: SharedStore, committer: Committer, stopped: asyncio.Event) -> None:
        found: dict[int, JobState] = {}
        ids = [row[0] for row in self.left]
        for start in range(0, len(ids), _ASKED_AT_ONCE):
            part = ids[start : start + _ASKED_AT_ONCE]
            found |= await _unless_stopped(committer.call(lambda part=part: store.states(part)), stopped)  # type: ignore[misc]
        self.left = [row for row in self.left if row[0] not in found]

    async def _submit(self, tick_loop: TickLoop, stopped: asyncio.Event) -> None:
        jobs = sorted([rows.job(row, LiveJob) for row in self.left], key=_run_at)
        engine = tick_loop.begin_tick()
        new_ids = {job.id: engine.reserve_id() for job in jobs}
        for job in jobs:
            job.id, job.unique = new_ids[job.id], b""
            if job.after:
                parents = unpack_parents(job.after)
                job.after = pack_parents([new_ids.get(id, id) for id in parents.ids], parents.runs_anyway)
        self.left = list(map(contract.row, jobs))
        for start in range(0, len(jobs), _SUBMITTED_AT_ONCE):
            part = jobs[start : start + _SUBMITTED_AT_ONCE]
            engine = tick_loop.begin_tick()
            for job in part:
                engine.journal.accepted(job)
                engine.restore(job)
            await _unless_stopped(tick_loop.durable(), stopped)
            self.left = self.left[len(part) :]
            self.submitted += len(part)


async def _unless_stopped(work: Awaitable[Any], stopped: asyncio.Event) -> Any:
    """What the work returns; a `_StopError` if the server stops before. A server that is fenced commits no more."""
    working = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise _StopError
        return working.result()
    finally:
        working.cancel()
        stopping.cancel()


async def _pause(stopped: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stopped.wait(), _PAUSE_SECONDS)


def _run_at(job: LiveJob) -> float:
    return job.run_at
