"""Jobs whose payloads are on disk only, in any order of commits, reads and everything else that happens to jobs.

The disk is a dictionary, written as a store would be. Reads are answered later, fail, or find nothing. Whatever
happens, a worker gets the payload that was submitted, the jobs of a queue are handed out in the order in which they
would be with all payloads in memory, the engine's counters equal a recount (audit.py), and no job waits when nothing is
being read.
"""

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from geartrain.engine.engine import Engine, PollingWorker
from geartrain.engine.interfaces import Journal, PayloadReader
from geartrain.engine.job import LiveJob
from geartrain.engine.limits import FlowLimits
from geartrain.engine.policy import FunctionPolicy, Policy
from geartrain.engine.queue import JobQueue
from geartrain.engine.worker import Worker
from geartrain.errors import DuplicateKeyError
from geartrain.model import Duplicate, FailureAction, JobState
from tests.property.audit import audit
from tests.support.examples import examples

FUNCTIONS = st.sampled_from([b"f", b"f", b"g"])
KEYS = st.sampled_from([b"", b"", b"", b"k", b"l"])
PARTITIONS = st.sampled_from([b"", b"", b"p", b"q"])
PRIORITIES = st.sampled_from([1, 1, 0])
DELAYS = st.sampled_from([None, None, None, -1.0, 1.0])
BUDGETS = st.sampled_from([1, 1, 1, 700, 10**6])
INDEX = st.integers(0, 15)


class DiskReader(PayloadReader):
    """Notes what is to be read."""

    def __init__(self) -> None:
        self.asked: list[tuple[JobQueue, list[LiveJob]]] = []

    def read(self, queue: JobQueue, jobs: list[LiveJob]) -> None:
        assert jobs
        assert all(job.is_cold for job in jobs)
        self.asked.append((queue, jobs))


