"""Pauses, limits and settings survive a restart; limits that clients set do not."""

import math
from typing import Any

import pytest

from geartrain.admin.service import Admin
from geartrain.admin.views import FunctionOptions
from geartrain.engine.engine import Engine
from geartrain.engine.policy import FunctionPolicy
from geartrain.errors import AdminError
from geartrain.model import FailureAction
from tests.unit.admin.conftest import FakeServer, SavingJournal, restarted
from tests.unit.engine.recording import claim, hire

ODD = bytes(range(256))


def test_pause(admin: Admin, engine: Engine, server: FakeServer, journal: SavingJournal) -> None:
    admin.pause(b"odd \xff name")
    again, _ = restarted(engine, server, journal)
    job = again.submit(b"odd \xff name")
    worker = hire(again, b"odd \xff name")
    assert again.claim(worker) is None
    again.resume(b"odd \xff name")
    assert claim(again, worker) is job


def test_resume_is_saved(admin: Admin, engine: Engine, server: FakeServer, journal: SavingJournal) -> None:
    admin.pause(b"f")
    admin.resume(b"f")
    again, _ = restarted(engine, server, journal)
    assert b"f" not in again.functions


def test_limits(admin: Admin, engine: Engine, server: FakeServer, journal: SavingJournal) -> None:
    admin.limit(b"f", 3, 2, 1)
    admin.pause(b"f")
    admin.resume(b"f")
    again, other = restarted(engine, server, journal)
    assert again.functions[b"f"].limits == (3, 2, 1)
    other.limit(b"f", 0, 0, 0)
    assert b"f" not in restarted(again, server, journal)[0].functions


def test_a_limit_set_by_a_client_is_not_saved(
    admin: Admin, engine: Engine, server: FakeServer, journal: SavingJournal
) -> None:
    admin.pause(b"f")
    engine.limit(b"f", 1, 1, 1)
    again, _ = restarted(engine, server, journal)
    assert (again.functions[b"f"].paused, again.functions[b"f"].limits) == (True, (0, 0, 0))


def test_drop_deletes_the_settings(admin: Admin, engine: Engine, server: FakeServer, journal: SavingJournal) -> None:
    admin.pause(b"f")
    admin.drop(b"f")
    assert restarted(engine, server, journal)[0].functions == {}


def test_a_cleared_slot_is_reused(admin: Admin, journal: SavingJournal) -> None:
    for number in range(100):
        name = b"f%d" % number
        admin.pause(name)
        admin.drop(name)
    assert len(journal.saved) == 1


def test_an_unreadable_slot_is_left_alone(engine: Engine, server: FakeServer, journal: SavingJournal) -> None:
    journal.saved = {"order.0": b"nonsense", "order.7": b"", "periodic.timeout": b"5"}
    again, admin = restarted(engine, server, journal)
    admin.pause(b"f")
    admin.pause(b"g")
    assert journal.saved["order.0"] == b"nonsense"
    assert journal.saved["order.7"]
    assert len(journal.saved) == 4
    third, _ = restarted(again, server, journal)
    assert sorted(third.functions) == [b"f", b"g"]


def test_settings_survive_a_restart_and_can_be_unset(
    admin: Admin, engine: Engine, server: FakeServer, journal: SavingJournal
) -> None:
    admin.configure(b"f", failures="dead", keep_for=60.0)
    admin.configure(b"f", keep_failed_for=0.0)
    again, other = restarted(engine, server, journal)
    assert again.function_policies == {b"f": FunctionPolicy(FailureAction.DEAD, 60.0, 0.0)}
    assert other.function(b"f").settings == FunctionOptions("dead", 60.0, 0.0)
    other.configure(b"f", failures="default", keep_for=-1.0, keep_failed_for=-1.0)
    assert again.function_policies == {}
    assert b"f" not in restarted(again, server, journal)[0].functions


def test_settings_and_a_pause_do_not_replace_each_other(
    admin: Admin, engine: Engine, server: FakeServer, journal: SavingJournal
) -> None:
    admin.configure(b"f", failures="forget")
    admin.pause(b"f")
    admin.limit(b"f", 3, 2, 1)
    again, _ = restarted(engine, server, journal)
    assert again.function_policies == {b"f": FunctionPolicy(FailureAction.FORGET)}
    assert (again.functions[b"f"].paused, again.functions[b"f"].limits) == (True, (3, 2, 1))


@pytest.mark.parametrize(
    "settings", [{"failures": "ignore"}, {"keep_for": -2.0}, {"keep_failed_for": math.nan}, {"keep_for": math.inf}]
)
def test_invalid_settings_are_refused(admin: Admin, engine: Engine, settings: dict[str, Any]) -> None:
    with pytest.raises(AdminError, match=r"must be|is one of"):
        admin.configure(b"f", **settings)
    assert engine.functions == {}


def test_a_function_with_settings_is_not_forgotten(admin: Admin, engine: Engine) -> None:
    admin.configure(b"f", keep_for=60.0)
    assert not engine.is_unused(engine.functions[b"f"])
    admin.drop(b"f")
    assert engine.function_policies == {}
