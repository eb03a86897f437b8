"""What one connection may cost the others: turns of the input, and output above the high-water mark."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from geartrain import rights
from geartrain.address import parse
from geartrain.doors.door import Limits
from geartrain.doors.gearman.door import GearmanDoor, Options
from geartrain.doors.peer_output import HIGH_WATER
from geartrain.engine.engine import Engine
from geartrain.rights import Identity
from geartrain.runtime.tick import TickLoop
from geartrain.wire import gearman as wire
from tests.support.transport import PausingTransport

PACKETS = 1000
ECHO = wire.request(wire.ECHO_REQ, b"x")
ECHOED = wire.response(wire.ECHO_RES, b"x")
LARGE = b"x" * (HIGH_WATER // 4)


class Control:
    log_level_name = "ERROR"

    def shutdown(self, graceful: bool) -> None: ...

    def not_ready(self) -> str:
        return ""


class Bench:
    """A Gearman door without sockets."""

    def __init__(self, turn: float) -> None:
        self.loop = asyncio.new_event_loop()
        self.engine = Engine(handle_prefix=b"H:t")
        self.tick_loop = TickLoop(self.loop, self.engine, lambda: 1_000_000.0)
        self.door = GearmanDoor(self.tick_loop, Limits(turn=turn), Options("test"), Control())

    def open_peer(self) -> Any:
        connection = self.door.connect(parse("gearman://127.0.0.1"))
        peer = PausingTransport(connection)
        asyncio_transport: Any = peer
        connection.connection_made(asyncio_transport)
        return peer

    def rounds(self, count: int = 1) -> None:
        """Let the loop call what is ready, this many times."""
        for _ in range(count):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    def until(self, condition: Callable[[], object]) -> None:
        """Run the loop until the condition holds, and then what is scheduled by then."""
        for _ in range(10_000):
            if condition():
                break
            self.rounds()
        else:
            raise AssertionError("it never came")
        self.rounds()

    def close(self) -> None:
        self.door.close()
        self.tick_loop.close()
        self.loop.close()


@pytest.fixture
def hasty() -> Iterator[Bench]:
    """Every turn is over at its first check of the clock but one."""
    bench = Bench(turn=0.0)
    yield bench
    bench.close()


@pytest.fixture
def patient() -> Iterator[Bench]:
    """No turn is ever over."""
    bench = Bench(turn=1e9)
    yield bench
    bench.close()


def test_another_peer_is_answered_before_the_rest_of_a_flood(hasty: Bench) -> None:
    flood, other = hasty.open_peer(), hasty.open_peer()
    flood.protocol.data_received(ECHO * PACKETS)
    assert not flood.reading
    other.protocol.data_received(ECHO)
    hasty.until(lambda: other.written)
    assert len(flood.written) < len(ECHOED) * PACKETS
    hasty.until(lambda: flood.reading)
    assert flood.written == ECHOED * PACKETS


def test_a_turn_that_lasts_handles_everything_at_once(patient: Bench) -> None:
    peer = patient.open_peer()
    peer.protocol.data_received(ECHO * PACKETS)
    patient.rounds()
    assert peer.written == ECHOED * PACKETS


def test_floods_take_turns(hasty: Bench) -> None:
    first, second = hasty.open_peer(), hasty.open_peer()
    for peer in (first, second):
        peer.protocol.data_received(ECHO * PACKETS)
    while len(first.written) < len(ECHOED) * PACKETS:
        hasty.rounds()
        assert abs(len(first.written) - len(second.written)) <= len(ECHOED) * PACKETS // 10


@pytest.mark.parametrize(
    ("packet", "error"),
    [
        (wire.response(wire.NOOP), b"INVALID_MAGIC"),
        (wire.request(wire.SUBMIT_JOB_BG, b"f\0\0"), b"NOT_ALLOWED"),
    ],
    ids=["errors that are not fatal", "requests that the engine refuses"],
)
def test_errors_take_turns_as_well(hasty: Bench, packet: bytes, error: bytes) -> None:
    flood, other = hasty.open_peer(), hasty.open_peer()
    flood.protocol.identity = Identity("stranger", rights.parse([]))
    flood.protocol.data_received(packet * PACKETS)
    other.protocol.data_received(ECHO)
    hasty.until(lambda: other.written)
    assert flood.written.count(error) < PACKETS
    hasty.until(lambda: flood.reading)
    assert flood.written.count(error) == PACKETS


def test_what_arrives_although_the_input_is_suspended_is_handled_after_it(hasty: Bench) -> None:
    peer = hasty.open_peer()
    peer.protocol.data_received(ECHO * PACKETS)
    peer.protocol.data_received(wire.request(wire.ECHO_REQ, b"last"))
    hasty.until(lambda: peer.reading)
    assert peer.written == ECHOED * PACKETS + wire.response(wire.ECHO_RES, b"last")


def test_a_peer_that_does_not_read_causes_no_more_output(patient: Bench) -> None:
    peer = patient.open_peer()
    peer.full = True
    peer.protocol.data_received(wire.request(wire.ECHO_REQ, LARGE) * 100)
    patient.rounds(20)
    assert len(peer.written) <= 2 * (HIGH_WATER + len(LARGE)), "more was answered than the peer has room for"
    assert not peer.reading
    peer.drain()
    patient.until(lambda: peer.reading)
    assert peer.written == wire.response(wire.ECHO_RES, LARGE) * 100


def test_output_of_one_tick_is_counted_before_the_transport_has_it(patient: Bench) -> None:
    peer = patient.open_peer()
    peer.protocol.data_received(wire.request(wire.ECHO_REQ, LARGE) * 100)
    assert peer.protocol.unsent <= HIGH_WATER + 2 * len(LARGE)
    patient.until(lambda: peer.reading)
    assert peer.written == wire.response(wire.ECHO_RES, LARGE) * 100
    assert peer.protocol.unsent == 0


def test_input_continues_when_output_that_waited_for_the_disk_is_sent(patient: Bench) -> None:
    peer = patient.open_peer()
    durability = patient.tick_loop.durability
    durability.changed()
    durability.begin_commit()
    packets = HIGH_WATER // 10
    peer.protocol.data_received(wire.request(wire.SUBMIT_JOB_BG, b"f", b"", b"") * packets)
    patient.rounds(5)
    assert peer.written == b""
    assert len(patient.engine.jobs) < packets, "everything was accepted although no answer could be sent"
    durability.end_commit(failed=False)
    patient.until(lambda: peer.reading)
    assert len(patient.engine.jobs) == packets
    assert peer.written.count(b"\0RES") == packets
    assert peer.protocol.unsent == 0


def test_the_error_that_replaces_an_acknowledgement_is_counted(patient: Bench) -> None:
    peer = patient.open_peer()
    durability = patient.tick_loop.durability
    durability.changed()
    durability.begin_commit()
    peer.protocol.data_received(wire.request(wire.SUBMIT_JOB_BG, b"f", b"", b"") * 3)
    durability.end_commit(failed=True)
    patient.rounds(3)
    assert peer.written.count(b"QUEUE_ERROR\0QUEUE_ERROR") == 3
    assert peer.protocol.unsent == 0


def test_a_suspended_connection_that_is_lost_is_not_continued(hasty: Bench) -> None:
    peer = hasty.open_peer()
    peer.protocol.data_received(ECHO * PACKETS)
    peer.protocol.connection_lost(None)
    hasty.rounds(5)
    assert len(peer.written) < len(ECHOED) * PACKETS


def submit(bench: Bench, count: int) -> bytes:
    """Queue jobs; returns the lines of `show jobs` for them."""
    jobs = [bench.engine.submit(b"f", background=True) for _ in range(count)]
    return b"".join(b"%b\t0\t0\t1\n" % job.handle for job in jobs)


def test_a_long_list_is_made_in_slices(hasty: Bench) -> None:
    lines = submit(hasty, 10_000)
    peer, other = hasty.open_peer(), hasty.open_peer()
    peer.protocol.data_received(b"show jobs\nversion\n")
    other.protocol.data_received(ECHO)
    hasty.until(lambda: other.written)
    assert len(peer.written) < len(lines)
    hasty.until(lambda: peer.reading)
    assert peer.written == lines + b".\nOK test\n"


def test_a_long_list_waits_for_its_reader(patient: Bench) -> None:
    lines = submit(patient, 50_000)
    peer = patient.open_peer()
    peer.full = True
    peer.protocol.data_received(b"show jobs\n" * 3)
    patient.rounds(50)
    assert HIGH_WATER < len(peer.written) < 2 * HIGH_WATER < len(lines)
    assert peer.protocol.unsent == 0
    peer.drain()
    patient.until(lambda: peer.reading)
    assert peer.written == (lines + b".\n") * 3


def test_jobs_may_come_and_go_while_they_are_listed(hasty: Bench) -> None:
    submit(hasty, 10_000)
    peer = hasty.open_peer()
    peer.protocol.data_received(b"show jobs\n")
    for job in list(hasty.engine.jobs.values())[::2]:
        hasty.engine.cancel(job)
    stayed = {job.handle for job in hasty.engine.jobs.values()}
    submit(hasty, 1000)
    hasty.until(lambda: peer.reading)
    listed = {line.split(b"\t")[0] for line in peer.written.splitlines()}
    assert stayed <= listed
    assert peer.written.endswith(b".\n")


def test_nothing_is_written_into_a_long_answer(hasty: Bench) -> None:
    lines = submit(hasty, 10_000)
    peer = hasty.open_peer()
    peer.protocol.data_received(wire.request(wire.SUBMIT_JOB, b"g", b"", b"") + b"show jobs\n")
    assert not peer.reading
    worker = hasty.open_peer()
    worker.protocol.data_received(wire.request(wire.CAN_DO, b"g") + wire.request(wire.GRAB_JOB))
    result = b"x" * (2 * HIGH_WATER)
    worker.protocol.data_received(wire.request(wire.WORK_COMPLETE, b"H:t:10001", result))
    hasty.until(lambda: peer.reading)
    created = wire.response(wire.JOB_CREATED, b"H:t:10001")
    completed = wire.about_job(wire.WORK_COMPLETE, b"H:t:10001", result)
    assert peer.written in (
        created + lines + b".\n" + completed,
        created + lines + b"H:t:10001\t0\t0\t0\n.\n" + completed,
    )
    assert peer.protocol.unsent == 0


def test_a_long_answer_keeps_the_order_of_acknowledgements(hasty: Bench) -> None:
    submit(hasty, 10_000)
    peer = hasty.open_peer()
    durability = hasty.tick_loop.durability
    durability.changed()
    durability.begin_commit()
    peer.protocol.data_received(b"cancel job x\nshow jobs\ncancel job x\n")
    hasty.rounds(20)
    assert peer.written == b"", "the list passed the acknowledgement before it"
    durability.end_commit(failed=False)
    hasty.until(lambda: peer.reading)
    assert peer.written.startswith(b"ERR UNKNOWN_JOB\r\nH:t:1\t")
    assert peer.written.endswith(b".\nERR UNKNOWN_JOB\r\n")


def test_a_connection_that_closes_does_not_wait_for_the_end_of_a_long_answer(hasty: Bench) -> None:
    submit(hasty, 10_000)
    peer = hasty.open_peer()
    peer.protocol.data_received(b"show jobs\n")
    peer.protocol.close()
    assert peer.closed


def pieces_of(peer: Any) -> list[bytes]:
    return list(peer.protocol.out)


def test_a_result_is_encoded_once_for_all_its_watchers(patient: Bench) -> None:
    clients = [patient.open_peer() for _ in range(3)]
    for client in clients:
        client.protocol.data_received(wire.request(wire.SUBMIT_JOB, b"f", b"unique", b"") * 2)
    patient.rounds(2)
    worker = patient.open_peer()
    worker.protocol.data_received(wire.request(wire.CAN_DO, b"f") + wire.request(wire.GRAB_JOB))
    worker.protocol.data_received(wire.request(wire.WORK_DATA, b"H:t:1", b"part"))
    worker.protocol.data_received(wire.request(wire.WORK_COMPLETE, b"H:t:1", b"whole"))
    written = [pieces_of(client) for client in clients]
    data = wire.about_job(wire.WORK_DATA, b"H:t:1", b"part")
    completed = wire.about_job(wire.WORK_COMPLETE, b"H:t:1", b"whole")
    assert written == [[data, data, completed, completed]] * 3, "each submission gets a packet of its own"
    assert len({id(piece) for pieces in written for piece in pieces}) == 2


def check(bench: Bench, peer: Any, times: int) -> None:
    for _ in range(times):
        peer.protocol.check_reader(2)


def test_a_peer_that_reads_nothing_is_dropped_after_a_while(patient: Bench, caplog: pytest.LogCaptureFixture) -> None:
    peer = patient.open_peer()
    peer.full, peer.waiting = True, 1000
    peer.protocol.data_received(ECHO)
    patient.rounds(2)
    check(patient, peer, 2)
    assert not peer.closed, "it had no time to read"
    check(patient, peer, 1)
    assert peer.closed
    assert [record.levelname for record in caplog.records if record.message == "connection dropped"] == ["ERROR"]


def test_a_peer_that_reads_slowly_is_not_dropped(patient: Bench) -> None:
    peer = patient.open_peer()
    peer.full, peer.waiting = True, 1000
    peer.protocol.data_received(ECHO)
    patient.rounds(2)
    for _ in range(10):
        check(patient, peer, 1)
        peer.waiting -= 1
    assert not peer.closed


def test_a_peer_that_leaves_more_than_the_write_limit_is_dropped_at_once(patient: Bench) -> None:
    peer = patient.open_peer()
    peer.full = True
    peer.protocol.data_received(ECHO)
    patient.rounds(2)
    peer.waiting = patient.door.limits.write_limit + 1
    peer.protocol.write(b"a result")
    patient.rounds(2)
    assert peer.closed


def test_incomplete_packets_of_all_peers_are_bounded(patient: Bench) -> None:
    patient.door.limits.max_inflight_bytes = 300_000
    begun = wire.request(wire.SUBMIT_JOB_BG, b"f", b"", bytes(1_000_000))[:200_000]
    first, second, small = (patient.open_peer() for _ in range(3))
    first.protocol.data_received(begun)
    assert patient.tick_loop.inflight_bytes == len(begun)
    second.protocol.data_received(begun)
    small.protocol.data_received(begun[:1000])
    patient.rounds(2)
    assert b"LIMIT_REACHED" in second.written
    assert first.written == small.written == b""
    assert patient.tick_loop.inflight_bytes == len(begun) + 1000
    first.protocol.data_received(bytes(1_000_000 + 12 + 3 - len(begun)))
    patient.rounds(2)
    assert b"H:t:1" in first.written
    small.protocol.connection_lost(None)
    assert patient.tick_loop.inflight_bytes == 0


def test_a_blocked_peer_is_read_up_to_the_high_water_mark(patient: Bench) -> None:
    peer = patient.open_peer()
    peer.protocol.blocked = True
    peer.protocol.data_received(ECHO)
    assert peer.reading
    peer.protocol.data_received(wire.request(wire.ECHO_REQ, LARGE) * 5)
    assert not peer.reading
    peer.protocol.blocked = False
    peer.protocol.handle_rest()
    patient.until(lambda: peer.reading)
    assert peer.written == ECHOED + wire.response(wire.ECHO_RES, LARGE) * 5
