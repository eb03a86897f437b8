"""The engine's state stays consistent; restoring jobs after a restart."""

import pytest

from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Journal
from geartrain.engine.job import LiveJob
from geartrain.engine.policy import Policy
from geartrain.model import JobState, Priority
from tests.unit.engine.recording import NOW, RecordingJournal, RecordingWatcher, claim, hire, payloads


def test_defaults_of_a_new_engine() -> None:
    engine = Engine()
    assert engine.policy == Policy()
    assert isinstance(engine.journal, Journal)
    assert (list(engine.jobs), engine.dead, engine.functions, engine.crews, engine.running) == ([], {}, {}, {}, 0)
    assert engine.deadline() == float("inf")


def test_a_function_is_made_once(engine: Engine) -> None:
    made = engine.function(b"f")
    assert engine.function(b"f") is made
    assert engine.functions == {b"f": made}


def test_a_job_is_in_one_place_through_its_whole_life(engine: Engine) -> None:
    watcher = RecordingWatcher()
    worker = hire(engine, b"f", timeout=60.0)
    job = engine.submit(b"f", b"key", watcher=watcher, background=True, run_at=NOW + 1)
    f = engine.functions[b"f"]

    def places() -> tuple[int, int, int, int, int, int]:
        return (
            len(engine.schedule),
            f.queues[Priority.NORMAL].size,
            len(worker.running),
            len(engine.leases),
            len(engine.jobs),
            len(engine.dead),
        )

    assert places() == (1, 0, 0, 0, 1, 0)
    engine.tick(NOW + 1)
    assert places() == (0, 1, 0, 0, 1, 0)
    claim(engine, worker)
    assert places() == (0, 0, 1, 1, 1, 0)
    engine.reschedule(worker, job, NOW + 2)
    assert places() == (1, 0, 0, 0, 1, 0)
    engine.tick(NOW + 2)
    claim(engine, worker)
    engine.policy.max_attempts = 1
    engine.unregister(worker, b"f")
    assert places() == (0, 0, 0, 0, 0, 1)
    engine.retry(job)
    assert places() == (0, 1, 0, 0, 1, 0)
    engine.cancel(job)
    assert places() == (0, 0, 0, 0, 0, 0)
    assert job.state is JobState.CANCELLED


def test_every_priority_has_its_own_queue(engine: Engine) -> None:
    for priority in Priority:
        for _ in range(priority + 1):
            engine.submit(b"f", priority=priority, background=True)
    assert [queue.size for queue in engine.functions[b"f"].queues] == [1, 2, 3]


def test_a_worker_that_changes_crews_is_idle_in_one_of_them(engine: Engine) -> None:
    worker = hire(engine, b"f", asleep=True)
    for function in (b"g", b"h"):
        engine.register(worker, function)
    engine.unregister(worker, b"f")
    assert worker.crew is not None
    assert list(worker.crew.idle) == [worker]
    assert {function.name for function in worker.crew.functions} == {b"g", b"h"}
    assert [entry.crew for entry in engine.functions[b"f"].idle_crews] == []
    assert [entry.crew for entry in engine.functions[b"g"].idle_crews] == [worker.crew]


def test_a_planned_wake_survives_a_pause(engine: Engine) -> None:
    hire(engine, b"f", asleep=True)
    second = hire(engine, b"f", asleep=True)
    engine.submit(b"f", background=True)
    engine.pause(b"f")
    assert engine.tick(NOW + 1) == float("inf")
    assert second.woken == 0
    engine.resume(b"f")
    assert second.woken == 1
    assert engine.tick(NOW + 1) == NOW + 1.05


def test_a_shorter_grace_applies_to_later_jobs(engine: Engine) -> None:
    engine.policy.wake_grace = 3600.0
    for _ in range(2):
        hire(engine, b"f", asleep=True)
    engine.submit(b"f", background=True)
    engine.policy.wake_grace = 0.05
    hire(engine, b"g", asleep=True)
    second = hire(engine, b"g", asleep=True)
    engine.submit(b"g", background=True)
    assert engine.tick(NOW) == NOW + 0.05
    engine.tick(NOW + 0.05)
    assert second.woken == 1


