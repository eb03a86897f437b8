"""The index of unique keys over all functions."""

from geartrain.engine.job import LiveJob


class UniqueIndex:
    """Jobs that wait or run, by unique key and function.

    Nearly every key is used by one function only, so one dictionary entry per job serves both questions: which job of
    this function has the key, and which job of any function has it. The functions of a key that several use have a
    dictionary of their own.
    """

    __slots__ = ("_shared", "_single")

    def __init__(self) -> None:
        self._single: dict[bytes, LiveJob] = {}  # by key
        self._shared: dict[bytes, dict[bytes, LiveJob]] = {}  # by key, then by function; its keys are not in `_single`

    def add(self, job: LiveJob) -> None:
        """Add a job whose function has no other job with its key."""
        key = job.unique
        if self._shared:
            jobs = self._shared.get(key)
            if jobs is not None:
                jobs[job.function] = job
                return
        other = self._single.setdefault(key, job)
        if other is not job:
            del self._single[key]
            self._shared[key] = {other.function: other, job.function: job}

    def remove(self, job: LiveJob) -> None:
        """Remove a job that is in the index."""
        key = job.unique
        if self._shared:
            jobs = self._shared.get(key)
            if jobs is not None:
                del jobs[job.function]
                if not jobs:
                    del self._shared[key]
                return
        del self._single[key]

    def get(self, function: bytes, key: bytes) -> LiveJob | None:
        """The job of that function with that key."""
        job = self._single.get(key)
        if job is not None:
            return job if job.function == function else None
        jobs = self._shared.get(key) if self._shared else None
        return jobs.get(function) if jobs is not None else None

    def newest(self, key: bytes) -> LiveJob | None:
        """The newest job with that key, of any function."""
        job = self._single.get(key)
        if job is None and key in self._shared:
            job = max(self._shared[key].values(), key=_by_id)
        return job

    def shrink(self) -> None:
        """Release memory: an emptied dictionary keeps the size that it had with many jobs."""
        if not self._single:
            self._single.clear()
        if not self._shared:
            self._shared.clear()

    def __len__(self) -> int:
        return len(self._single) + sum([len(jobs) for jobs in self._shared.values()])


def _by_id(job: LiveJob) -> int:
    return job.id
