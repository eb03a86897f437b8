"""Submitting jobs: limits, unique keys, times."""

import pytest

from geartrain.engine.engine import Engine
from geartrain.engine.policy import JOB_BYTES, Policy
from geartrain.engine.worker import BuiltinWorker
from geartrain.errors import QueueFullError
from geartrain.model import Duplicate, JobState, Priority
from tests.unit.engine.recording import (
    ALIVE,
    NOW,
    OVER,
    RecordingJournal,
    RecordingWatcher,
    claim,
    hire,
    job_in,
    payloads,
)


def test_a_new_job_is_as_it_was_submitted(engine: Engine, watcher: RecordingWatcher) -> None:
    job = engine.submit(
        b"f",
        b"key",
        b"in",
        Priority.HIGH,
        watcher=watcher,
        door="gearman",
        timeout=3.0,
        count=2,
        reducer=b"r",
    )
    assert (job.id, job.handle, job.function, job.unique, job.payload) == (
        1, b"H:localhost:1", b"f", b"key", b"in",
    )  # fmt: skip
    assert (job.priority, job.background, job.run_at, job.submitted_at) == (0, False, NOW, NOW)
    assert (job.door, job.timeout, job.count, job.reducer, job.attempts) == ("gearman", 3.0, 2, b"r", 0)
    assert (job.state, job.watchers) == (JobState.QUEUED, [watcher])


def test_handles_count_up_from_the_first_id_and_are_never_reused() -> None:
    engine = Engine(handle_prefix=b"X:pre", first_id=41)
    assert [engine.submit(b"f").handle for _ in range(2)] == [b"X:pre:41", b"X:pre:42"]
    engine.limit(b"f", 2, 2, 2)
    with pytest.raises(QueueFullError):
        engine.submit(b"f")
    for job in list(engine.jobs.values()):
        engine.cancel(job)
    assert engine.submit(b"f").handle == b"X:pre:43", "what was refused used no number up"


@pytest.mark.parametrize("first", [1, 998, 999_998, 10**15 - 2])
def test_a_handle_ends_in_the_id(first: int) -> None:
    """Also where the digits that consecutive ids share change, and when an older id is used late."""
    engine = Engine(handle_prefix=b"X", first_id=first)
    reserved = engine.reserve_id()
    handles = [engine.submit(b"f").handle for _ in range(3)]
    late = engine.submit(b"f", reserved_id=reserved).handle
    handles.append(engine.submit(b"f").handle)
    assert late == b"X:%d" % first
    assert handles == [b"X:%d" % (first + number) for number in (1, 2, 3, 4)]


def test_a_job_for_a_function_that_was_forgotten_creates_it_again(engine: Engine) -> None:
    engine.cancel(engine.submit(b"f", background=True))
    engine.forget(engine.functions[b"f"])
    engine.submit(b"f", payload=b"again", background=True)
    assert engine.functions[b"f"].queued == 1
    assert payloads(engine, hire(engine, b"f")) == [b"again"]


def test_jobs_for_functions_in_turn(engine: Engine) -> None:
    for name in (b"f", b"f", b"g", b"f"):
        engine.submit(name, background=True)
    assert {name: function.queued for name, function in engine.functions.items()} == {b"f": 3, b"g": 1}


def test_any_bytes_name_a_function(engine: Engine) -> None:
    for name in (b"", b"\xff\x80", b"f" * 512):
        engine.submit(name, payload=name, background=True)
        assert payloads(engine, hire(engine, name)) == [name]


def test_a_future_time_is_scheduled_and_a_past_time_goes_first(engine: Engine) -> None:
    for payload, run_at in ((b"now", 0.0), (b"past", NOW - 5), (b"future", NOW + 5), (b"exact", NOW)):
        engine.submit(b"f", payload=payload, background=True, run_at=run_at)
    worker = hire(engine, b"f")
    assert payloads(engine, worker) == [b"past", b"now", b"exact"]
    assert engine.tick(NOW + 4.999) == NOW + 5
    assert engine.claim(worker) is None
    engine.tick(NOW + 5)
    assert payloads(engine, worker) == [b"future"]


def test_due_jobs_are_queued_in_the_order_of_their_times(engine: Engine) -> None:
    engine.submit(b"f", payload=b"at 3", background=True, run_at=NOW + 3)
    engine.submit(b"f", payload=b"at 1", background=True, run_at=NOW + 1)
    engine.now = NOW + 2
    engine.submit(b"f", payload=b"at 2", background=True)
    engine.tick(NOW + 4)
    engine.submit(b"f", payload=b"at 4", background=True)
    assert payloads(engine, hire(engine, b"f")) == [b"at 1", b"at 2", b"at 3", b"at 4"]


