"""Workers: defaults, and late answers that are forgiven."""

import pytest

from geartrain.engine.worker import Ability, Worker
from geartrain.model import Expiry
from tests.unit.engine.recording import RecordingWorker


def test_a_new_worker_offers_nothing_and_runs_nothing() -> None:
    worker = RecordingWorker(b"ann", door="gearman")
    assert (worker.door, worker.name, worker.abilities, worker.running.jobs()) == ("gearman", b"ann", {}, [])
    assert (worker.crew, worker.idle, worker.inbox) == (None, False, None)


def test_subclasses_must_define_wake() -> None:
    with pytest.raises(NotImplementedError):
        Worker("test").wake()


def test_an_ability_has_no_timeout_by_default() -> None:
    ability = Ability()
    assert (ability.timeout, ability.on_timeout) == (0.0, Expiry.FAIL)


def test_forgive_late_covers_one_answer() -> None:
    worker = RecordingWorker()
    worker.forgive_late(b"H:1")
    assert worker.is_forgiven(b"H:1")
    assert not worker.is_forgiven(b"H:1")


def test_nothing_is_forgiven_by_default() -> None:
    worker = RecordingWorker()
    assert not worker.is_forgiven(b"H:1")
    worker.forgive_late(b"H:1")
    assert not worker.is_forgiven(b"H:2")
    assert worker.is_forgiven(b"H:1"), "asking for another handle uses nothing up"


def test_forgiving_a_handle_twice_covers_one_answer() -> None:
    worker = RecordingWorker()
    worker.forgive_late(b"H:1")
    worker.forgive_late(b"H:1")
    assert worker.is_forgiven(b"H:1")
    assert not worker.is_forgiven(b"H:1")


def test_forgiven_handles_are_bounded() -> None:
    worker = RecordingWorker()
    for number in range(5000):
        worker.forgive_late(b"H:%d" % number)
        assert worker.forgiven is not None
        assert len(worker.forgiven) <= 1000
    assert worker.is_forgiven(b"H:4999"), "the newest is always kept"
