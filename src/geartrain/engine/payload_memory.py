"""Payloads in memory, and those that are on disk only.

A background job that waits is *cold* while its payload is on disk only; the others are warm. Jobs become cold when
their payloads are durable and memory has as many as the budget allows: mostly new jobs, since these are at the end of
their queues. Jobs near the head of a queue stay warm as long as the budget is not exceeded. Dead jobs are always cold.

When the head of a queue comes near a cold job, the payloads of the next ones are read, in the order in which they will
be assigned. A queue whose next job is cold is left out by claims, as one that has no jobs, until its payload is there;
so are those of the same function with lower priorities, and others go on. Whoever finds such a job has it read
(`JobQueue.is_waiting`), and when payloads arrive, the function's queues are announced to the crews again, whatever was
read. So nothing needs to know at any other time which job is the next.

A quarter of the budget is left for what is read ahead, and for the heads of other queues. Where that does not suffice,
payloads are read one by one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from geartrain.engine.function import Function
from geartrain.engine.interfaces import PayloadReader
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import BLOCKED, DEAD, QUEUED, SCHEDULED
from geartrain.engine.names import WORKFLOW
from geartrain.engine.policy import JOB_BYTES
from geartrain.engine.queue import JobQueue

if TYPE_CHECKING:
    from geartrain.engine.state import EngineState

NEAR: Final = 256  # jobs from the head of a queue, which stay warm if they can
WARM_BYTES: Final = 128  # what a warm job takes besides its payload: two objects with their headers
READ_JOBS: Final = 1024  # at a time
READ_BYTES: Final = 2 * 1024 * 1024  # at a time
_WINDOW: Final = 2  # reads that a queue has in memory ahead of its head: the next is asked for when half are used
GONE: Final = "its payload is no longer in the store"


class PayloadMemory:
    """Decides which jobs are cold, and which payloads are read next. One per engine."""

    __slots__ = ("_engine", "budget", "cold_bytes", "cold_jobs", "reader")

    def __init__(self, engine: "EngineState") -> None:
        self._engine = engine
        self.reader: PayloadReader | None = None  # None: all payloads stay in memory
        self.budget: i64 = 0  # bytes of payloads in memory, with a reader
        self.cold_jobs: i64 = 0
        self.cold_bytes: i64 = 0  # of the payloads that are on disk only

    @property
    def warm_bytes(self) -> int:
        """The bytes of the payloads in memory."""
        engine = self._engine
        return engine.queued_bytes - JOB_BYTES * (len(engine.jobs) + len(engine.dead))

    @property
    def used_bytes(self) -> int:
        """What they take of the budget."""
        engine = self._engine
        jobs = len(engine.jobs) + len(engine.dead)
        return engine.queued_bytes - JOB_BYTES * jobs + WARM_BYTES * (jobs - self.cold_jobs)

    def has_room(self) -> bool:
        """Whether the payloads of jobs that are far from their turn need not be on disk only."""
        return self.used_bytes < self.budget - self.budget // 4

    # Jobs that become cold, or come and go as cold ones

    def committed(self, jobs: Sequence[LiveJob]) -> None:
        """These jobs, with their payloads, are durable now: let them become cold where memory is needed."""
        engine = self._engine
        if self.reader is None:
            return
        used: i64 = self.used_bytes
        limit: i64 = self.budget - self.budget // 4
        if used <= limit and not engine.dead:
            return
        for job in jobs:
            # Nobody claims a workflow, and its end needs the payload at once.
            if job.is_cold or not job.background or job.function == WORKFLOW:
                continue
            if job.state is DEAD:
                if engine.dead.get(job.id) is job:
                    self._chill(job)
            elif used > limit and engine.jobs.get(job.id) is job and self._may_chill(job, used > self.budget):
                self._chill(job)
                used -= job.payload_size + WARM_BYTES

    def _may_chill(self, job: LiveJob, is_urgent: bool) -> bool:
        """Whether a job waits that is far from its turn; if it is urgent, however near."""
        if job.state is QUEUED:
            if is_urgent:
                return True
            queue = self._engine.functions[job.function].queues[job.priority]
            if queue.partitions is not None:
                return queue.partitions.turns_before(queue, job.partition) > NEAR
            return queue.size > NEAR
        return job.state is SCHEDULED or job.state is BLOCKED

    def _chill(self, job: LiveJob) -> None:
        job.chill(self._engine.handle_prefix)
        if job.is_cold:
            self.add(job)
            if job.state is QUEUED:
                function = self._engine.functions[job.function]
                self.enqueue(function, function.queues[job.priority])

    def add(self, job: LiveJob) -> None:
        """A cold job is one of the engine's now; its payload was counted as if it were in memory."""
        job.chill(self._engine.handle_prefix)
        self.cold_jobs += 1
        self.cold_bytes += job.payload_size
        self._engine.free_bytes += job.payload_size

    def remove(self, job: LiveJob) -> None:
        """Undo `add`."""
        self.cold_jobs -= 1
        self.cold_bytes -= job.payload_size
        self._engine.free_bytes -= job.payload_size

    def enqueue(self, function: Function, queue: JobQueue) -> None:
        """A queue of a function has one more cold job."""
        function.cold += 1
        queue.cold += 1
        queue.payloads = self

    def leave(self, job: LiveJob) -> None:
        """Undo `enqueue`: a job is warm now, or no longer queued."""
        function = self._engine.functions[job.function]
        function.cold -= 1
        function.queues[job.priority].cold -= 1

    # Reading ahead

    def taken_from(self, queue: JobQueue) -> None:
        """A job was taken from a queue that has cold ones."""
        queue.look_after -= 1
        if queue.look_after <= 0:
            self.read_ahead(queue)

    def read_ahead(self, queue: JobQueue) -> None:
        """Have the payloads of the next jobs of a queue read, unless some of its payloads are being read."""
        if queue.is_reading or self.reader is None:
            return
        jobs = self._next_cold(queue)
        if jobs:
            queue.is_reading = True
            self.reader.read(queue, jobs)

    def read_job(self, job: LiveJob) -> None:
        """Have the payload of one job read that somebody wants before its turn."""
        queue = self._engine.functions[job.function].queues[job.priority]
        if self.reader is not None and not queue.is_reading:
            queue.is_reading = True
            self.reader.read(queue, [job])

    def _next_cold(self, queue: JobQueue) -> list[LiveJob]:
        """The cold jobs near the head of a queue, as many as are read at a time."""
        jobs: list[LiveJob] = []
        room: i64 = self.budget - self.used_bytes
        if room > READ_BYTES:
            room = READ_BYTES
        passed: i64 = 0
        passed_bytes: i64 = 0
        for job in queue.upcoming(_WINDOW * READ_JOBS):
            size: i64 = job.payload_size + WARM_BYTES
            if job.is_cold:
                room -= size
                # The next one is read in any case.
                if (room < 0 and (jobs or passed)) or len(jobs) >= READ_JOBS:
                    break
                jobs.append(job)
            passed += 1
            passed_bytes += size
            if passed_bytes > _WINDOW * READ_BYTES:
                break
        queue.look_after = passed // 2
        return jobs

    def arrived(self, queue: JobQueue, jobs: Sequence[LiveJob], payloads: Sequence[bytes | None]) -> list[LiveJob]:
        """The payloads of these jobs were read; None: the store has none. Return the jobs that end because of it."""
        engine = self._engine
        queue.is_reading = False
        gone: list[LiveJob] = []
        for job, payload in zip(jobs, payloads, strict=True):
            if not job.is_cold or engine.jobs.get(job.id) is not job:
                continue
            if payload is None or len(payload) != job.payload_size:
                gone.append(job)
                continue
            self.remove(job)
            job.warm(payload)
            if job.state is QUEUED:
                self.leave(job)
        for job in gone:
            if engine.jobs.get(job.id) is job:
                engine.give_up_payload(job, GONE)
        self._announce(jobs[0].function)
        return gone

    def failed(self, queue: JobQueue, name: bytes) -> None:
        """Payloads could not be read: whoever asks for the next job of the function has them read again."""
        queue.is_reading = False
        self._announce(name)

    def _announce(self, name: bytes) -> None:
        """Let workers ask again for jobs of a function: also those of lower priorities, which had to wait as well."""
        function = self._engine.functions.get(name)
        if function is not None and not function.resting:
            self._engine.assign_again(function)
