"""Pauses and limits outlive a restart; what a protocol's own client set does not."""

from geartrain.admin.service import Admin
from geartrain.engine.engine import Engine
from tests.unit.admin.conftest import FakeSite, Keeper, restarted
from tests.unit.engine.recording import claim, hire

ODD = bytes(range(256))


def test_pause(admin: Admin, engine: Engine, server: FakeSite, keeper: Keeper) -> None:
    admin.pause(ODD)
    again, _ = restarted(engine, server, keeper)
    job = again.submit(ODD)
    worker = hire(again, ODD)
    assert again.claim(worker) is None
    again.resume(ODD)
    assert claim(again, worker) is job


def test_resume_is_kept_as_well(admin: Admin, engine: Engine, server: FakeSite, keeper: Keeper) -> None:
    admin.pause(b"f")
    admin.resume(b"f")
    again, _ = restarted(engine, server, keeper)
    assert b"f" not in again.functions


def test_limits(admin: Admin, engine: Engine, server: FakeSite, keeper: Keeper) -> None:
    admin.limit(b"f", 3, 2, 1)
    admin.pause(b"f")
    admin.resume(b"f")
    again, other = restarted(engine, server, keeper)
    assert again.functions[b"f"].limits == (3, 2, 1)
    other.limit(b"f", 0, 0, 0)
    assert b"f" not in restarted(again, server, keeper)[0].functions


def test_a_limit_of_the_engine_is_not_kept(admin: Admin, engine: Engine, server: FakeSite, keeper: Keeper) -> None:
    admin.pause(b"f")
    engine.limit(b"f", 1, 1, 1)
    again, _ = restarted(engine, server, keeper)
    assert (again.functions[b"f"].paused, again.functions[b"f"].limits) == (True, (0, 0, 0))


def test_dropping_forgets(admin: Admin, engine: Engine, server: FakeSite, keeper: Keeper) -> None:
    admin.pause(b"f")
    admin.drop(b"f")
    assert restarted(engine, server, keeper)[0].functions == {}


def test_names_that_come_and_go_take_one_place(admin: Admin, keeper: Keeper) -> None:
    for number in range(100):
        name = b"f%d" % number
        admin.pause(name)
        admin.drop(name)
    assert len(keeper.kept) == 1


def test_a_place_that_is_no_order_is_left_alone(engine: Engine, server: FakeSite, keeper: Keeper) -> None:
    keeper.kept = {"order.0": b"nonsense", "order.7": b"", "periodic.timeout": b"5"}
    again, admin = restarted(engine, server, keeper)
    admin.pause(b"f")
    admin.pause(b"g")
    assert keeper.kept["order.0"] == b"nonsense"
    assert keeper.kept["order.7"]
    assert len(keeper.kept) == 4
    third, _ = restarted(again, server, keeper)
    assert sorted(third.functions) == [b"f", b"g"]
