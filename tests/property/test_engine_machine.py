"""A state machine drives the engine and a naive model of it with the same steps.

Hypothesis generates the steps of clients, workers, operators and the clock. After every step, both have made the same
calls to workers, watchers and the journal; every job has the same state in both; the engine's counters equal a recount
(audit.py); and what was journalled is enough to restore every background job.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from geartrain.engine import deadlines, queue
from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.limits import FlowLimits
from geartrain.engine.policy import JOB_BYTES, FunctionPolicy, Policy
from geartrain.errors import DuplicateKeyError, QueueFullError
from geartrain.model import Duplicate, Expiry, FailureAction, JobState, pack_parents
from geartrain.rates import Rate
from tests.property.audit import audit
from tests.property.naive.records import NEVER, NaiveJob, NaiveWatcher, NaiveWorker
from tests.property.naive.verbs import Naive
from tests.property.recording import Heard, RecordingJournal, RecordingWatcher, RecordingWorker, Row
from tests.support.examples import examples

# Sixteenths of a second, so that sums of times are exact and the same time comes up often.
TIMES = st.sampled_from([0.0, 0.0625, 0.125, 1.0, 2.0, 5.0])
TIMEOUTS = st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0])
GRACE = 0.0625
FUNCTIONS = st.sampled_from([b"f", b"f", b"g", b"b", b"b"])  # b is for broadcast
KEYS = st.sampled_from([b"", b"k", b"k", b"l", b"p:k", b":l"])
PARTITIONS = st.sampled_from([b"", b"", b"p", b"p", b"q", b"r"])
FEW = st.sampled_from([0, 0, 1, 1, 2])
RATES = st.sampled_from([None, None, Rate(0.0625), Rate(0.5), Rate(1.0, 4), Rate(2.0, 3)])
LIMITS = st.just(FlowLimits()) | st.builds(FlowLimits, FEW, FEW, RATES, RATES, st.sampled_from([b"", b":"]))
PRIORITIES = st.sampled_from([1, 1, 1, 0, 2])
WORKER_MANNERS = st.sampled_from(["slow", "slow", "quick", "parked", "swift"])
INDEX = st.integers(0, 15)
LIVES = st.sampled_from([None, None, None, None, 0.0625, 1.0, 2.0])  # seconds until a job expires
DELAYS = st.sampled_from([None, None, None, -2.0, -1.0, 0.0, 1.0, 2.0])
RARE_EVENTS = (
    "cancel", "retract", "unwatch_all", "unregister", "leave", "leave", "stop_sleeping", "pause", "pause",
    "drop", "limit", "forget", "step_clock", "step_clock", "all_sleep", "all_sleep",
)  # fmt: skip
EXPIRIES = st.sampled_from(Expiry)

Crowd = list[tuple[str, list[tuple[bytes, float, Expiry]]]]  # the manner and the abilities of each worker
CROWDS = st.lists(
    st.tuples(WORKER_MANNERS, st.lists(st.tuples(FUNCTIONS, TIMEOUTS, EXPIRIES), min_size=1, max_size=3)),
    min_size=3,
    max_size=5,
)


class EngineMachine(RuleBasedStateMachine):
    """Every verb, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: Heard = defaultdict(list)
        self.watchers: list[RecordingWatcher] = []
        self.workers: list[RecordingWorker] = []
        self.handed: list[bytes] = []
        self.age = 0  # steps since the last restart

    @initialize(
        wake_count=st.sampled_from([1, 1, 2]),
        max_attempts=st.sampled_from([0, 1, 1, 2]),
        workers=CROWDS,
        watchers=st.lists(st.sampled_from(["quiet", "again", "angry"]), min_size=2, max_size=3),
        max_jobs=st.sampled_from([5, 10, 1000, 1000, 1000]),
        failures=st.sampled_from(FailureAction),
        limits=LIMITS,
    )
    def begin(
        self,
        wake_count: int,
        max_attempts: int,
        workers: Crowd,
        watchers: list[str],
        max_jobs: int,
        failures: FailureAction,
        limits: FlowLimits,
    ) -> None:
        most = max_jobs * (JOB_BYTES + 2)
        self.policy = Policy(
            max_attempts=max_attempts,
            wake_count=wake_count,
            wake_grace=GRACE,
            retry_delay=1.0,
            dead_foreground_limit=1,
            moves_per_tick=3,
            max_queued_bytes=most,
            failures=failures,
        )
        self.journal = RecordingJournal(self)
        self.engine = Engine(self.policy, journal=self.journal)
        self.naive = Naive(max_attempts, wake_count, GRACE, dead_limit=1, moves_per_tick=3, max_queued_bytes=most)
        self.naive.handed = self.handed
        self.naive.failures = failures
        self.engine.now = self.naive.now = 1000.0
        self.set_limits(b"f", limits)
        self.connect_peers(workers, watchers)

    @precondition(lambda self: self.age > 25)
    @rule(workers=CROWDS, limits_first=st.booleans())
    def restart(self, workers: Crowd, limits_first: bool) -> None:
        """The server is killed and started again: only what was journalled is left, and the settings of functions."""
        self.age = 0
        kept = sorted(self.journal.kept.items(), key=lambda item: (item[1].run_at, item[1].id))
        limits = {
            name: function.flow for name, function in self.naive.functions.items() if function.flow != FlowLimits()
        }
        self.naive.restart(dict(kept), limits if limits_first else {})
        now = self.engine.now
        self.engine = Engine(self.policy, first_id=self.engine.next_id, journal=self.journal)
        self.engine.now = now
        for name, its_limits in limits.items() if limits_first else ():
            self.engine.configure(name, FunctionPolicy(limits=its_limits))
        for handle, row in kept:
            self.engine.restore(row.job(handle))
        self.engine.settle()
        for name, its_limits in limits.items() if not limits_first else ():
            self.set_limits(name, its_limits)
        self.connect_peers(workers, [watcher.model.manner for watcher in self.watchers])

    def connect_peers(self, workers: Crowd, watchers: list[str]) -> None:
        models = [NaiveWatcher(number, manner) for number, manner in enumerate(watchers)]
        self.watchers = [RecordingWatcher(self, model) for model in models]
        self.naive.workers = [NaiveWorker(number, manner) for number, (manner, _) in enumerate(workers)]
        self.workers = [RecordingWorker(self, model) for model in self.naive.workers]
        for number, (_, abilities) in enumerate(workers):
            for function, timeout, action in abilities:
                self.register(number, function, timeout, action, True)
            self.sleep([number])

    def pick(self, things: list[Any], index: int) -> Any:
        return things[index % len(things)]

    def claim_for(self, worker: RecordingWorker) -> LiveJob | None:
        job = self.engine.claim(worker)
        if job is not None:
            assert job.run_at <= self.engine.now
            assert worker.running.get(job.handle) is job
            self.handed.append(job.handle)
        return job

    # Clients

    @rule(
        function=FUNCTIONS,
        key=KEYS,
        priority=PRIORITIES,
        background=st.booleans(),
        watcher=st.one_of(st.none(), INDEX),
        delay=DELAYS,
        timeout=TIMEOUTS,
        duplicate=st.sampled_from(Duplicate),
        keeps_result=st.booleans(),
        life=LIVES,
        partition=PARTITIONS,
        parents=st.just([]) | st.lists(INDEX, max_size=3),
        runs_anyway=st.booleans(),
    )
    def submit(
        self,
        function: bytes,
        key: bytes,
        priority: int,
        background: bool,
        watcher: int | None,
        delay: float | None,
        timeout: float,
        duplicate: Duplicate,
        keeps_result: bool = True,
        life: float | None = None,
        partition: bytes = b"",
        parents: Sequence[int] = (),
        runs_anyway: bool = False,
    ) -> None:
        durable = [job for job in [*self.naive.alive(), *self.naive.dead()] if job.background]
        chosen = list({job.number: job for job in (self.pick(durable, index) for index in parents if durable)}.values())
        real = None if watcher is None else self.pick(self.watchers, watcher)
        run_at = 0.0 if delay is None else self.engine.now + delay
        expires_at = NEVER if life is None else self.engine.now + life
        payload = b"%d" % self.engine.next_id
        try:
            handle = self.engine.submit(
                function, key, payload, priority, background, real, run_at, "test", timeout, duplicate, count=1,
                keeps_result=keeps_result, expires_at=0.0 if life is None else expires_at, partition=partition,
                after=pack_parents([job.number for job in chosen], runs_anyway),
            ).handle  # fmt: skip
        except QueueFullError:
            handle = None
        model = self.naive.submit(
            function, key, payload, priority, background, real and real.model, run_at, timeout,
            duplicate is Duplicate.REPLACE, 1, keeps_result, expires_at, partition, chosen, runs_anyway,
        )  # fmt: skip
        assert handle == (model and model.handle)

    @rule(
        jobs=st.lists(st.tuples(FUNCTIONS, PRIORITIES, DELAYS, PARTITIONS), min_size=2, max_size=6),
        background=st.booleans(),
        watcher=INDEX,
    )
    def submit_many(self, jobs: list[tuple[bytes, int, float | None, bytes]], background: bool, watcher: int) -> None:
        for function, priority, delay, partition in jobs:
            self.submit(
                function, b"", priority, background, watcher, delay, 0.0, Duplicate.COALESCE, partition=partition
            )

    @precondition(lambda self: self.naive.alive())
    @rule(job=INDEX, watcher=INDEX, come=st.booleans())
    def watch_or_unwatch(self, job: int, watcher: int, come: bool) -> None:
        model, real = self.pick(self.naive.alive(), job), self.pick(self.watchers, watcher)
        if come:
            self.engine.watch(self.engine.jobs.get(model.number), real)
            self.naive.join(model, False, real.model)
        else:
            self.engine.unwatch(self.engine.jobs.get(model.number), real)
            self.naive.unwatch(model, real.model)

    @precondition(lambda self: self.naive.alive())
    @rule(job=INDEX)
    def run_now(self, job: int) -> None:
        model = self.pick(self.naive.alive(), job)
        self.engine.run_now(self.engine.jobs.get(model.number))
        self.naive.run_now(model)

    @precondition(lambda self: self.naive.alive())
    @rule(job=INDEX)
    def keep_result(self, job: int) -> None:
        model = self.pick(self.naive.alive(), job)
        self.engine.keep_result(self.engine.jobs.get(model.number))
        self.naive.keep_result(model)

    # Workers

    @rule(worker=INDEX, function=FUNCTIONS, timeout=TIMEOUTS, action=EXPIRIES, broadcast=st.booleans())
    def register(self, worker: int, function: bytes, timeout: float, action: Expiry, broadcast: bool) -> None:
        real = self.pick(self.workers, worker)
        broadcast = broadcast and function == b"b"
        self.engine.register(real, function, timeout, action, broadcast)
        self.naive.register(real.model, function, timeout, action, broadcast)

    def busy(self) -> list[RecordingWorker]:
        """Workers that have jobs, or all workers."""
        return [real for real in self.workers if real.model.holding or real.model.invited] or self.workers

    @rule(worker=INDEX, times=st.integers(1, 4))
    def claim(self, worker: int, times: int) -> None:
        real = self.pick(self.workers, worker)
        for _ in range(times):
            job = self.claim_for(real)
            model = self.naive.claim(real.model)
            assert (job and job.handle) == (model and model.handle)

    @rule(worker=INDEX, times=st.integers(1, 3), seconds=TIMES)
    def work(self, worker: int, times: int, seconds: float) -> None:
        """Run some jobs to their ends, and let some time pass."""
        real = self.pick(self.workers, worker)
        for _ in range(times):
            self.claim(worker, 1)
            if real.model.holding:
                model = real.model.holding[-1]
                self.engine.complete(real, real.runs(model.handle), b"result")
                self.naive.complete(real.model, model)
        self.advance_clock(seconds)

    @rule(worker=INDEX, function=INDEX, priority=PRIORITIES)
    def claim_from(self, worker: int, function: int, priority: int) -> None:
        real = self.pick(self.workers, worker)
        if real.abilities:
            name = self.pick(list(real.abilities), function)
            job = self.engine.claim_from(real, name, priority)
            self.handed += [job.handle] if job is not None else []
            model = self.naive.claim_from(real.model, name, priority)
            assert (job and job.handle) == (model and model.handle)

    @rule(workers=st.lists(INDEX, min_size=1, max_size=4))
    def sleep(self, workers: list[int]) -> None:
        for worker in workers:
            real = self.pick(self.workers, worker)
            self.engine.sleep(real)
            self.naive.sleep(real.model)

    def held(self) -> list[tuple[RecordingWorker, NaiveJob]]:
        return [(real, model) for real in self.workers for model in real.model.holding]

    @precondition(lambda self: self.held())
    @rule(which=INDEX, what=st.sampled_from(["progress", "data", "warning"]))
    def report(self, which: int, what: str) -> None:
        real, model = self.pick(self.held(), which)
        getattr(self.engine, what)(real.runs(model.handle), Progress(1, 2) if what == "progress" else b"report")
        for watcher in model.watchers:
            self.naive.heard[f"watcher {watcher.number}"].append((what, model.handle, "running"))

    @precondition(lambda self: self.held())
    @rule(which=INDEX, exception=st.booleans())
    def fail(self, which: int, exception: bool) -> None:
        real, model = self.pick(self.held(), which)
        job = real.runs(model.handle)
        if exception:
            self.engine.raise_exception(real, job, b"oh")
            self.naive.fail(real.model, model, how="exception")
        else:
            self.engine.fail(real, job, "it said so")
            self.naive.fail(real.model, model)

    @precondition(lambda self: self.held())
    @rule(which=INDEX, seconds=st.none() | TIMES)
    def hand_back_or_lease(self, which: int, seconds: float | None) -> None:
        real, model = self.pick(self.held(), which)
        job = real.runs(model.handle)
        if seconds is None:
            self.engine.hand_back(real, job)
            self.naive.hand_back(real.model, model)
        else:
            self.engine.lease(job, seconds)
            if model.deadline == NEVER:
                model.deadline = self.naive.now + seconds

    @precondition(lambda self: self.held())
    @rule(which=INDEX)
    def complete(self, which: int) -> None:
        real, model = self.pick(self.held(), which)
        self.engine.complete(real, real.runs(model.handle), b"result")
        self.naive.complete(real.model, model)

    @precondition(lambda self: self.held())
    @rule(which=INDEX, delay=st.none() | TIMES, step=st.integers(0, 2))
    def postpone(self, which: int, delay: float | None, step: int) -> None:
        real, model = self.pick(self.held(), which)
        job = real.runs(model.handle)
        if delay is None:
            self.engine.fail(real, job, "not yet", retry=True)
            self.naive.fail(real.model, model, retry=True)
        else:
            run_at = self.engine.now + delay
            self.engine.reschedule(real, job, run_at, step)
            self.naive.reschedule(real.model, model, run_at, step)

    # Operators and time

    @rule(function=FUNCTIONS, limits=LIMITS)
    def set_limits(self, function: bytes, limits: FlowLimits) -> None:
        self.engine.configure(function, FunctionPolicy(limits=limits))
        self.naive.set_limits(function, limits)

    def paused(self) -> list[bytes]:
        return [name for name, function in self.naive.functions.items() if function.paused]

    @precondition(lambda self: self.paused())
    @rule(which=INDEX)
    def resume(self, which: int) -> None:
        function = self.pick(self.paused(), which)
        self.engine.resume(function)
        self.naive.resume(function)

    @precondition(lambda self: self.naive.dead())
    @rule(job=INDEX, verb=st.sampled_from(["retry", "retry", "delete", "cancel"]))
    def retry_or_delete_dead(self, job: int, verb: str) -> None:
        model = self.pick(self.naive.dead(), job)
        dead = self.engine.dead[model.number]
        if verb == "retry":
            try:
                self.engine.retry(dead)
                retried = True
            except DuplicateKeyError:
                retried = False
            assert self.naive.retry(model) == retried
        else:
            getattr(self.engine, verb)(dead)
            self.naive.delete(model)

    @precondition(lambda self: self.journal.failed_jobs)
    @rule(which=INDEX)
    def retry_failed(self, which: int) -> None:
        """A failed job that is kept whole, as a store returns it."""
        handle = self.pick(list(self.journal.failed_jobs), which)
        job = self.journal.failed_jobs[handle].job(handle)
        job.state = JobState.FAILED
        try:
            self.engine.retry_failed(job)
            outcome = "queued"
        except DuplicateKeyError:
            outcome = "duplicate"
        except QueueFullError:
            outcome = "full"
        assert self.naive.retry_failed(self.naive.jobs[job.id - 1]) == outcome

    @rule(seconds=TIMES)
    def advance_clock(self, seconds: float) -> None:
        self.engine.now += seconds
        self.naive.now += seconds

    @precondition(lambda self: self.naive.deadline() < NEVER)
    @rule()
    def tick_when_due(self) -> None:
        self.tick(max(self.naive.deadline() - self.naive.now, 0.0))

    @rule(seconds=TIMES)
    def tick(self, seconds: float) -> None:
        now = self.engine.now + seconds
        for _ in range(50):
            deadline = self.engine.tick(now)
            assert deadline == self.naive.tick(now) == self.engine.deadline()
            if deadline > now:
                return
        raise AssertionError("ticks that are due at once must come to an end")

    # Less frequent steps

    @rule(what=st.sampled_from(RARE_EVENTS), which=INDEX, function=FUNCTIONS)
    def rare_event(self, what: str, which: int, function: bytes) -> None:
        getattr(self, what)(which, function)

    def cancel(self, which: int, function: bytes) -> None:
        """Cancel every third job, in different positions of the queues."""
        for model in self.naive.alive()[which % 3 :: 3]:
            if model in self.naive.alive():
                self.engine.cancel(self.engine.jobs.get(model.number))
                self.naive.cancel(model)

    def retract(self, which: int, function: bytes) -> None:
        """The store could not write a job."""
        durable = [model for model in self.naive.alive() if model.background]
        if durable:
            model = self.pick(durable, which)
            del self.journal.kept[model.handle]
            self.engine.retract(self.engine.jobs.get(model.number))
            self.naive.retract(model)

    def all_sleep(self, which: int, function: bytes) -> None:
        self.sleep(list(range(len(self.workers))))

    def unwatch_all(self, which: int, function: bytes) -> None:
        real = self.pick(self.watchers, which)
        self.engine.unwatch_all(real)
        self.naive.unwatch_all(real.model)
        assert not real.watching

    def unregister(self, which: int, function: bytes) -> None:
        real = self.pick(self.busy(), which)
        self.engine.unregister(real, function)
        self.naive.unregister(real.model, function)

    def leave(self, which: int, function: bytes) -> None:
        """Remove a worker; it registers again for one function."""
        real = self.pick(self.busy(), which)
        self.engine.remove_worker(real)
        self.naive.remove_worker(real.model)
        self.register(real.model.number, function, 0.0, Expiry.FAIL, True)

    def stop_sleeping(self, which: int, function: bytes) -> None:
        real = self.pick(self.workers, which)
        self.engine.stop_sleeping(real)
        self.naive.stop_sleeping(real.model)

    def pause(self, which: int, function: bytes) -> None:
        self.engine.pause(function)
        self.naive.pause(function)

    def drop(self, which: int, function: bytes) -> None:
        assert self.engine.drop(function) == self.naive.drop(function)

    def step_clock(self, which: int, function: bytes) -> None:
        """The wall clock is set forward: running jobs keep the time that they have left."""
        seconds = (which + 1) * 0.0625
        self.engine.clock_moved(seconds)
        self.engine.now += seconds
        self.naive.step_clock(seconds)

    def forget(self, which: int, function: bytes) -> None:
        """A function that nothing uses is forgotten."""
        real = self.engine.functions.get(function)
        assert (real is not None and self.engine.is_unused(real)) == self.naive.is_unused(function)
        if real is not None and self.engine.is_unused(real):
            self.engine.forget(real)
            assert self.naive.drop(function)

    def limit(self, which: int, function: bytes) -> None:
        limits = ((0, 0, 0), (6, 4, 2), (0, 5, 0))[which % 3]
        self.engine.limit(function, *limits)
        self.naive.functions[function].limits = limits

    # What must hold after every step

    @invariant()
    def both_made_the_same_calls(self) -> None:
        assert {who: words for who, words in self.heard.items() if words} == dict(self.naive.heard)
        self.age += 1
        self.heard.clear()
        self.naive.heard.clear()
        self.handed.clear()

    @invariant()
    def every_job_has_the_state_of_the_model(self) -> None:
        engine, naive = self.engine, self.naive
        assert set(engine.jobs) == {model.number for model in naive.alive()}
        assert engine.dead.keys() == {model.number for model in naive.dead()}
        for model in naive.alive() + naive.dead():
            job = engine.find(model.handle) or engine.find_dead(model.handle)
            assert job is not None
            assert job.id == model.number
            assert (job.state.name.lower(), job.payload, job.priority, job.background) == (
                model.state, model.payload, model.priority, model.background,
            )  # fmt: skip
            assert (job.run_at, job.attempts, job.count) == (model.run_at, model.attempts, model.count)
            assert (job.keeps_result, job.partition) == (model.keeps_result, model.partition)
            assert (job.expires_at or NEVER) == model.expires_at
            assert [watcher.model for watcher in job.watchers or ()] == model.watchers  # type: ignore[attr-defined]
        for real in self.workers:
            assert [job.handle for job in real.running.jobs()] == [model.handle for model in real.model.holding]
            assert real.idle == (real.model.crew is not None and real.model in real.model.crew.asleep)
            assert (real.forgiven or set()) == real.model.forgiven
        assert engine.functions.keys() == naive.functions.keys()
        assert engine.next_id == len(naive.jobs) + 1

    @invariant()
    def every_limit_allows_the_same(self) -> None:
        now = self.naive.now
        for name, model in self.naive.functions.items():
            function = self.engine.functions[name]
            assert function.full == model.full
            if function.flow is not None:
                assert max(function.flow.next_at, now) == model.full_at(now)
            if function.partitions is not None:
                partitions = function.partitions.by_name
                assert list(partitions) == list(model.partitions)
                for key, partition in partitions.items():
                    assert partition.held == model.partitions[key].held
                    assert max(partition.next_at, now) == model.partitions[key].full_at(now)

    @invariant()
    def counters_equal_a_recount(self) -> None:
        audit(self.engine, self.workers)
        watched = {(watcher, job) for job in self.engine.jobs.values() for watcher in job.watchers or ()}
        assert watched == {(watcher, job) for watcher in self.watchers for job in watcher.watching}

    @invariant()
    def the_journal_can_rebuild_every_background_job(self) -> None:
        durable = [job for job in [*self.engine.jobs.values(), *self.engine.dead.values()] if job.background]
        assert self.journal.kept.keys() == {job.handle for job in durable}
        for job in durable:
            # The attempt of a running job is journalled only when it has failed.
            possible = [job.attempts, job.attempts - 1] if job.state is JobState.RUNNING else [job.attempts]
            kept = self.journal.kept[job.handle]
            # So is the time at which a job that waited for others could run.
            run_at = kept.run_at if job.after else job.run_at
            assert kept in [Row.of(job)._replace(attempts=n, run_at=run_at) for n in possible]


@pytest.fixture(autouse=True)
def sweep_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is too short to leave many stale entries: remove them from the second one on."""
    monkeypatch.setattr(deadlines, "_SWEEP_FROM", 1)
    monkeypatch.setattr(queue, "_SWEEP_FROM", 1)


EngineMachine.TestCase.settings = examples(500, stateful_step_count=80)
TestEngineMachine = EngineMachine.TestCase