def test_the_limit_is_that_of_the_submitted_priority_and_counts_everything(engine: Engine) -> None:
    engine.limit(b"f", high=4, normal=2, low=1)
    worker = hire(engine, b"f")
    engine.submit(b"f", background=True)
    claim(engine, worker)
    with pytest.raises(QueueFullError) as caught:
        engine.submit(b"f", priority=Priority.LOW, background=True)
    assert str(caught.value) == "the queue of 'f' is full (1 jobs)"
    engine.submit(b"f", background=True, run_at=NOW + 9)
    with pytest.raises(QueueFullError):
        engine.submit(b"f", background=True)
    engine.submit(b"f", priority=Priority.HIGH, background=True)
    engine.submit(b"f", priority=Priority.HIGH, background=True)
    with pytest.raises(QueueFullError):
        engine.submit(b"f", priority=Priority.HIGH, background=True)
    assert engine.functions[b"f"].total == 4


def test_a_refused_job_leaves_no_trace(engine: Engine, watcher: RecordingWatcher, journal: RecordingJournal) -> None:
    engine.limit(b"f", 1, 1, 1)
    engine.submit(b"f", watcher=watcher)
    before = (list(engine.jobs.values()), set(watcher.watching), engine.next_id)
    with pytest.raises(QueueFullError):
        engine.submit(b"f", b"key", watcher=watcher, background=True)
    assert (list(engine.jobs.values()), watcher.watching, engine.next_id) == before
    assert not engine.unique_jobs
    assert journal.entries == []


@pytest.mark.parametrize("duplicate", Duplicate)
def test_duplicates_are_exempt_from_the_limit(engine: Engine, duplicate: Duplicate) -> None:
    engine.limit(b"f", 1, 1, 1)
    job = engine.submit(b"f", b"key", background=True)
    again = engine.submit(b"f", b"key", background=True, duplicate=duplicate)
    assert again.handle == job.handle


def test_other_functions_have_their_own_limits(engine: Engine) -> None:
    engine.limit(b"f", 1, 1, 1)
    engine.submit(b"f", background=True)
    engine.submit(b"g", background=True)
    engine.limit(b"f", 0, -3, 0)
    engine.submit(b"f", background=True)
    assert engine.functions[b"f"].total == 2


@pytest.mark.parametrize("state", ALIVE)
def test_a_key_of_a_waiting_or_running_job_coalesces(
    engine: Engine, watcher: RecordingWatcher, state: JobState
) -> None:
    job, _ = job_in(engine, state, RecordingWatcher())
    twin = engine.submit(b"f", b"key", b"other", Priority.HIGH, watcher=watcher, run_at=NOW + 99)
    assert twin is job
    assert (job.payload, job.priority, job.state) == (b"in", Priority.NORMAL, state)
    assert job in watcher.watching
    assert engine.functions[b"f"].total == 1


@pytest.mark.parametrize("state", [*OVER, JobState.DEAD])
def test_a_key_is_free_when_its_job_is_finished(engine: Engine, state: JobState) -> None:
    job, _ = job_in(engine, state, RecordingWatcher())
    assert not engine.unique_jobs
    assert engine.submit(b"f", b"key", background=True).handle != job.handle


def test_keys_are_per_function_and_an_empty_key_is_none(engine: Engine) -> None:
    jobs = [engine.submit(name, key, background=True) for name in (b"f", b"g") for key in (b"key", b"", b"")]
    assert len({job.handle for job in jobs}) == 6


@pytest.mark.parametrize("state", [JobState.SCHEDULED, JobState.QUEUED])
@pytest.mark.parametrize("later", [0.0, NOW + 20.0])
def test_replacing_a_waiting_job_keeps_its_handle_and_watchers(
    engine: Engine, watcher: RecordingWatcher, state: JobState, later: float
) -> None:
    old, worker = job_in(engine, state, watcher)
    second = RecordingWatcher()
    new = engine.submit(
        b"f",
        b"key",
        b"new",
        Priority.HIGH,
        watcher=second,
        run_at=later,
        timeout=7.0,
        count=3,
        duplicate=Duplicate.REPLACE,
    )
    assert (new.handle, new.id, new.payload, new.priority) == (old.handle, old.id, b"new", Priority.HIGH)
    assert (new.timeout, new.count, new.run_at) == (7.0, 3, later or NOW)
    assert new.watchers == [watcher, second]
    assert (watcher.watching, second.watching) == ({new}, {new})
    assert watcher.heard == [], "to its watchers it is still the same job"
    f = engine.functions[b"f"]
    assert (f.total, f.scheduled) == (1, 1 if later else 0)
    assert (engine.unique_jobs.get(b"f", b"key"), len(engine.unique_jobs)) == (new, 1)
    assert engine.find(old.handle) is new
    engine.tick(NOW + 60)
    assert claim(engine, worker) is new
    assert engine.claim(worker) is None, "the old one is gone"


def test_replacing_gives_a_new_position_in_the_queue(engine: Engine) -> None:
    engine.submit(b"f", b"key", b"old", background=True)
    engine.now = NOW + 1
    engine.submit(b"f", payload=b"between", background=True)
    engine.now = NOW + 2
    engine.submit(b"f", b"key", b"new", background=True, duplicate=Duplicate.REPLACE)
    assert payloads(engine, hire(engine, b"f")) == [b"between", b"new"]