class DiskJournal(Journal):
    """What a store would have; a cold job leaves the payload there as it is."""

    def __init__(self) -> None:
        self.payloads: dict[int, bytes] = {}
        self.saved: list[LiveJob] = []  # since the last commit
        self.failed_jobs: list[tuple[LiveJob, bytes]] = []

    def accepted(self, job: LiveJob) -> None:
        self.changed(job)

    def changed(self, job: LiveJob) -> None:
        payload = job.payload_in_memory
        if payload is not None:
            self.payloads[job.id] = payload
            self.saved.append(job)
        assert job.id in self.payloads, "a cold job was saved before"

    def finished(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        del self.payloads[job.id]

    def failed(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        self.failed_jobs.append((job, self.payloads.pop(job.id)))


class ColdJobsMachine(RuleBasedStateMachine):
    """One worker that asks and is never woken, and another one that sleeps."""

    @initialize(failures=st.sampled_from(FailureAction), limited=st.booleans(), budget=BUDGETS)
    def begin(self, failures: FailureAction, limited: bool, budget: int) -> None:
        self.journal, self.reader = DiskJournal(), DiskReader()
        policy = Policy(max_attempts=2, failures=failures, retry_delay=1.0)
        self.engine = Engine(policy, journal=self.journal)
        self.engine.now = 1000.0
        self.engine.payloads.reader = self.reader
        self.engine.payloads.budget = budget
        self.worker, self.sleeper = PollingWorker("test"), PollingWorker("test")
        for worker in (self.worker, self.sleeper):
            for name in (b"f", b"g"):
                self.engine.register(worker, name)
        if limited:
            self.engine.configure(b"f", FunctionPolicy(limits=FlowLimits(max_running_per_partition=1)))
        self.payloads: dict[int, bytes] = {}  # of jobs that have not ended
        self.sizes = 0

    def running(self) -> list[LiveJob]:
        return self.worker.running.jobs()

    def live(self) -> list[LiveJob]:
        return sorted(self.engine.jobs.values(), key=lambda job: job.id)

    # Clients and operators

    @rule(
        function=FUNCTIONS, key=KEYS, priority=PRIORITIES, delay=DELAYS, partition=PARTITIONS,
        background=st.sampled_from([True, True, True, False]), duplicate=st.sampled_from(Duplicate),
        count=st.integers(1, 4),
    )  # fmt: skip
    def submit(
        self, function: bytes, key: bytes, priority: int, delay: float | None, partition: bytes, background: bool,
        duplicate: Duplicate, count: int,
    ) -> None:  # fmt: skip
        for _ in range(count):
            self.sizes += 1
            payload = b"%d:" % self.sizes + bytes(self.sizes % 50)
            run_at = 0.0 if delay is None else self.engine.now + delay
            before = self.engine.unique_jobs.get(function, key) if key else None
            replaced = before is None or (duplicate is Duplicate.REPLACE and before.state is not JobState.RUNNING)
            job = self.engine.submit(
                function, key, payload, priority, background, None, run_at, "test", duplicate=duplicate,
                partition=partition,
            )  # fmt: skip
            if replaced:
                self.payloads[job.id] = payload

    @precondition(lambda self: self.live())
    @rule(which=INDEX, what=st.sampled_from(["cancel", "run_now", "keep_result", "claim_scheduled"]))
    def act(self, which: int, what: str) -> None:
        job = self.live()[which % len(self.live())]
        if what == "claim_scheduled":
            was_cold, was_scheduled = job.is_cold, job.state is JobState.SCHEDULED
            claimed = self.engine.claim_scheduled(self.worker, job)
            assert claimed is None or (was_scheduled and not was_cold)
        else:
            getattr(self.engine, what)(job)

    @precondition(lambda self: self.engine.dead)
    @rule(which=INDEX, retry=st.booleans())
    def act_on_dead(self, which: int, retry: bool) -> None:
        dead = sorted(self.engine.dead.values(), key=lambda job: job.id)
        try:
            (self.engine.retry if retry else self.engine.delete)(dead[which % len(dead)])
        except DuplicateKeyError:
            pass

    @rule(paused=st.booleans(), function=FUNCTIONS)
    def pause(self, paused: bool, function: bytes) -> None:
        (self.engine.pause if paused else self.engine.resume)(function)

    @rule(seconds=st.sampled_from([0.0, 1.0, 4.0]))
    def tick(self, seconds: float) -> None:
        self.engine.tick(self.engine.now + seconds)

    # The store

    @rule(budget=st.none() | BUDGETS)
    def commit(self, budget: int | None) -> None:
        if budget is not None:
            self.engine.payloads.budget = budget
        saved, self.journal.saved = self.journal.saved, []
        self.engine.payloads.committed(saved)
        assert all(job.is_cold for job in saved if self.engine.dead.get(job.id) is job), "a dead job needs no memory"
        if self.engine.payloads.budget == 1:
            warm = [job for job in saved if self.engine.jobs.get(job.id) is job and not job.is_cold]
            assert all(job.state is JobState.RUNNING for job in warm if job.background)

    @precondition(lambda self: self.reader.asked)
    @rule(how=st.sampled_from(["all", "all", "all", "first", "error"]))
    def read_ends(self, how: str) -> None:
        queue, jobs = self.reader.asked.pop(0)
        if how == "error":
            self.engine.payloads.failed(queue, jobs[0].function)
            return
        jobs = jobs[:1] if how == "first" else jobs
        self.engine.payloads.arrived(queue, jobs, self.read(jobs))

    def read(self, jobs: Sequence[LiveJob]) -> list[bytes | None]:
        return [self.journal.payloads.get(job.id) for job in jobs]

    @precondition(lambda self: any(job.is_cold for job in self.engine.jobs.values()))
    @rule(which=INDEX)
    def payload_is_gone(self, which: int) -> None:
        """Somebody has deleted a row: when it is read, the job ends, and the others go on."""
        cold = [job for job in self.live() if job.is_cold]
        job = cold[which % len(cold)]
        queue = self.engine.functions[job.function].queues[job.priority]
        asked = queue.is_reading
        assert self.engine.payloads.arrived(queue, [job], [None]) == [job]
        queue.is_reading = asked
        assert (job.state, job.reason) == (JobState.CANCELLED, "its payload is no longer in the store")

    # Workers

    @rule(times=st.integers(1, 4))
    def claim(self, times: int) -> None:
        for _ in range(times):
            heads = {
                (name, priority): queue.first()
                for name, function in self.engine.functions.items()
                for priority, queue in enumerate(function.queues)
            }
            job = self.engine.claim(self.worker)
            if job is not None:
                assert job is heads[job.function, job.priority], "the order does not depend on where payloads are"
                for priority in range(job.priority):
                    queue = self.engine.functions[job.function].queues[priority]
                    assert queue.is_held or not queue.size, "nor do priorities"
                assert job.payload == self.payloads[job.id]
                assert job.handle == b"H:localhost:%d" % job.id

    @rule()
    def sleep(self) -> None:
        self.engine.sleep(self.sleeper)

    @precondition(lambda self: self.running())
    @rule(
        which=INDEX, how=st.sampled_from(["complete", "complete", "fail", "retry", "hand_back", "reschedule", "leave"])
    )
    def end(self, which: int, how: str) -> None:
        engine, worker = self.engine, self.worker
        job = self.running()[which % len(self.running())]
        if how == "complete":
            engine.complete(worker, job, b"")
        elif how == "fail":
            engine.fail(worker, job)
        elif how == "retry":
            engine.fail(worker, job, retry=True)
        elif how == "hand_back":
            engine.hand_back(worker, job)
        elif how == "reschedule":
            engine.reschedule(worker, job, engine.now + 1.0)
        else:
            engine.remove_worker(worker)
            for name in (b"f", b"g"):
                engine.register(worker, name)

    @rule()
    def drain(self) -> None:
        """Everything that is asked for is read: then the worker gets every job that no pause and no limit holds."""
        for _ in range(1000):
            self.claim(1)
            while self.reader.asked:
                self.read_ends("all")
                self.claim(1)
            if not self.running():
                break
            self.engine.complete(self.worker, self.running()[0], b"")
        for function in self.engine.functions.values():
            if not function.resting:
                assert not function.queued, "no job waits for ever"

    # What must hold after every step

    @invariant()
    def counters_equal_a_recount(self) -> None:
        audit(self.engine, [self.worker, self.sleeper])

    @invariant()
    def every_payload_is_in_memory_or_on_disk(self) -> None:
        for job in (*self.engine.jobs.values(), *self.engine.dead.values()):
            payload = self.journal.payloads[job.id] if job.is_cold else job.payload
            assert payload == self.payloads[job.id]
            assert len(payload) == job.payload_size
        for job, payload in self.journal.failed_jobs:
            assert payload == self.payloads[job.id]

    @invariant()
    def a_queue_that_waits_is_being_read(self) -> None:
        """A crew that has left out a queue because of its first payload hears of it when that is read."""
        asked = {id(queue) for queue, _ in self.reader.asked}
        for function in self.engine.functions.values():
            for queue in function.queues:
                assert queue.is_reading == (id(queue) in asked)


TestColdJobs = ColdJobsMachine.TestCase
TestColdJobs.settings = examples(200, stateful_step_count=60)
