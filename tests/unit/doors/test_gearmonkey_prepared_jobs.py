"""Ids that are taken and not queued within an hour are deleted."""

from tests.support import gearmonkey_door
from tests.support.gearmonkey_door import DoorPeer

HOUR = 3600.0


def take_id(peer: DoorPeer) -> int:
    return int(peer.ask("INCR uid:f")[1:])


def is_known(peer: DoorPeer, number: int) -> bool:
    return peer.ask(f"HMSET job:f:{number} status idle") == b"+OK\r\n"


def test_each_id_has_an_hour() -> None:
    with gearmonkey_door.opened() as door:
        peer = door.peer()
        numbers = []
        for _ in range(3):
            numbers.append(take_id(peer))
            door.pass_time(HOUR / 2)
        assert take_id(peer) > numbers[-1]
        assert [is_known(peer, number) for number in numbers] == [False, False, True]
        door.pass_time(HOUR)
        assert is_known(peer, take_id(peer))
        assert not is_known(peer, numbers[-1])