def test_a_grace_of_zero_wakes_all_workers_in_the_same_tick(engine: Engine) -> None:
    engine.policy.wake_grace = 0.0
    workers = [hire(engine, b"f", asleep=True) for _ in range(5)]
    engine.submit(b"f", background=True)
    engine.tick(NOW)
    assert [worker.woken for worker in workers] == [1] * 5
    assert engine.deadline() == float("inf")


def test_a_clock_that_steps_back_does_not_delay_planned_wakes(engine: Engine) -> None:
    for _ in range(2):
        hire(engine, b"f", asleep=True)
    engine.submit(b"f", background=True)
    engine.now = NOW - 3600
    hire(engine, b"g", asleep=True)
    second = hire(engine, b"g", asleep=True)
    engine.submit(b"g", background=True)
    assert engine.deadline() <= NOW - 3600 + 0.05
    engine.tick(engine.deadline())
    assert second.woken == 1


# Jobs from before


def from_before(id: int, run_at: float, unique: bytes = b"", state: JobState = JobState.QUEUED) -> LiveJob:
    job = LiveJob(id, b"H:old:%d" % id, b"f", unique, b"%d" % id, 1, True, run_at, run_at, "test")
    job.state, job.attempts = state, 3
    return job


def test_restored_jobs_keep_their_state_and_order(engine: Engine, journal: RecordingJournal) -> None:
    for id, run_at in ((1, NOW - 9), (2, NOW - 5), (4, NOW - 5), (3, NOW + 5)):
        engine.restore(from_before(id, run_at))
    engine.restore(from_before(5, NOW - 7, state=JobState.DEAD))
    assert journal.entries == [], "the store knows them already"
    assert [job.handle for job in engine.dead.values()] == [b"H:old:5"]
    worker = hire(engine, b"f")
    assert payloads(engine, worker) == [b"1", b"2", b"4"]
    engine.tick(NOW + 5)
    job = claim(engine, worker)
    assert (job.payload, job.attempts) == (b"3", 4)


def test_restored_jobs_are_found_by_any_handle(engine: Engine) -> None:
    odd = [from_before(id, NOW - 1, state=state) for id, state in ((7, JobState.QUEUED), (8, JobState.DEAD))]
    odd[0].handle, odd[1].handle = b"H:old:8", b"my own"
    for job in odd:
        engine.restore(job)
    assert engine.find(b"H:old:8") is odd[0]
    assert engine.find_dead(b"my own") is odd[1]
    assert engine.find(b"H:old:7") is engine.find(b"my own") is engine.find_dead(b"H:old:8") is None


@pytest.mark.parametrize(
    "handle", [b"", b":", b"H:localhost:01", b"H:other:1", b"1", b"H:localhost:-1", b"H:localhost:" + b"9" * 5000]
)
def test_a_handle_must_match_completely(engine: Engine, handle: bytes) -> None:
    assert engine.submit(b"f", background=True).handle == b"H:localhost:1"
    assert engine.find(handle) is None


def test_the_unique_key_of_a_restored_job_is_in_use(engine: Engine) -> None:
    job = from_before(1, NOW - 1, b"key")
    engine.restore(job)
    assert engine.submit(b"f", b"key", background=True) is job
    engine.restore(from_before(2, NOW - 1, b"gone", state=JobState.DEAD))
    assert engine.submit(b"f", b"gone", background=True).handle != b"H:old:2"


def test_a_restored_duplicate_key_belongs_to_the_first_job(engine: Engine) -> None:
    first, second = from_before(1, NOW - 2, b"key"), from_before(2, NOW - 1, b"key")
    engine.restore(first)
    engine.restore(second)
    assert engine.find_unique(b"key") is first
    worker = hire(engine, b"f")
    for job in (first, second):
        assert claim(engine, worker) is job
        engine.complete(worker, job, b"")
    assert not engine.jobs
    assert not engine.unique_jobs


def test_a_restored_dead_job_can_be_retried_and_deleted(engine: Engine, journal: RecordingJournal) -> None:
    one, two = (from_before(id, NOW - 1, state=JobState.DEAD) for id in (1, 2))
    engine.restore(one)
    engine.restore(two)
    engine.delete(one)
    engine.retry(two)
    assert journal.calls == [("finished", one.handle), ("changed", two.handle)]
    assert payloads(engine, hire(engine, b"f")) == [b"2"]
