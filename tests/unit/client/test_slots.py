"""Slots are never given out twice, and whoever waits is told in turn."""

from geartrain.client.slots import Slots


def test_no_more_than_there_are() -> None:
    slots = Slots(2)
    assert [slots.take() for _ in range(3)] == [True, True, False]
    slots.give()
    assert slots.take()
    assert not slots.take()


def test_who_waits_is_told_once_and_in_turn() -> None:
    slots = Slots(1)
    told: list[str] = []
    slots.take()
    slots.wait(lambda: told.append("first"))
    slots.wait(lambda: told.append("second"))
    slots.give()
    assert told == ["first"]
    slots.give()
    slots.give()
    assert told == ["first", "second"]


def test_who_does_not_want_it_any_more_passes_it_on() -> None:
    slots = Slots(1)
    told: list[str] = []
    slots.take()
    slots.wait(slots.pass_on)
    slots.wait(lambda: told.append("next"))
    slots.give()
    assert told == ["next"]
