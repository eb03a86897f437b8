"""The engine and a naive model of it live through the same day, and everybody hears the same.

Hypothesis makes up what clients, workers, operators and the clock do. After every step: whatever was said to
any worker, watcher or the journal is equal on both sides; every job is where the model has it; the books
equal a recount (audit.py); and what the journal heard is enough to rebuild every background job.
"""

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from geartrain.engine import deadlines, queue
from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.policy import Policy
from geartrain.errors import DuplicateKeyError, QueueFullError
from geartrain.model import Duplicate, Expiry, JobState
from tests.property.audit import audit
from tests.property.loud import Heard, LoudJournal, LoudWatcher, LoudWorker, Row
from tests.property.naive.records import NEVER, NaiveJob, NaiveWatcher, NaiveWorker
from tests.property.naive.verbs import Naive

# Sixteenths of a second, so that sums of times are exact and the same time comes up often.
TIMES = st.sampled_from([0.0, 0.0625, 0.125, 1.0, 2.0, 5.0])
TIMEOUTS = st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0])
GRACE = 0.0625
FUNCTIONS = st.sampled_from([b"f", b"f", b"g", b"b", b"b"])  # b is for broadcast
KEYS = st.sampled_from([b"", b"k", b"k", b"l"])
PRIORITIES = st.sampled_from([1, 1, 1, 0, 2])
WORKER_MANNERS = st.sampled_from(["slow", "slow", "quick", "parked", "swift"])
INDEX = st.integers(0, 15)
DELAYS = st.sampled_from([None, None, None, -2.0, -1.0, 0.0, 1.0, 2.0])
MISHAPS = (
    "cancel", "retract", "unwatch_all", "unregister", "leave", "leave", "stop_sleeping", "pause", "pause",
    "drop", "limit",
)  # fmt: skip
EXPIRIES = st.sampled_from(Expiry)

Crowd = list[tuple[str, list[tuple[bytes, float, Expiry]]]]  # the manner and the abilities of each worker
CROWDS = st.lists(
    st.tuples(WORKER_MANNERS, st.lists(st.tuples(FUNCTIONS, TIMEOUTS, EXPIRIES), min_size=1, max_size=3)),
    min_size=3,
    max_size=5,
)


