"""Where a job's hash is: in a draft, in the engine, among the dead, or among the endings.

A job's id is its number in the engine. So every job has one, whichever door it came by.
"""

from geartrain.doors.gearmonkey import keys
from geartrain.doors.gearmonkey.drafts import Drafts
from geartrain.doors.gearmonkey.endings import Endings
from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import RUNNING

Fields = dict[bytes, bytes]


class Jobs:
    """All jobs as hashes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.drafts = Drafts()
        self.endings = Endings()
        self._first_own = engine.next_id
        # Jobs from before whose handles begin otherwise, since the prefix was changed; looked for when first needed.
        self._others: dict[int, bytes] | None = None

    def handle(self, number: int) -> bytes:
        """What the engine calls a job."""
        job = self._engine.jobs.get(number) or self._engine.dead.get(number)
        if job is not None:
            return job.handle
        handle = self._engine.handle_prefix + b"%d" % number
        if number >= self._first_own:
            return handle
        if self._others is None:
            self._others = self._with_other_handles()
        return self._others.get(number, handle)

    def live(self, key: keys.Key) -> LiveJob | None:
        """The job while it waits or runs."""
        return self._of_function(self._engine.jobs.get(key.id), key)

    def dead(self, key: keys.Key) -> LiveJob | None:
        """The job after it was given up."""
        return self._of_function(self._engine.dead.get(key.id), key)

    def is_over(self, key: keys.Key) -> bool:
        """Whether it is known to be over."""
        if self.live(key) is not None:
            return False
        return self.dead(key) is not None or self.endings.get(key, self._engine.now) is not None

    def is_unknown(self, key: keys.Key) -> bool:
        """Whether only the records can say what became of it."""
        return (
            key.id < self._engine.next_id
            and self.drafts.get(key) is None
            and self.live(key) is None
            and not self.is_over(key)
        )

    def fields(self, key: keys.Key) -> Fields:
        """The hash; empty if there is none."""
        job = self.live(key)
        if job is not None:
            return _of_live(job)
        job = self.dead(key)
        if job is not None:
            return {b"status": b"error", b"input": job.payload, b"output": job.reason.encode()}
        draft = self.drafts.get(key)
        if draft is not None:
            return draft.fields
        ending = self.endings.get(key, self._engine.now)
        return ending.fields if ending is not None else {}

    def _of_function(self, job: LiveJob | None, key: keys.Key) -> LiveJob | None:
        return job if job is not None and job.function == key.function else None

    def _with_other_handles(self) -> dict[int, bytes]:
        prefix = self._engine.handle_prefix
        return {
            job.id: job.handle
            for jobs in (self._engine.jobs, self._engine.dead)
            for job in jobs.values()
            if not job.handle.startswith(prefix)
        }


def _of_live(job: LiveJob) -> Fields:
    fields = {b"status": b"busy" if job.state is RUNNING else b"idle", b"input": job.payload}
    progress = job.progress
    if progress is not None:
        fields[b"status:dividend"] = b"%d" % progress.numerator
        fields[b"status:divisor"] = b"%d" % progress.denominator
    return fields
