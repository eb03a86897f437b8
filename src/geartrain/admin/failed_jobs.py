"""Failed jobs that are kept whole: their payloads, their retry and their deletion.

The engine does not have them, so a job is read from the store first. Only one request at a time does that: otherwise
two could retry the same job.
"""

import asyncio
import sys
from collections.abc import Sequence
from typing import Final

from geartrain.admin.base import printable
from geartrain.admin.loop_break import LoopBreak
from geartrain.engine.job import LiveJob
from geartrain.engine.names import WORKFLOW
from geartrain.errors import AdminError, DuplicateKeyError, QueueFullError
from geartrain.job_query import JobQuery
from geartrain.model import JobState, Record, unpack_parents
from geartrain.number_ranges import ranges_of
from geartrain.runtime.records import RecordArchive
from geartrain.runtime.tick import TickLoop

_READ_AT_ONCE: Final = 500  # jobs
_RETRY: Final = "retry"


class FailedJobActions:
    """What operators do with failed jobs. The actions are `retry` and `delete`."""

    def __init__(self, tick_loop: TickLoop, archive: RecordArchive) -> None:
        self._tick_loop = tick_loop
        self._archive = archive
        self._lock = asyncio.Lock()

    async def payload(self, record: Record) -> bytes | None:
        """The whole payload; None if it is not kept."""
        kept = (await self._archive.payloads([record], sys.maxsize)).get(record.id)
        return None if kept is None else kept.data

    async def act(self, action: str, handle: bytes) -> None:
        """Apply an action to one job; an AdminError says why it cannot be done."""
        async with self._lock:
            record = await self._archive.find(handle)
            if record is None or self._tick_loop.engine.find(handle) is not None:
                raise AdminError("not-found", f"no job {printable(handle)} that is dead or failed")
            if record.state != JobState.FAILED:
                state = JobState(record.state).name.lower()
                raise AdminError("conflict", f"job {printable(handle)} is {state}, not dead or failed")
            await self._tick_loop.durable()  # so that the store has it
            if action == _RETRY:
                await self._retry(record)
            else:
                self._delete(record)

    async def act_on_all(self, action: str, query: JobQuery, most: int) -> tuple[int, int, bool]:
        """Apply an action to the newest jobs that match; how many were done and refused, and whether there are more."""
        async with self._lock:
            records = await self._archive.newest(query, most + 1)
            chosen = records[:most]
            if chosen:
                await self._tick_loop.durable()
            done = await self._retry_all(chosen) if action == _RETRY else await self._delete_all(chosen)
        return done, len(chosen) - done, len(records) > most

    async def retry_named(self, handles: Sequence[bytes]) -> int:
        """Retry these jobs; how many were."""
        async with self._lock:
            found = [await self._archive.find(handle) for handle in handles]
            failed = [record for record in found if record is not None and record.state == JobState.FAILED]
            return await self._retry_all(failed)

    async def _retry(self, record: Record) -> None:
        (job,) = await self._archive.failed_jobs([record])
        if job is None:
            text = f"job {printable(record.handle)} cannot be retried: its payload is not kept"
            raise AdminError("conflict", f"{text} (settings failures and keep_failed_bytes)")
        try:
            await self._run_again(job)
        except DuplicateKeyError as error:
            raise AdminError("conflict", str(error)) from None

    async def _run_again(self, job: LiveJob) -> None:
        """Queue a failed job again; of a workflow, those of its members that ended badly."""
        if job.function != WORKFLOW:
            self._tick_loop.begin_tick().retry_failed(job)
            return
        ids = unpack_parents(job.after).ids
        ends: dict[int, JobState] = {}
        for first, last in ranges_of(ids):
            ends |= await self._archive.ends(first, last)
        bad = [id for id in ids if ends.get(id, JobState.DONE) is not JobState.DONE]
        members = await self._archive.whole_jobs(bad)
        lost = set(bad) - {member.id for member in members}
        if lost:
            raise AdminError(
                "conflict",
                f"workflow {printable(job.handle)} cannot be retried: {len(lost)} of the jobs that it would run again "
                f"are not kept, such as that with the id {min(lost)} (settings failures and keep_failed_bytes)",
            )
        self._tick_loop.begin_tick().retry_workflow(job, members)

    def _delete(self, record: Record) -> None:
        self._tick_loop.begin_tick().journal.remove_record(record.id)

    async def _retry_all(self, records: Sequence[Record]) -> int:
        done = 0
        loop_break = LoopBreak()
        while records:
            jobs = await self._archive.failed_jobs(records[:_READ_AT_ONCE])
            records = records[len(jobs) :]
            for job in jobs:
                await loop_break.take()
                done += job is not None and await self._try_retry(job)
        return done

    async def _try_retry(self, job: LiveJob) -> bool:
        try:
            await self._run_again(job)
        except (DuplicateKeyError, QueueFullError, AdminError):
            return False
        return True

    async def _delete_all(self, records: Sequence[Record]) -> int:
        loop_break = LoopBreak()
        for record in records:
            await loop_break.take()
            self._delete(record)
        return len(records)
