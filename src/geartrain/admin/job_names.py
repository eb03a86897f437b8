"""Jobs by the names that protocols have for them: a handle, a function and a unique key, or a function and an id.

These verbs are for programs that ask about a job through the control function, before and after its end.
"""

from typing import Final

from geartrain.admin import presentation, views
from geartrain.admin.base import printable
from geartrain.admin.job_watch import JobWatchAnswer, encoded_result
from geartrain.admin.jobs import JobVerbs
from geartrain.admin.views import JobView
from geartrain.engine.job import LiveJob
from geartrain.errors import AdminError
from geartrain.job_query import JobQuery
from geartrain.model import JobState, Record

_MOST_NAMESAKES: Final = 100  # records that have the unique key somewhere in their names


class JobNameVerbs(JobVerbs):
    """Find a job by any of its names."""

    async def find(self, handle: bytes = b"", function: bytes = b"", unique: bytes = b"", id: int = 0) -> JobView:
        """The job of this name, with its state; the newest one if several had the unique key."""
        job = await self._named(handle, function, unique, id)
        if isinstance(job, Record):
            return presentation.record_view(job, views.LISTED_BYTES)
        return presentation.job_view(job, views.LISTED_BYTES)

    async def watched(
        self, handle: bytes = b"", function: bytes = b"", unique: bytes = b"", id: int = 0
    ) -> LiveJob | JobWatchAnswer:
        """The job of this name to watch, or how it ended."""
        job = await self._named(handle, function, unique, id)
        if isinstance(job, LiveJob):
            live = job.state is not JobState.DEAD
            return job if live else JobWatchAnswer(presentation.job_view(job, views.LISTED_BYTES))
        result = await self.result(job.handle, part=job.state != JobState.DONE)
        return JobWatchAnswer(presentation.record_view(job, views.LISTED_BYTES), encoded_result(result))

    async def _named(self, handle: bytes, function: bytes, unique: bytes, id: int) -> LiveJob | Record:
        """The job of this name: one that has not ended, a dead one, or the record of one that has ended."""
        if id:
            handle = self._engine.handle_prefix + b"%d" % id
        job: LiveJob | Record | None = None
        if unique and not handle:
            job = self._engine.unique_jobs.get(function, unique) or await self._newest_record(function, unique)
        handle = handle or unique
        if job is None:
            job = self._find(handle) or await self._archive.find(handle)
        if job is None or (function and job.function != function):
            raise AdminError("not-found", f"no job {printable(handle)}; records of ended jobs are kept for a while")
        return job

    async def _newest_record(self, function: bytes, unique: bytes) -> Record | None:
        records = await self._archive.newest(JobQuery(function=function, search=unique), _MOST_NAMESAKES)
        return next((record for record in records if record.unique == unique), None)
