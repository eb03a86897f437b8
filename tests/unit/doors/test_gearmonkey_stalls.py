"""Commands that do not go on: the peer is disconnected after `stall_timeout`, and nobody else."""

from collections.abc import Iterator

import pytest

from geartrain.wire import resp
from tests.support import gearmonkey_door
from tests.support.gearmonkey_door import Bench, DoorPeer

CHECKS = 2  # per timeout
ERROR = b"-ERR no more of a command arrived for 60 seconds\r\n"


@pytest.fixture
def peer() -> Iterator[DoorPeer]:
    with gearmonkey_door.opened() as door:
        yield door.peer()


def check(peer: DoorPeer, times: int = CHECKS + 1) -> None:
    for _ in range(times):
        peer.connection.check_progress(CHECKS)
    peer.bench.turn()


@pytest.mark.parametrize("data", [b"*1000\r\n", b"*1000", b"*", b"*2\r\n$4\r\nECHO\r\n", b"*2\r\n$4\r\nEC", b"PIN"])
@pytest.mark.parametrize("before", [b"", resp.request(b"PING")])
def test_silence_in_the_middle_of_a_command(peer: DoorPeer, data: bytes, before: bytes) -> None:
    peer.send(before + data)
    check(peer)
    assert peer.transport.written.endswith(ERROR)
    assert peer.transport.closed


def test_drops_of_a_command(peer: DoorPeer) -> None:
    """An argument now and then, cut into parts or not, is not enough."""
    peer.send(b"*1000\r\n")
    for part in (b"$1\r\nx\r\n", b"$1\r", b"\nx\r\n", b"$1\r\nx\r\n$1", b"\r\nx\r\n"):
        check(peer, 1)
        peer.send(part)
    assert peer.transport.closed
    assert peer.transport.written == ERROR


def test_silence_between_commands(peer: DoorPeer) -> None:
    peer.send(resp.request(b"MULTI") + resp.request(b"PING"))
    check(peer, 10)
    assert not peer.transport.closed


def test_large_command_that_goes_on(peer: DoorPeer) -> None:
    peer.send(b"*2\r\n$4\r\nECHO\r\n$20000\r\n")
    for _ in range(10):
        check(peer, 1)
        peer.send(b"x" * 2000)
    assert peer.send(b"\r\n").startswith(b"$20000\r\nxxx")
    assert not peer.transport.closed


def test_pop_that_waits(peer: DoorPeer) -> None:
    peer.ask("BRPOP queue:f:normal 0")
    check(peer, 10)
    assert not peer.transport.closed
    assert b"%d" % peer.bench.submit() in peer.transport.written


def test_others_stay(peer: DoorPeer) -> None:
    door: Bench = peer.bench
    other = door.peer()
    peer.send(b"*1000\r\n")
    check(peer)
    check(other)
    assert other.ask("PING") == b"+PONG\r\n"
