"""Jobs by the names that protocols have for them: a handle, a function and a unique key, or a function and an id.

These verbs are for programs that ask about a job through the control function, before and after its end.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from geartrain.admin import presentation, views
from geartrain.admin.base import printable
from geartrain.admin.job_watch import JobWatchAnswer, encoded_result
from geartrain.admin.jobs import JobVerbs
from geartrain.admin.views import JobView
from geartrain.engine.job import LiveJob
from geartrain.errors import AdminError
from geartrain.job_query import JobQuery
from geartrain.model import JobState, Record, id_from_handle

_MOST_NAMESAKES: Final = 100  # records that have the unique key somewhere in their names


class JobNameVerbs(JobVerbs):
    """Find a job by any of its names."""

    async def find(self, handle: bytes = b"", function: bytes = b"", unique: bytes = b"", id: int = 0) -> JobView:
        """The job of this name, with its state; the newest one if several had the unique key."""
        job = await self._named(handle, function, unique, id)
        if isinstance(job, Record):
            return presentation.record_view(job, views.LISTED_BYTES)
        read = await self._cold_payloads([job], views.LISTED_BYTES)
        return presentation.job_view(job, views.LISTED_BYTES, engine=self._engine, cold_payload=read.get(job.id))

    async def watched(
        self, handle: bytes = b"", function: bytes = b"", unique: bytes = b"", id: int = 0
    ) -> LiveJob | JobWatchAnswer:
        """The job of this name to watch, or how it ended."""
        job = await self._named(handle, function, unique, id)
        if isinstance(job, LiveJob):
            if job.state is not JobState.DEAD:
                return job
            read = await self._cold_payloads([job], views.LISTED_BYTES)
            return JobWatchAnswer(presentation.job_view(job, views.LISTED_BYTES, cold_payload=read.get(job.id)))
        result = await self.result(job.handle, part=job.state != JobState.DONE)
        return JobWatchAnswer(presentation.record_view(job, views.LISTED_BYTES), encoded_result(result))

    def has_job(self, arguments: Mapping[str, Any], owns: Callable[[int], bool], *, borrowed: bool = False) -> bool:
        """Whether this server of a cluster is the home of the job that the arguments of a verb name.

        It is the home of a job that it has and not `borrowed`, and of jobs with ids that it `owns`, whatever they are.
        """
        handle, unique = self._handle_in(arguments), arguments.get("unique") or b""
        job = self._engine.unique_jobs.get(arguments.get("function") or b"", unique) if unique else None
        job = job or self._find(handle or unique)
        if job is not None:
            return borrowed or job.id not in self._engine.borrowed
        return owns(id_from_handle(handle))

    def id_in(self, arguments: Mapping[str, Any]) -> int:
        """The id of the job that the arguments of a verb name; 0 if they name it otherwise."""
        return id_from_handle(self._handle_in(arguments))

    def _handle_in(self, arguments: Mapping[str, Any]) -> bytes:
        id = arguments.get("id")
        return self._engine.handle_prefix + b"%d" % id if id else arguments.get("handle") or b""

    async def function_of_named_job(self, arguments: dict[str, Any]) -> bytes:
        """The function of a job that this server has, for the check of a caller's rights at another one."""
        return await super().function_of_job(arguments)

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