class EngineDay(RuleBasedStateMachine):
    """Every verb, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: Heard = defaultdict(list)
        self.watchers: list[LoudWatcher] = []
        self.workers: list[LoudWorker] = []
        self.handed: list[bytes] = []
        self.age = 0  # steps since the last restart

    @initialize(
        wake_count=st.sampled_from([1, 1, 2]),
        max_attempts=st.sampled_from([0, 1, 1, 2]),
        workers=CROWDS,
        watchers=st.lists(st.sampled_from(["quiet", "again", "angry"]), min_size=2, max_size=3),
    )
    def begin(self, wake_count: int, max_attempts: int, workers: Crowd, watchers: list[str]) -> None:
        self.policy = Policy(
            max_attempts, wake_count, GRACE, retry_delay=1.0, dead_foreground_limit=1, moves_per_tick=3
        )
        self.journal = LoudJournal(self)
        self.engine = Engine(self.policy, journal=self.journal)
        self.naive = Naive(max_attempts, wake_count, GRACE, dead_limit=1, moves_per_tick=3)
        self.naive.handed = self.handed
        self.engine.now = self.naive.now = 1000.0
        self.open_doors(workers, watchers)

    @precondition(lambda self: self.age > 25)
    @rule(workers=CROWDS)
    def restart(self, workers: Crowd) -> None:
        """The server is killed and started again: nothing is left but what the journal heard."""
        self.age = 0
        kept = sorted(self.journal.kept.items(), key=lambda item: (item[1].run_at, item[1].id))
        self.naive.restart([handle for handle, _ in kept], {handle: row.attempts for handle, row in kept})
        now = self.engine.now
        self.engine = Engine(self.policy, first_id=self.engine.next_id, journal=self.journal)
        self.engine.now = now
        for handle, row in kept:
            self.engine.restore(row.job(handle))
        self.open_doors(workers, [watcher.twin.manner for watcher in self.watchers])

    def open_doors(self, workers: Crowd, watchers: list[str]) -> None:
        twins = [NaiveWatcher(number, manner) for number, manner in enumerate(watchers)]
        self.watchers = [LoudWatcher(self, twin) for twin in twins]
        self.naive.workers = [NaiveWorker(number, manner) for number, (manner, _) in enumerate(workers)]
        self.workers = [LoudWorker(self, twin) for twin in self.naive.workers]
        for number, (_, abilities) in enumerate(workers):
            for function, timeout, action in abilities:
                self.register(number, function, timeout, action, True)
            self.sleep([number])

    def pick(self, things: list[Any], index: int) -> Any:
        return things[index % len(things)]

    def hand_out(self, worker: LoudWorker) -> LiveJob | None:
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
    ) -> None:
        loud = None if watcher is None else self.pick(self.watchers, watcher)
        run_at = 0.0 if delay is None else self.engine.now + delay
        payload = b"%d" % self.engine.next_id
        try:
            handle = self.engine.submit(
                function, key, payload, priority, background, loud, run_at, "test", timeout, duplicate, count=1,
                keeps_result=keeps_result,
            ).handle  # fmt: skip
        except QueueFullError:
            handle = None
        twin = self.naive.submit(
            function, key, payload, priority, background, loud and loud.twin, run_at, timeout,
            duplicate is Duplicate.REPLACE, 1, keeps_result,
        )  # fmt: skip
        assert handle == (twin and twin.handle)

    @rule(
        jobs=st.lists(st.tuples(FUNCTIONS, PRIORITIES, DELAYS), min_size=2, max_size=6),
        background=st.booleans(),
        watcher=INDEX,
    )
    def submit_many(self, jobs: list[tuple[bytes, int, float | None]], background: bool, watcher: int) -> None:
        for function, priority, delay in jobs:
            self.submit(function, b"", priority, background, watcher, delay, 0.0, Duplicate.COALESCE)

    @precondition(lambda self: self.naive.alive())
    @rule(job=INDEX, watcher=INDEX, come=st.booleans())
    def audience(self, job: int, watcher: int, come: bool) -> None:
        twin, loud = self.pick(self.naive.alive(), job), self.pick(self.watchers, watcher)
        if come:
            self.engine.watch(self.engine.jobs.get(twin.number), loud)
            self.naive.join(twin, False, loud.twin)
        else:
            self.engine.unwatch(self.engine.jobs.get(twin.number), loud)
            self.naive.unwatch(twin, loud.twin)

    @precondition(lambda self: self.naive.alive())
    @rule(job=INDEX)
    def run_now(self, job: int) -> None:
        twin = self.pick(self.naive.alive(), job)
        self.engine.run_now(self.engine.jobs.get(twin.number))
        self.naive.run_now(twin)

    @precondition(lambda self: self.naive.alive())
    @rule(job=INDEX)
    def keep_result(self, job: int) -> None:
        twin = self.pick(self.naive.alive(), job)
        self.engine.keep_result(self.engine.jobs.get(twin.number))
        self.naive.keep_result(twin)

    # Workers

    @rule(worker=INDEX, function=FUNCTIONS, timeout=TIMEOUTS, action=EXPIRIES, broadcast=st.booleans())
    def register(self, worker: int, function: bytes, timeout: float, action: Expiry, broadcast: bool) -> None:
        loud = self.pick(self.workers, worker)
        broadcast = broadcast and function == b"b"
        self.engine.register(loud, function, timeout, action, broadcast)
        self.naive.register(loud.twin, function, timeout, action, broadcast)

    def busy(self) -> list[LoudWorker]:
        """Those who have something to lose, or everybody."""
        return [loud for loud in self.workers if loud.twin.holding or loud.twin.invited] or self.workers

    @rule(worker=INDEX, times=st.integers(1, 4))
    def claim(self, worker: int, times: int) -> None:
        loud = self.pick(self.workers, worker)
        for _ in range(times):
            job = self.hand_out(loud)
            twin = self.naive.claim(loud.twin)
            assert (job and job.handle) == (twin and twin.handle)

    @rule(worker=INDEX, function=INDEX, priority=PRIORITIES)
    def claim_from(self, worker: int, function: int, priority: int) -> None:
        loud = self.pick(self.workers, worker)
        if loud.abilities:
            name = self.pick(list(loud.abilities), function)
            job = self.engine.claim_from(loud, name, priority)
            self.handed += [job.handle] if job is not None else []
            twin = self.naive.claim_from(loud.twin, name, priority)
            assert (job and job.handle) == (twin and twin.handle)

    @rule(workers=st.lists(INDEX, min_size=1, max_size=4))
    def sleep(self, workers: list[int]) -> None:
        for worker in workers:
            loud = self.pick(self.workers, worker)
            self.engine.sleep(loud)
            self.naive.sleep(loud.twin)

    def held(self) -> list[tuple[LoudWorker, NaiveJob]]:
        return [(loud, twin) for loud in self.workers for twin in loud.twin.holding]

    @precondition(lambda self: self.held())
    @rule(which=INDEX, what=st.sampled_from(["progress", "data", "warning"]))
    def news(self, which: int, what: str) -> None:
        loud, twin = self.pick(self.held(), which)
        getattr(self.engine, what)(loud.runs(twin.handle), Progress(1, 2) if what == "progress" else b"news")
        for watcher in twin.watchers:
            self.naive.heard[f"watcher {watcher.number}"].append((what, twin.handle, "running"))

    @precondition(lambda self: self.held())
    @rule(which=INDEX, exception=st.booleans())
    def fail(self, which: int, exception: bool) -> None:
        loud, twin = self.pick(self.held(), which)
        job = loud.runs(twin.handle)
        if exception:
            self.engine.raise_exception(loud, job, b"oh")
            self.naive.fail(loud.twin, twin, how="exception")
        else:
            self.engine.fail(loud, job, "it said so")
            self.naive.fail(loud.twin, twin)

    @precondition(lambda self: self.held())
    @rule(which=INDEX, seconds=st.none() | TIMES)
    def hand_back_or_lease(self, which: int, seconds: float | None) -> None:
        loud, twin = self.pick(self.held(), which)
        job = loud.runs(twin.handle)
        if seconds is None:
            self.engine.hand_back(loud, job)
            self.naive.hand_back(loud.twin, twin)
        else:
            self.engine.lease(job, seconds)
            if twin.deadline == NEVER:
                twin.deadline = self.naive.now + seconds

    @precondition(lambda self: self.held())
    @rule(which=INDEX)
    def complete(self, which: int) -> None:
        loud, twin = self.pick(self.held(), which)
        self.engine.complete(loud, loud.runs(twin.handle), b"result")
        self.naive.complete(loud.twin, twin)

    @precondition(lambda self: self.held())
    @rule(which=INDEX, delay=st.none() | TIMES, step=st.integers(0, 2))
    def postpone(self, which: int, delay: float | None, step: int) -> None:
        loud, twin = self.pick(self.held(), which)
        job = loud.runs(twin.handle)
        if delay is None:
            self.engine.fail(loud, job, "not yet", retry=True)
            self.naive.fail(loud.twin, twin, retry=True)
        else:
            run_at = self.engine.now + delay
            self.engine.reschedule(loud, job, run_at, step)
            self.naive.reschedule(loud.twin, twin, run_at, step)

    # Operators and time

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
    def see_to_the_dead(self, job: int, verb: str) -> None:
        twin = self.pick(self.naive.dead(), job)
        dead = self.engine.dead[twin.number]
        if verb == "retry":
            try:
                self.engine.retry(dead)
                retried = True
            except DuplicateKeyError:
                retried = False
            assert self.naive.retry(twin) == retried
        else:
            getattr(self.engine, verb)(dead)
            self.naive.delete(twin)

    @rule(seconds=TIMES)
    def time_passes(self, seconds: float) -> None:
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
        raise AssertionError("who comes back at once must come to an end")

    # What happens less often

    @rule(what=st.sampled_from(MISHAPS), which=INDEX, function=FUNCTIONS)
    def mishap(self, what: str, which: int, function: bytes) -> None:
        getattr(self, what)(which, function)

    def cancel(self, which: int, function: bytes) -> None:
        """Cancel some of the jobs, here and there in their lines."""
        for twin in self.naive.alive()[which % 3 :: 3]:
            if twin in self.naive.alive():
                self.engine.cancel(self.engine.jobs.get(twin.number))
                self.naive.cancel(twin)

    def retract(self, which: int, function: bytes) -> None:
        """The store could not keep a job after all."""
        durable = [twin for twin in self.naive.alive() if twin.background]
        if durable:
            twin = self.pick(durable, which)
            del self.journal.kept[twin.handle]
            self.engine.retract(self.engine.jobs.get(twin.number))
            self.naive.retract(twin)

    def unwatch_all(self, which: int, function: bytes) -> None:
        loud = self.pick(self.watchers, which)
        self.engine.unwatch_all(loud)
        self.naive.unwatch_all(loud.twin)
        assert not loud.watching

    def unregister(self, which: int, function: bytes) -> None:
        loud = self.pick(self.busy(), which)
        self.engine.unregister(loud, function)
        self.naive.unregister(loud.twin, function)

    def leave(self, which: int, function: bytes) -> None:
        """Lose a worker; it comes back for one function."""
        loud = self.pick(self.busy(), which)
        self.engine.remove_worker(loud)
        self.naive.remove_worker(loud.twin)
        self.register(loud.twin.number, function, 0.0, Expiry.FAIL, True)

    def stop_sleeping(self, which: int, function: bytes) -> None:
        loud = self.pick(self.workers, which)
        self.engine.stop_sleeping(loud)
        self.naive.stop_sleeping(loud.twin)

    def pause(self, which: int, function: bytes) -> None:
        self.engine.pause(function)
        self.naive.pause(function)

    def drop(self, which: int, function: bytes) -> None:
        assert self.engine.drop(function) == self.naive.drop(function)

    def limit(self, which: int, function: bytes) -> None:
        limits = ((0, 0, 0), (6, 4, 2), (0, 5, 0))[which % 3]
        self.engine.limit(function, *limits)
        self.naive.functions[function].limits = limits

    # What must hold after every step

    @invariant()
    def everybody_heard_the_same(self) -> None:
        assert {who: words for who, words in self.heard.items() if words} == dict(self.naive.heard)
        self.age += 1
        self.heard.clear()
        self.naive.heard.clear()
        self.handed.clear()

    @invariant()
    def every_job_is_where_the_model_has_it(self) -> None:
        engine, naive = self.engine, self.naive
        assert set(engine.jobs) == {twin.number for twin in naive.alive()}
        assert engine.dead.keys() == {twin.number for twin in naive.dead()}
        for twin in naive.alive() + naive.dead():
            job = engine.find(twin.handle) or engine.find_dead(twin.handle)
            assert job is not None
            assert job.id == twin.number
            assert (job.state.name.lower(), job.payload, job.priority, job.background) == (
                twin.state, twin.payload, twin.priority, twin.background,
            )  # fmt: skip
            assert (job.run_at, job.attempts, job.count) == (twin.run_at, twin.attempts, twin.count)
            assert job.keeps_result == twin.keeps_result
            assert [watcher.twin for watcher in job.watchers or ()] == twin.watchers  # type: ignore[attr-defined]
        for loud in self.workers:
            assert [job.handle for job in loud.running.jobs()] == [twin.handle for twin in loud.twin.holding]
            assert loud.idle == (loud.twin.crew is not None and loud.twin in loud.twin.crew.asleep)
            assert (loud.forgiven or set()) == loud.twin.pardoned
        assert engine.functions.keys() == naive.functions.keys()
        assert engine.next_id == len(naive.jobs) + 1

    @invariant()
    def the_books_are_right(self) -> None:
        audit(self.engine, self.workers)
        watched = {(watcher, job) for job in self.engine.jobs.values() for watcher in job.watchers or ()}
        assert watched == {(watcher, job) for watcher in self.watchers for job in watcher.watching}

    @invariant()
    def the_journal_can_rebuild_every_background_job(self) -> None:
        durable = [job for job in [*self.engine.jobs.values(), *self.engine.dead.values()] if job.background]
        assert self.journal.kept.keys() == {job.handle for job in durable}
        for job in durable:
            # An attempt that is under way is written down only when it has come to nothing.
            possible = [job.attempts, job.attempts - 1] if job.state is JobState.RUNNING else [job.attempts]
            assert self.journal.kept[job.handle] in [Row.of(job)._replace(attempts=n) for n in possible]


@pytest.fixture(autouse=True)
def sweep_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A day is too short to leave many void places behind: sweep from the second one on."""
    monkeypatch.setattr(deadlines, "_SWEEP_FROM", 1)
    monkeypatch.setattr(queue, "_SWEEP_FROM", 1)


EngineDay.TestCase.settings = settings(max_examples=500, stateful_step_count=80)
TestEngineDay = EngineDay.TestCase
