"""Rates, charts and percentiles from totals."""

import pytest

from geartrain.admin.history import KEPT
from geartrain.admin.latency import percentile
from geartrain.admin.service import Admin
from geartrain.engine.counters import BUCKETS, DurationHistogram
from geartrain.engine.engine import Engine
from tests.unit.admin.conftest import NOW, FakeServer
from tests.unit.engine.recording import claim, hire


def let_pass(engine: Engine, server: FakeServer, seconds: int, jobs: int = 0, took: float = 0.0) -> None:
    """Some seconds, in each of which so many jobs are done."""
    worker = hire(engine, b"f")
    for _ in range(seconds):
        for _ in range(jobs):
            engine.submit(b"f", background=True)
            job = claim(engine, worker)
            engine.now += took
            engine.complete(worker, job, b"")
            engine.now -= took
        server.now += 1.0
        engine.tick(server.now)


def test_history_has_one_sample_per_second(admin: Admin, engine: Engine, server: FakeServer) -> None:
    assert admin.history(60) == []
    let_pass(engine, server, 3, jobs=5)
    engine.submit(b"f", background=True)
    let_pass(engine, server, 1)
    history = admin.history(60)
    assert [sample.at for sample in history] == [NOW + 1, NOW + 2, NOW + 3, NOW + 4]
    assert [sample.completed for sample in history] == [5.0, 5.0, 5.0, 0.0]
    assert [sample.submitted for sample in history] == [5.0, 5.0, 5.0, 1.0]
    assert [sample.queued for sample in history] == [0, 0, 0, 1]
    assert admin.history(2) == history[-2:]


def test_history_is_bounded(admin: Admin, engine: Engine, server: FakeServer) -> None:
    let_pass(engine, server, KEPT + 20)
    assert len(admin.history(10**9)) == KEPT


def test_rates_are_over_the_last_seconds(admin: Admin, engine: Engine, server: FakeServer) -> None:
    let_pass(engine, server, 10, jobs=4)
    assert (admin.overview().submitted_rate, admin.overview().completed_rate) == (4.0, 4.0)
    let_pass(engine, server, 10)
    assert (admin.overview().submitted_rate, admin.overview().completed_rate) == (0.0, 0.0)


def test_sampling_continues_when_the_clock_is_set_back(admin: Admin, engine: Engine, server: FakeServer) -> None:
    let_pass(engine, server, 3)
    server.now -= 3600
    engine.tick(server.now)
    let_pass(engine, server, 3)
    assert len(admin.history(60)) == 6


def test_percentiles_are_over_the_last_minute(admin: Admin, engine: Engine, server: FakeServer) -> None:
    assert admin.overview().run.p50 is None
    let_pass(engine, server, 5, jobs=10, took=0.010)
    run = admin.overview().run
    assert run.p50 is not None
    assert 0.008 <= run.p50 <= 0.017
    let_pass(engine, server, 70)
    assert admin.overview().run.p99 is None


@pytest.mark.parametrize("seconds", [0.000_5, 0.02, 1.5, 3600.0])
def test_a_percentile_is_within_its_bucket(seconds: float) -> None:
    meter = DurationHistogram()
    for _ in range(100):
        meter.add(seconds)
    assert seconds / 2 <= percentile(meter.counts(), 0.5) <= seconds * 2


def test_percentiles_are_in_order() -> None:
    counts = [0] * BUCKETS
    for exponent in range(30):
        counts[exponent] = 30 - exponent
    shares = [percentile(counts, share / 100) for share in range(1, 100)]
    assert shares == sorted(shares)


def test_a_percentile_is_at_most_the_largest_duration(admin: Admin, engine: Engine, server: FakeServer) -> None:
    let_pass(engine, server, 7, jobs=20, took=1.1)
    run = admin.overview().run
    assert run.p50 is not None
    assert run.p99 is not None
    assert run.p50 <= run.p99 <= 1.1 + 1e-6
    let_pass(engine, server, 5, jobs=20, took=1.2)
    later = admin.overview().run.p99
    assert later is not None
    assert 1.1 < later <= 1.2 + 1e-6


def test_a_function_has_a_history_of_its_own(admin: Admin, engine: Engine, server: FakeServer) -> None:
    let_pass(engine, server, 31, jobs=3, took=0.5)
    engine.submit(b"f", background=True)
    engine.submit(b"never-run", background=True)
    let_pass(engine, server, 15)
    history = admin.function_history(b"f")
    assert history.measured
    assert [round(sample.completed) for sample in history.samples] == [3, 3, 0]
    assert [sample.queued for sample in history.samples] == [0, 0, 1]
    assert [sample.at - history.interval for sample in history.samples[1:]] == [
        sample.at for sample in history.samples[:-1]
    ]
    last, idle = history.samples[-2:]
    assert last.run_p95 is not None
    assert 0.26 < last.run_p95 <= 0.501
    assert idle.run_p95 is None
    assert history.run.p99 is not None
    assert history.run.p99 <= 0.501
    assert admin.function_history(b"f", 10).samples == history.samples[-1:]
    assert admin.function_history(b"never-run").samples == []
    assert not admin.function_history(b"never-run").measured


def test_only_some_functions_have_a_history(admin: Admin, engine: Engine, server: FakeServer) -> None:
    engine.policy.measured_functions = 2
    for name in (b"a", b"b", b"c"):
        worker = hire(engine, name)
        engine.submit(name, background=True)
        engine.complete(worker, claim(engine, worker), b"")
    let_pass(engine, server, 20)
    assert [admin.function_history(name).measured for name in (b"a", b"b", b"c")] == [True, True, False]
    engine.remove_worker(next(worker for worker in engine.workers.values() if b"a" in worker.abilities))
    admin.drop(b"a")
    assert sum(engine.other_times.wait.counts()) == 2  # those of c, and those of a, which was dropped
    worker = hire(engine, b"d")
    engine.submit(b"d", background=True)
    engine.complete(worker, claim(engine, worker), b"")
    let_pass(engine, server, 20)
    assert admin.function_history(b"d").measured
