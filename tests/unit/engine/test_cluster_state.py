"""Unique keys that hold in a whole cluster, and the lease of a server."""

import pytest

from geartrain.engine.engine import Engine, PollingWorker
from geartrain.engine.interfaces import KeyWaiter
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import CANCELLED, DEAD, QUEUED, RESERVING, RUNNING, SCHEDULED
from geartrain.model import Duplicate
from tests.unit.engine.recording import RecordingWatcher

OTHER = b"H:other:77"


class Waiter(KeyWaiter):
    def __init__(self) -> None:
        self.handles: list[bytes] = []

    def key_taken(self, handle: bytes) -> None:
        self.handles.append(handle)


@pytest.fixture
def worker(engine: Engine) -> PollingWorker:
    engine.reserves_keys = True
    worker = PollingWorker("test")
    engine.register(worker, b"f")
    return worker


def submit(engine: Engine, **options: object) -> LiveJob:
    return engine.submit(b"f", b"key", b"payload", background=True, **options)  # type: ignore[arg-type]


@pytest.mark.usefixtures("worker")
class TestKeys:
    def test_a_background_job_with_a_key_waits(self, engine: Engine, worker: PollingWorker) -> None:
        job = submit(engine)
        assert (job.state, engine.claim(worker)) == (RESERVING, None)
        assert (engine.functions[b"f"].total, engine.functions[b"f"].queued, engine.queued) == (1, 0, 1)
        engine.confirm(job)
        assert (engine.claim(worker), engine.functions[b"f"].reserving) == (job, 0)

    def test_others_do_not(self, engine: Engine) -> None:
        assert engine.submit(b"f", b"", background=True).state is QUEUED
        assert engine.submit(b"f", b"").state is QUEUED

    def test_foreground_jobs_reserve_their_keys_too(self, engine: Engine) -> None:
        job = engine.submit(b"f", b"key")
        assert (job.state, engine.held_keys) == (RESERVING, {job.id})
        engine.confirm(job)
        assert job.state is QUEUED
        engine.cancel(job)
        assert engine.held_keys == set()

    def test_a_job_for_later_is_scheduled_when_it_is_confirmed(self, engine: Engine) -> None:
        job = submit(engine, run_at=engine.now + 60)
        engine.confirm(job)
        assert (job.state, engine.scheduled) == (SCHEDULED, 1)

    def test_a_ceded_job_is_gone_and_its_submitters_hear_of_the_other(self, engine: Engine) -> None:
        job, waiter = submit(engine), Waiter()
        engine.wait_for_key(job, waiter)
        engine.cede(job, OTHER)
        assert (waiter.handles, job.state, engine.find(job.handle)) == ([OTHER], CANCELLED, None)
        assert (engine.functions[b"f"].total, len(engine.unique_jobs)) == (0, 0)

    def test_clients_that_wait_for_a_ceded_job_keep_it(
        self, engine: Engine, worker: PollingWorker, watcher: RecordingWatcher
    ) -> None:
        job = submit(engine)
        assert engine.submit(b"f", b"key", watcher=watcher) is job
        engine.cede(job, OTHER)
        assert not job.background
        assert engine.claim(worker) is job

    def test_a_job_that_runs_already_goes_on_in_the_foreground(self, engine: Engine, worker: PollingWorker) -> None:
        job = submit(engine)
        engine.confirm(job)
        engine.claim(worker)
        engine.cede(job, OTHER)
        assert (job.state, job.background) == (RUNNING, False)

    def test_a_job_that_is_replaced_goes_on_waiting(self, engine: Engine, worker: PollingWorker) -> None:
        submit(engine)
        replaced = submit(engine, duplicate=Duplicate.REPLACE)
        assert (replaced.state, engine.functions[b"f"].reserving) == (RESERVING, 1)
        engine.confirm(replaced)
        assert engine.claim(worker) is replaced

    def test_cancelling_and_retracting(self, engine: Engine) -> None:
        for end in (engine.cancel, engine.retract):
            job = submit(engine)
            end(job)  # type: ignore[operator]
            assert (job.state, engine.functions[b"f"].reserving, len(engine.unique_jobs)) == (CANCELLED, 0, 0)

    def test_a_job_that_arrives_with_the_key_takes_the_place(self, engine: Engine, worker: PollingWorker) -> None:
        """This server has taken it over while its own job waited for the store."""
        job, waiter = submit(engine), Waiter()
        engine.wait_for_key(job, waiter)
        engine.restore(LiveJob(77, OTHER, b"f", b"key", b"", 1, True, 1.0, 1.0, "gearman"))
        assert (waiter.handles, engine.find(job.handle)) == ([OTHER], None)
        found = engine.claim(worker)
        assert found is not None
        assert (found.handle, found.unique) == (OTHER, b"key")

    def test_a_dead_job_whose_key_is_taken_stays_dead(self, engine: Engine, worker: PollingWorker) -> None:
        job = submit(engine)
        engine.confirm(job)
        engine.claim(worker)
        engine.mark_dead(job, "gave up")
        before = (job.reason, job.code, job.attempts)
        engine.retry(job)
        assert (job.state, engine.dead) == (RESERVING, {})
        engine.cede(job, OTHER)
        assert (job.state, (job.reason, job.code, job.attempts)) == (DEAD, before)
        assert (engine.find_dead(job.handle), engine.dead_counts) == (job, {b"f": 1})
        engine.retry(job)
        engine.confirm(job)
        assert engine.claim(worker) is job


class TestLease:
    def test_background_jobs_rest_and_foreground_functions_go_on(self, engine: Engine, worker: PollingWorker) -> None:
        engine.register(worker, b"g")
        background = engine.submit(b"f", background=True)
        engine.lapse()
        later = engine.submit(b"g")
        assert engine.claim(worker) is later
        assert engine.claim(worker) is None
        engine.submit(b"g", background=True)
        assert engine.claim(worker) is None, "nor one that is submitted meanwhile"
        engine.renew(engine.now + 10)
        assert engine.claim(worker) in (background, *engine.jobs.values())
        assert engine.claim(worker) is not None

    def test_an_operators_pause_outlives_the_lapse(self, engine: Engine, worker: PollingWorker) -> None:
        engine.submit(b"f", background=True)
        engine.lapse()
        engine.pause(b"f")
        engine.renew(engine.now + 10)
        assert engine.claim(worker) is None
        engine.resume(b"f")
        assert engine.claim(worker) is not None

    def test_a_lapse_outlives_an_operators_pause(self, engine: Engine, worker: PollingWorker) -> None:
        engine.submit(b"f", background=True)
        engine.pause(b"f")
        engine.lapse()
        engine.resume(b"f")
        assert engine.claim(worker) is None
        engine.renew(engine.now + 10)
        assert engine.claim(worker) is not None

    def test_a_renewal_that_is_over_already_renews_nothing(self, engine: Engine, worker: PollingWorker) -> None:
        engine.submit(b"f", background=True)
        engine.lapse()
        engine.renew(engine.now - 1)
        assert engine.claim(worker) is None

    def test_the_lease_does_not_follow_the_wall_clock(self, engine: Engine) -> None:
        engine.renew(engine.now + 10)
        engine.clock_moved(-3600.0)
        assert engine.lapse_at == engine.now + 10 - 3600.0
