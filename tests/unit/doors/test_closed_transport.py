"""A transport that is closed and has not said so yet: what is written to it is discarded, and nobody else is hurt."""

import asyncio
import logging
from typing import Any

import pytest

from geartrain.address import parse
from geartrain.doors.door import Limits
from geartrain.doors.gearman.connection import GearmanConnection
from geartrain.doors.gearman.door import GearmanDoor, Options
from geartrain.engine.engine import Engine
from geartrain.runtime.tick import TickLoop
from geartrain.wire import gearman as wire
from tests.support.transport import Transport
from tests.unit.doors.test_gearman_fuzz import Control, settle

ECHO = wire.request(wire.ECHO_REQ, b"hello")


class ClosedTransport(Transport):
    """As uvloop's is between its end and `connection_lost`."""

    def write(self, data: bytes) -> None:
        raise RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed")


def connected(door: GearmanDoor, transport: Any) -> GearmanConnection:
    peer = door.connect(parse("gearman://127.0.0.1"))
    peer.connection_made(transport)
    return peer


def test_what_is_written_to_it_is_discarded(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.new_event_loop()
    door = GearmanDoor(TickLoop(loop, Engine(), lambda: 1.0), Limits(), Options("test"), Control())
    good = Transport()
    closed, open_one = connected(door, ClosedTransport()), connected(door, good)
    with caplog.at_level(logging.ERROR):
        for peer in (closed, open_one):
            peer.data_received(ECHO)
        settle(loop)
    assert caplog.records == []
    assert closed.closing
    assert good.written.endswith(b"hello")
    closed.connection_lost(None)
    assert door.connections == {open_one}
    loop.close()


def test_a_connection_that_begins_when_the_door_is_closed_is_ended() -> None:
    """It was accepted just before: what it submits would be acknowledged, and not be stored."""
    loop = asyncio.new_event_loop()
    engine = Engine()
    door = GearmanDoor(TickLoop(loop, engine, lambda: 1.0), Limits(), Options("test"), Control())
    door.close()
    transport = Transport()
    peer = connected(door, transport)
    peer.data_received(wire.request(wire.SUBMIT_JOB_BG, b"f", b"", b"payload"))
    settle(loop)
    assert transport.closed
    assert not transport.written
    assert not engine.functions
    loop.close()
