"""Names of functions and unique keys, and how many functions there may be."""

import pytest

from geartrain.engine import names
from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.engine.names import LONGEST_FUNCTION, LONGEST_UNIQUE
from geartrain.engine.policy import Policy
from geartrain.errors import InvalidNameError, LimitError
from geartrain.model import Priority
from tests.unit.engine.recording import NOW, claim, hire

LONG = b"f" * (LONGEST_FUNCTION + 1)


def stored(id: int, function: bytes, unique: bytes = b"") -> LiveJob:
    """A job of an earlier run."""
    return LiveJob(id, b"H:host:%d" % id, function, unique, b"", Priority.NORMAL, True, NOW - 1, NOW - 1, "gearman")


def test_a_function_has_at_most_512_bytes(engine: Engine) -> None:
    worker = hire(engine, LONG[1:])
    job = engine.submit(LONG[1:])
    assert claim(engine, worker) is job
    for verb in (engine.submit, engine.pause, engine.resume, lambda name: engine.register(worker, name)):
        with pytest.raises(InvalidNameError, match="512"):
            verb(LONG)
    assert LONG not in engine.functions


def test_a_unique_key_has_at_most_255_bytes(engine: Engine) -> None:
    key = b"k" * LONGEST_UNIQUE
    assert engine.submit(b"f", key) is engine.submit(b"f", key)
    with pytest.raises(InvalidNameError, match="255"):
        engine.submit(b"f", key + b"k")


@pytest.mark.parametrize("name", [b"a\nb", b"a\0b", b"a\0", b"\x1b[2J", b"\x7f"])
def test_names_have_no_control_characters(engine: Engine, name: bytes) -> None:
    worker = hire(engine)
    for verb in (engine.submit, engine.pause, lambda name: engine.register(worker, name)):
        with pytest.raises(InvalidNameError, match="control characters"):
            verb(name)
    with pytest.raises(InvalidNameError, match="name of a worker"):
        names.check_worker(name)
    assert name not in engine.functions


def test_unique_keys_are_bytes(engine: Engine) -> None:
    key = bytes(range(255))
    assert engine.submit(b"f", key) is engine.submit(b"f", key)


def test_jobs_of_a_store_keep_their_control_characters(engine: Engine) -> None:
    engine.restore(stored(1, function=b"a\nb"))
    assert claim(engine, hire(engine, b"a\nb")).function == b"a\nb"


def test_jobs_of_a_store_keep_longer_names(engine: Engine) -> None:
    engine.restore(stored(1, function=LONG, unique=LONG))
    assert claim(engine, hire(engine, LONG)).unique == LONG
    engine.submit(LONG)


def test_there_are_at_most_max_functions() -> None:
    engine = Engine(Policy(max_functions=2))
    worker = hire(engine, b"f", b"g")
    for verb in (engine.submit, engine.pause, lambda name: engine.register(worker, name)):
        with pytest.raises(LimitError, match="max_functions"):
            verb(b"h")
    engine.submit(b"f")
    engine.restore(stored(7, function=b"h"))
    engine.submit(b"h")
    assert list(engine.functions) == [b"f", b"g", b"h"]


def test_a_worker_offers_at_most_max_abilities() -> None:
    engine = Engine(Policy(max_abilities=2))
    worker = hire(engine, b"f", b"g")
    with pytest.raises(LimitError, match="max_abilities"):
        engine.register(worker, b"h")
    assert b"h" not in engine.functions
    engine.register(worker, b"f", timeout=5.0)
    engine.unregister(worker, b"g")
    engine.register(worker, b"h")
    assert list(worker.abilities) == [b"f", b"h"]
