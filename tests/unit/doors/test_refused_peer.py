"""How long, and for how many bytes, a refused peer is read from."""

from collections.abc import Iterator

import pytest

from geartrain.doors.refused_peer import CHECK_INTERVAL, MOST_BYTES, MOST_CHECKS, RefusedPeer
from geartrain.runtime.timers import Timers
from tests.support.fake_loop import FakeLoop


class HalfOpenTransport:
    """Remembers which sides are closed."""

    def __init__(self, half_closes: bool) -> None:
        self.half_closes = half_closes
        self.ended = self.reading = self.closed = False

    def can_write_eof(self) -> bool:
        return self.half_closes

    def write_eof(self) -> None:
        assert self.half_closes
        self.ended = True

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def loop() -> Iterator[FakeLoop]:
    loop = FakeLoop()
    yield loop
    loop.close()


@pytest.fixture
def timers(loop: FakeLoop) -> Timers:
    return Timers(loop, lambda: None)


@pytest.fixture(params=[True, False], ids=["TCP", "TLS"])
def transport(request: pytest.FixtureRequest) -> HalfOpenTransport:
    return HalfOpenTransport(request.param)


@pytest.fixture
def refused(transport: HalfOpenTransport, timers: Timers) -> RefusedPeer:
    refused = RefusedPeer(transport, timers)
    refused.begin()
    return refused


def test_only_our_side_is_closed_at_first(refused: RefusedPeer, transport: HalfOpenTransport) -> None:
    assert (transport.ended, transport.reading, transport.closed) == (transport.half_closes, True, False)


def test_a_peer_that_sends_nothing_more_is_closed(
    refused: RefusedPeer, transport: HalfOpenTransport, loop: FakeLoop
) -> None:
    loop.pass_time(CHECK_INTERVAL)
    assert transport.closed


def test_a_peer_that_goes_on_sending_is_closed_in_the_end(
    refused: RefusedPeer, transport: HalfOpenTransport, loop: FakeLoop
) -> None:
    for _ in range(MOST_CHECKS):
        assert not transport.closed
        refused.discard(1)
        loop.pass_time(CHECK_INTERVAL)
    assert transport.closed


def test_a_peer_that_sends_very_much_is_closed(refused: RefusedPeer, transport: HalfOpenTransport) -> None:
    refused.discard(MOST_BYTES)
    assert not transport.closed
    refused.discard(1)
    assert transport.closed


def test_no_timer_is_left(refused: RefusedPeer, transport: HalfOpenTransport, timers: Timers) -> None:
    assert len(timers) == 1
    refused.end()
    assert (len(timers), transport.closed) == (0, True)
