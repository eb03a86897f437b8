"""Pauses and limits outlive a restart; what a protocol's own client set does not."""

from geartrain.engine.engine import Engine
from geartrain.steering.steward import Steward
from tests.unit.engine.recording import claim, hire
from tests.unit.steering.conftest import FakeSite, Keeper, restarted

ODD = bytes(range(256))


def test_pause(steward: Steward, engine: Engine, site: FakeSite, keeper: Keeper) -> None:
    steward.pause(ODD)
    again, _ = restarted(engine, site, keeper)
    job = again.submit(ODD)
    worker = hire(again, ODD)
    assert again.claim(worker) is None
    again.resume(ODD)
    assert claim(again, worker) is job


def test_resume_is_kept_as_well(steward: Steward, engine: Engine, site: FakeSite, keeper: Keeper) -> None:
    steward.pause(b"f")
    steward.resume(b"f")
    again, _ = restarted(engine, site, keeper)
    assert b"f" not in again.functions


def test_limits(steward: Steward, engine: Engine, site: FakeSite, keeper: Keeper) -> None:
    steward.limit(b"f", 3, 2, 1)
    steward.pause(b"f")
    steward.resume(b"f")
    again, other = restarted(engine, site, keeper)
    assert again.functions[b"f"].limits == (3, 2, 1)
    other.limit(b"f", 0, 0, 0)
    assert b"f" not in restarted(again, site, keeper)[0].functions


def test_a_limit_of_the_engine_is_not_kept(steward: Steward, engine: Engine, site: FakeSite, keeper: Keeper) -> None:
    steward.pause(b"f")
    engine.limit(b"f", 1, 1, 1)
    again, _ = restarted(engine, site, keeper)
    assert (again.functions[b"f"].paused, again.functions[b"f"].limits) == (True, (0, 0, 0))


def test_dropping_forgets(steward: Steward, engine: Engine, site: FakeSite, keeper: Keeper) -> None:
    steward.pause(b"f")
    steward.drop(b"f")
    assert restarted(engine, site, keeper)[0].functions == {}


def test_names_that_come_and_go_take_one_place(steward: Steward, keeper: Keeper) -> None:
    for number in range(100):
        name = b"f%d" % number
        steward.pause(name)
        steward.drop(name)
    assert len(keeper.kept) == 1


def test_a_place_that_is_no_order_is_left_alone(engine: Engine, site: FakeSite, keeper: Keeper) -> None:
    keeper.kept = {"order.0": b"nonsense", "order.7": b"", "periodic.timeout": b"5"}
    again, steward = restarted(engine, site, keeper)
    steward.pause(b"f")
    steward.pause(b"g")
    assert keeper.kept["order.0"] == b"nonsense"
    assert keeper.kept["order.7"]
    assert len(keeper.kept) == 4
    third, _ = restarted(again, site, keeper)
    assert sorted(third.functions) == [b"f", b"g"]
