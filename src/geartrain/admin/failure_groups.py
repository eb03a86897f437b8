"""Failed and dead jobs in groups of equal reasons, so that an operator sees causes instead of thousands of jobs.

The newest jobs are read, a bounded number of them, in slices that do not hold up the event loop.
"""

import dataclasses
from typing import Final

from geartrain import jsonbytes
from geartrain.admin import views
from geartrain.admin.jobs import JobVerbs
from geartrain.admin.loop_break import LoopBreak
from geartrain.engine.job import LiveJob
from geartrain.errors import AdminError
from geartrain.failure_reasons import reason_group, summary
from geartrain.job_query import JobQuery
from geartrain.model import JobState, Record

SCANNED: Final = 20_000  # jobs of each state
GROUPS: Final = 200
_PAGE: Final = 500  # records per reading of the store
_FUNCTIONS_SHOWN: Final = 10
_STATES: Final = (JobState.FAILED, JobState.DEAD)
_ALL: Final = JobQuery()


class _FailureCounts:
    """The jobs of one group."""

    def __init__(self, job: LiveJob | Record, reason: str, at: float) -> None:
        self.reason = reason
        self.newest = job
        self.functions: dict[bytes, None] = {}  # in the order in which they were found
        self.failed = 0
        self.dead = 0
        self.first_at = self.last_at = at

    def add(self, job: LiveJob | Record, at: float) -> None:
        if job.state == JobState.DEAD:
            self.dead += 1
        else:
            self.failed += 1
        self.functions[job.function] = None
        self.first_at = min(self.first_at, at)
        if at > self.last_at:
            self.last_at, self.newest = at, job

    def view(self) -> views.FailureGroup:
        names = list(self.functions)[:_FUNCTIONS_SHOWN]
        return views.FailureGroup(
            reason=self.reason,
            failed=self.failed,
            dead=self.dead,
            functions=[jsonbytes.encode(name) for name in names],
            function_count=len(self.functions),
            first_at=self.first_at,
            last_at=self.last_at,
            handle=jsonbytes.encode(self.newest.handle),
            example=summary(self.newest.reason),
        )


class FailureVerbs(JobVerbs):
    """Groups of failed and dead jobs."""

    async def failures(self, query: JobQuery = _ALL) -> views.FailureGroups:
        """The newest failed and dead jobs that match, grouped by their reasons; the largest group first."""
        if query.state is not None and query.state not in _STATES:
            raise AdminError(
                "bad-request", f"failures are jobs that failed or are dead, not {query.state.name.lower()}"
            )
        groups: dict[str, _FailureCounts] = {}
        others = scanned = 0
        loop_break = LoopBreak()
        jobs, more = await self._failures(query)
        for job in jobs:
            await loop_break.take()
            if not self._is_visible(job.function):
                continue
            scanned += 1
            reason, at = reason_group(job.reason), _ended_at(job)
            group = groups.get(reason)
            if group is None:
                if len(groups) >= GROUPS:
                    others += 1
                    continue
                group = groups[reason] = _FailureCounts(job, reason, at)
            group.add(job, at)
        ordered = sorted(groups.values(), key=lambda group: (-group.failed - group.dead, group.reason))
        return views.FailureGroups([group.view() for group in ordered], scanned, others, more)

    async def dead_groups(self, query: JobQuery) -> views.FailureGroups:
        """The same of dead jobs alone, for the page of a cluster: all its servers have those that failed."""
        if query.state is JobState.FAILED:
            return views.FailureGroups([], 0, 0, False)
        return await self.failures(dataclasses.replace(query, state=JobState.DEAD))

    async def _failures(self, query: JobQuery) -> tuple[list[LiveJob | Record], bool]:
        """Dead and failed jobs, the newest of each, and whether there are more."""
        jobs: list[LiveJob | Record] = []
        more = False
        if query.state is not JobState.FAILED:
            dead = await self._living(dataclasses.replace(query, state=JobState.DEAD), SCANNED + 1)
            more = len(dead) > SCANNED
            jobs += dead[:SCANNED]
        if query.state is not JobState.DEAD:
            failed = await self._failed_records(dataclasses.replace(query, state=JobState.FAILED))
            more = more or len(failed) > SCANNED
            jobs += failed[:SCANNED]
        return jobs, more

    async def _failed_records(self, query: JobQuery) -> list[Record]:
        """Records of failed jobs, read in small pages because each may have a large result."""
        records: list[Record] = []
        while len(records) <= SCANNED:
            page = await self._archive.newest(query, _PAGE)
            records += [record._replace(result=b"") for record in page]
            if len(page) < _PAGE:
                break
            query = dataclasses.replace(query, below=page[-1].id)
        return records


def _ended_at(job: LiveJob | Record) -> float:
    if isinstance(job, Record):
        return job.finished_at
    return job.failed_attempts[-1].ended_at if job.failed_attempts else job.submitted_at
