"""Slots are never given out twice, and whoever waits is told in turn."""

from hypothesis import example, given
from hypothesis import strategies as st

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


def test_a_slot_of_a_part_is_one_of_the_whole() -> None:
    slots = Slots(3)
    slow = slots.part(b"slow", 2)
    assert slots.part(b"slow", 2) is slow, "connections to several servers share it"
    assert [slow.take() for _ in range(3)] == [True, True, False]
    assert (slow.free, slots.free) == (0, 1)
    assert slots.take()
    slow.give()
    assert (slow.free, slots.free) == (1, 1)
    assert slots.take()
    assert (slow.free, slow.take()) == (0, False), "the part has a slot, the whole has none"
    slots.give()
    assert slow.take()


def test_who_waits_for_a_part_is_told_when_nothing_is_missing_any_more() -> None:
    slots = Slots(2)
    slow = slots.part(b"slow", 1)
    told: list[str] = []
    assert slow.take()
    assert slots.take()
    slow.wait(lambda: told.append("slow"))
    slots.give()
    assert told == [], "the part is full"
    assert slots.take()
    slow.give()
    assert told == ["slow"]


def test_who_waits_for_a_full_part_keeps_no_slot_of_the_whole() -> None:
    """It was called for a slot of the whole, and another connection has taken the last one of the part meanwhile."""
    slots = Slots(2)
    slow = slots.part(b"slow", 1)
    told: list[str] = []
    assert slots.take()
    assert slots.take()
    slow.wait(lambda: told.append("slow"))  # only the whole is full
    slots.wait(lambda: told.append("other"))
    slots._free += 1  # a slot is given back, and taken by another connection of the part before anyone is called
    assert slow.take()
    slots.give()
    assert told == ["other"]


class Connection:
    """A connection that wants all slots it can get; a late one takes them some time after the call."""

    def __init__(self, slots: Slots, late: bool) -> None:
        self.slots = slots
        self.late = late
        self.wants = True
        self.held = 0
        self.waiting = self.called = False

    def fetch(self) -> None:
        self.called = False
        if not self.wants:
            self.slots.pass_on()
            return
        while self.slots.take():
            self.held += 1
        if not self.waiting:
            self.waiting = True
            self.slots.wait(self._slot_free)

    def _slot_free(self) -> None:
        self.waiting = False
        if self.late:
            self.called = True
        else:
            self.fetch()


@given(
    total=st.integers(1, 4),
    parts=st.lists(st.integers(1, 3), min_size=1, max_size=2),
    kinds=st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=2, max_size=5),
    steps=st.lists(st.tuples(st.sampled_from(["give", "late", "sleep", "wake"]), st.integers(0, 4)), max_size=60),
)
@example(  # a late one finds the part full, and must pass on the slot of the whole that it was called for
    total=2,
    parts=[1],
    kinds=[(0, False), (1, True), (1, False), (0, False)],
    steps=[("sleep", 0), ("give", 0), ("give", 0)],
)
@example(  # those who sleep pass the slot of the part on
    total=2, parts=[1], kinds=[(1, False), (1, False), (1, False)], steps=[("sleep", 0), ("sleep", 1), ("give", 0)]
)
def test_no_wake_up_is_lost(
    total: int, parts: list[int], kinds: list[tuple[int, bool]], steps: list[tuple[str, int]]
) -> None:
    slots = Slots(total)
    several = [slots, *(slots.part(b"%d" % number, size) for number, size in enumerate(parts))]
    connections = [Connection(several[number % len(several)], late) for number, late in kinds]
    for connection in connections:
        connection.fetch()
    for step, number in steps:
        connection = connections[number % len(connections)]
        if step == "give" and connection.held:
            connection.held -= 1
            connection.slots.give()
        elif step == "late" and connection.called:
            connection.fetch()
        elif step == "sleep":
            connection.wants = False
        elif step == "wake" and not connection.wants:
            connection.wants = True
            if not connection.called:
                connection.fetch()
        assert slots.free == total - sum(each.held for each in connections) >= 0
    while late := [each for each in connections if each.called]:
        late[0].fetch()
    for part in several:
        assert sum(each.held for each in connections if each.slots is part) <= part.total
    stuck = [each for each in connections if each.wants and each.slots.free]
    assert not stuck, "a slot is free, and a connection that wants it was not told"
