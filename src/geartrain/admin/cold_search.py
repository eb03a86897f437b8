"""Searching the payloads of jobs that are on disk only."""

import dataclasses
from collections.abc import Sequence

from geartrain.engine.job import LiveJob
from geartrain.job_query import JobQuery
from geartrain.runtime.records import RecordArchive


class ColdSearch:
    """A query, and the cold jobs that have its text in their payloads, as far as these were read."""

    def __init__(self, query: JobQuery, archive: RecordArchive) -> None:
        self._query = query
        self._without_text = dataclasses.replace(query, search=b"")
        self._archive = archive
        self._found: set[int] = set()

    async def read(self, jobs: Sequence[LiveJob]) -> None:
        """Look into the payloads of these jobs, where the answer depends on them."""
        cold = [job for job in jobs if job.is_cold and self._without_text.matches(job) and not self._query.matches(job)]
        if cold:
            self._found.update(await self._archive.find_cold(cold, self._query.search))

    def matches(self, job: LiveJob) -> bool:
        """Whether a job is meant."""
        return self._query.matches(job) or (job.id in self._found and self._without_text.matches(job))