def test_a_running_job_is_not_replaced(engine: Engine, watcher: RecordingWatcher, journal: RecordingJournal) -> None:
    job, worker = job_in(engine, JobState.RUNNING, RecordingWatcher(), background=True)
    same = engine.submit(b"f", b"key", b"new", watcher=watcher, duplicate=Duplicate.REPLACE)
    assert same is job
    assert (job.payload, job.owner) == (b"in", worker)
    assert journal.names == ["accepted"]
    engine.complete(worker, job, b"out")
    assert watcher.words == [("complete", b"out")]


def test_replacing_in_the_background_makes_a_foreground_job_durable(
    engine: Engine, watcher: RecordingWatcher, journal: RecordingJournal
) -> None:
    engine.submit(b"f", b"key", b"old", watcher=watcher)
    new = engine.submit(b"f", b"key", b"new", background=True, duplicate=Duplicate.REPLACE)
    assert new.background
    assert [entry.what for entry in journal.entries] == ["accepted", "changed"]
    assert journal.entries[-1].payload == b"new"
    engine.unwatch_all(watcher)
    assert engine.find(new.handle) is new


def test_the_replacing_watcher_is_called_even_if_a_worker_completes_at_once(
    engine: Engine, watcher: RecordingWatcher
) -> None:
    quick = hire(engine, b"f", asleep=True)
    engine.submit(b"f", b"key", b"old", background=True, run_at=NOW + 5)

    def do_it_at_once() -> None:
        engine.complete(quick, claim(engine, quick), b"done")

    quick.react = do_it_at_once
    engine.submit(b"f", b"key", b"new", watcher=watcher, duplicate=Duplicate.REPLACE)
    assert watcher.words == [("complete", b"done")]
    assert watcher.watching == set()


def test_find_returns_unfinished_jobs(engine: Engine) -> None:
    assert engine.find(b"H:localhost:1") is None
    for state in ALIVE:
        fresh = Engine()
        fresh.now = NOW
        job, _ = job_in(fresh, state, RecordingWatcher())
        assert fresh.find(job.handle) is job
        assert fresh.find_unique(b"key") is job
    for state in [*OVER, JobState.DEAD]:
        fresh = Engine()
        fresh.now = NOW
        job, _ = job_in(fresh, state, RecordingWatcher())
        assert fresh.find(job.handle) is None
        assert fresh.find_unique(b"key") is None


def test_find_unique_prefers_the_newest(engine: Engine) -> None:
    engine.submit(b"g", b"key", background=True)
    newest = engine.submit(b"f", b"key", background=True)
    engine.submit(b"h", b"other", background=True)
    assert engine.find_unique(b"key") is newest


def test_the_payloads_of_all_jobs_are_bounded_together() -> None:
    engine = Engine(Policy(max_queued_bytes=3 * JOB_BYTES + 100))
    first = engine.submit(b"f", payload=b"x" * 60)
    engine.submit(b"g", b"key", b"x" * 40, background=True)
    with pytest.raises(QueueFullError, match="max_queued_bytes"):
        engine.submit(b"h", payload=b"x")
    engine.submit(b"h")
    assert engine.submit(b"g", b"key", b"another") is not None, "a coalesced submission takes no more"
    with pytest.raises(QueueFullError):
        engine.submit(b"g", b"key", b"x" * 41, duplicate=Duplicate.REPLACE)
    engine.submit(b"g", b"key", b"x" * 30, duplicate=Duplicate.REPLACE)
    assert engine.queued_bytes == 3 * JOB_BYTES + 90
    engine.cancel(first)
    engine.submit(b"h", payload=b"x" * 70)


def test_a_refused_replacement_leaves_the_job_alone(watcher: RecordingWatcher) -> None:
    engine = Engine(Policy(max_queued_bytes=JOB_BYTES + 1))
    job = engine.submit(b"f", b"key", b"x", background=True)
    with pytest.raises(QueueFullError):
        engine.submit(b"f", b"key", b"xy", watcher=watcher, duplicate=Duplicate.REPLACE)
    assert (job.payload, job.watchers, engine.find(job.handle) is job) == (b"x", None, True)


class IdleBuiltin(BuiltinWorker):
    """A part of the server that never runs its jobs."""

    __slots__ = ()

    def activate(self) -> None:
        pass


def test_dead_and_restored_jobs_count_and_jobs_of_the_server_itself_always_fit() -> None:
    engine = Engine(Policy(max_attempts=1, max_queued_bytes=JOB_BYTES))
    job = engine.submit(b"f", background=True)
    worker = hire(engine, b"f")
    claim(engine, worker)
    engine.remove_worker(worker)
    assert job.state is JobState.DEAD
    with pytest.raises(QueueFullError):
        engine.submit(b"f")
    again = Engine(engine.policy)
    again.restore(job)
    assert again.queued_bytes == JOB_BYTES
    again.builtin_workers[b"control"] = IdleBuiltin("server")
    again.submit(b"control")
    assert again.queued_bytes == 2 * JOB_BYTES
    again.delete(job)
    assert again.queued_bytes == JOB_BYTES
