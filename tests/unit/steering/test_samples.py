"""Rates, charts and percentiles from totals."""

import pytest

from geartrain.engine.counters import BUCKETS, DurationHistogram
from geartrain.engine.engine import Engine
from geartrain.steering.samples import KEPT, percentile
from geartrain.steering.steward import Steward
from tests.unit.engine.recording import claim, hire
from tests.unit.steering.conftest import NOW, FakeSite


def let_pass(engine: Engine, site: FakeSite, seconds: int, jobs: int = 0, took: float = 0.0) -> None:
    """Some seconds, in each of which so many jobs are done."""
    worker = hire(engine, b"f")
    for _ in range(seconds):
        for _ in range(jobs):
            engine.submit(b"f", background=True)
            job = claim(engine, worker)
            engine.now += took
            engine.complete(worker, job, b"")
            engine.now -= took
        site.now += 1.0
        engine.tick(site.now)


def test_history_is_a_sample_a_second(steward: Steward, engine: Engine, site: FakeSite) -> None:
    assert steward.history(60) == []
    let_pass(engine, site, 3, jobs=5)
    engine.submit(b"f", background=True)
    let_pass(engine, site, 1)
    history = steward.history(60)
    assert [sample.at for sample in history] == [NOW + 1, NOW + 2, NOW + 3, NOW + 4]
    assert [sample.completed for sample in history] == [5.0, 5.0, 5.0, 0.0]
    assert [sample.submitted for sample in history] == [5.0, 5.0, 5.0, 1.0]
    assert [sample.queued for sample in history] == [0, 0, 0, 1]
    assert steward.history(2) == history[-2:]


def test_history_is_bounded(steward: Steward, engine: Engine, site: FakeSite) -> None:
    let_pass(engine, site, KEPT + 20)
    assert len(steward.history(10**9)) == KEPT


def test_rates_are_of_the_last_seconds(steward: Steward, engine: Engine, site: FakeSite) -> None:
    let_pass(engine, site, 10, jobs=4)
    assert (steward.overview().submitted_rate, steward.overview().completed_rate) == (4.0, 4.0)
    let_pass(engine, site, 10)
    assert (steward.overview().submitted_rate, steward.overview().completed_rate) == (0.0, 0.0)


def test_a_clock_that_is_moved_back_does_not_end_the_samples(steward: Steward, engine: Engine, site: FakeSite) -> None:
    let_pass(engine, site, 3)
    site.now -= 3600
    engine.tick(site.now)
    let_pass(engine, site, 3)
    assert len(steward.history(60)) == 6


def test_percentiles_are_of_the_last_minute(steward: Steward, engine: Engine, site: FakeSite) -> None:
    assert steward.overview().run.p50 is None
    let_pass(engine, site, 5, jobs=10, took=0.010)
    run = steward.overview().run
    assert run.p50 is not None
    assert 0.008 <= run.p50 <= 0.017
    let_pass(engine, site, 70)
    assert steward.overview().run.p99 is None


@pytest.mark.parametrize("seconds", [0.000_5, 0.02, 1.5, 3600.0])
def test_a_percentile_is_right_within_its_bucket(seconds: float) -> None:
    meter = DurationHistogram()
    for _ in range(100):
        meter.note(seconds)
    assert seconds / 2 <= percentile(meter.counts(), 0.5) <= seconds * 2


def test_percentiles_are_in_order() -> None:
    counts = [0] * BUCKETS
    for exponent in range(30):
        counts[exponent] = 30 - exponent
    shares = [percentile(counts, share / 100) for share in range(1, 100)]
    assert shares == sorted(shares)
