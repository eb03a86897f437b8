"""The worker's side of a job that was taken from it."""

import pytest

from geartrain.engine.worker import Ability, Worker
from geartrain.model import Expiry
from tests.unit.engine.recording import RecordingWorker


def test_a_new_worker_offers_nothing_and_runs_nothing() -> None:
    worker = RecordingWorker(b"ann", door="gearman")
    assert (worker.door, worker.name, worker.abilities, worker.running.jobs()) == ("gearman", b"ann", {}, [])
    assert (worker.crew, worker.idle, worker.inbox) == (None, False, None)


def test_every_door_has_to_say_how_to_wake_its_workers() -> None:
    with pytest.raises(NotImplementedError):
        Worker("test").wake()


def test_an_ability_without_words_has_no_timeout() -> None:
    ability = Ability()
    assert (ability.timeout, ability.on_timeout) == (0.0, Expiry.FAIL)


def test_a_pardon_excuses_one_answer() -> None:
    worker = RecordingWorker()
    worker.forgive_late(b"H:1")
    assert worker.is_forgiven(b"H:1")
    assert not worker.is_forgiven(b"H:1")


def test_nothing_is_excused_without_a_pardon() -> None:
    worker = RecordingWorker()
    assert not worker.is_forgiven(b"H:1")
    worker.forgive_late(b"H:1")
    assert not worker.is_forgiven(b"H:2")
    assert worker.is_forgiven(b"H:1"), "asking for another handle uses nothing up"


def test_two_pardons_for_one_handle_are_one() -> None:
    worker = RecordingWorker()
    worker.forgive_late(b"H:1")
    worker.forgive_late(b"H:1")
    assert worker.is_forgiven(b"H:1")
    assert not worker.is_forgiven(b"H:1")


def test_a_worker_that_never_answers_does_not_gather_pardons_for_ever() -> None:
    worker = RecordingWorker()
    for number in range(5000):
        worker.forgive_late(b"H:%d" % number)
        assert worker.forgiven is not None
        assert len(worker.forgiven) <= 1000
    assert worker.is_forgiven(b"H:4999"), "the newest is always kept"
