"""The hash of a job: prepared, live, dead, or finished.

A job's id is its number in the engine, so jobs of every door have one.
"""

from collections.abc import Mapping

from geartrain.doors.gearmonkey import keys
from geartrain.doors.gearmonkey.distant_hashes import DistantHash
from geartrain.doors.gearmonkey.finished_jobs import FinishedJobs
from geartrain.doors.gearmonkey.prepared_jobs import PreparedJobs
from geartrain.doors.gearmonkey.written_fields import DIVIDEND, DIVISOR, INPUT, OUTPUT, STATUS, Fields, WrittenFields
from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import DEAD, RUNNING
from geartrain.errors import WireError
from geartrain.runtime.value_feed import ValueFeed


class JobHashes:
    """All jobs as hashes."""

    def __init__(self, engine: Engine, saved_values: Mapping[str, bytes], values: ValueFeed | None = None) -> None:
        self._engine = engine
        self.prepared = PreparedJobs()
        self.finished = FinishedJobs()
        self.written = WrittenFields(engine, saved_values, values)
        self._is_shared = values is not None and values.is_shared
        self.elsewhere: dict[int, DistantHash] = {}  # by id: of jobs of other servers, for the current command
        self.cold_inputs: dict[int, bytes] = {}  # by id: of cold jobs, for the current command
        self._first_own = engine.next_id
        # Restored jobs whose handles have another prefix, because the setting was changed; found on first use.
        self._others: dict[int, bytes] | None = None

    def handle(self, number: int) -> bytes:
        """The handle of a job."""
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
        """The live job of a key."""
        return self._of_function(self._engine.jobs.get(key.id), key)

    def dead(self, key: keys.Key) -> LiveJob | None:
        """The dead job of a key."""
        return self._of_function(self._engine.dead.get(key.id), key)

    def has_ended(self, key: keys.Key) -> bool:
        """Whether the job is known to have ended."""
        if self.live(key) is not None:
            return False
        if self.dead(key) is not None or self.finished.get(key, self._engine.now) is not None:
            return True
        return key.id in self.elsewhere and self.elsewhere[key.id].has_ended

    def is_unknown(self, key: keys.Key) -> bool:
        """Whether only the records may have the job."""
        return (
            (self._is_shared or key.id < self._engine.next_id)  # other servers have ids above
            and self.prepared.get(key) is None
            and self.live(key) is None
            and not self.has_ended(key)
        )

    def cold(self, key: keys.Key) -> LiveJob | None:
        """The job of a key if it is cold: a command needs its input read first."""
        if not self._engine.payloads.cold_jobs or key.kind != keys.JOB:
            return None
        job = self.live(key) or self.dead(key)
        return job if job is not None and job.is_cold else None

    def fingerprint(self, key: keys.Key) -> object:
        """What changes whenever the hash does. A job with another input is another object."""
        job = self.live(key) or self.dead(key)
        if job is None:
            return dict(self.fields(key))
        fields = self._of_dead(job, b"") if job.state is DEAD else self._of_live(job, b"")
        return job, dict(fields)

    def fields(self, key: keys.Key) -> Fields:
        """The hash; empty if there is none."""
        job = self.live(key)
        if job is not None:
            return self._of_live(job, self._input(job))
        job = self.dead(key)
        if job is not None:
            return self._of_dead(job, self._input(job))
        prepared = self.prepared.get(key)
        if prepared is not None:
            return prepared.fields
        finished = self.finished.get(key, self._engine.now)
        if finished is None and key.id in self.elsewhere:
            return self.elsewhere[key.id].fields
        return finished.fields if finished is not None else {}

    def check_output(self, key: keys.Key) -> None:
        """Raise an error if only the beginning of the output is kept: it must not pass for the whole."""
        finished = self.finished.get(key, self._engine.now)
        if finished is not None and finished.full_size and self.live(key) is None:
            kept = len(finished.fields.get(b"output", b""))
            text = f"the output of job {key.id} was cut: {kept} of {finished.full_size} bytes are kept (result_max)"
            raise WireError("RESULTCUT", text, fatal=False)

    def _input(self, job: LiveJob) -> bytes:
        payload = self.cold_inputs.get(job.id) if job.is_cold else job.payload
        if payload is None:
            raise keys.refusal(f"the input of job {job.id} is on disk; try again")
        return payload

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

    def _of_dead(self, job: LiveJob, input: bytes) -> Fields:
        written = self.written.get(job.id)
        own = written.own if written is not None else {}
        return {STATUS: b"error", INPUT: input, **own, OUTPUT: job.reason.encode()}

    def _of_live(self, job: LiveJob, input: bytes) -> Fields:
        fields = {STATUS: b"busy" if job.state is RUNNING else b"idle", INPUT: input}
        written = self.written.get(job.id)
        if written is not None:
            fields.update(written.own)
            fields.update(written.report)
        progress = job.progress
        if progress is not None and DIVIDEND not in fields and DIVISOR not in fields:
            fields[DIVIDEND] = b"%d" % progress.numerator
            fields[DIVISOR] = b"%d" % progress.denominator
        return fields
