"""Peers that stall, never read, or send rubbish hurt nobody but themselves."""

import contextlib
import random
import re
import socket
from pathlib import Path

import pytest

from tests.support import serving
from tests.support.gearman_peer import Dial, Hire, Kind, Peer, Start, request, worker
from tests.support.peer import until

MEGABYTE = 1 << 20
SUBMISSION = request(Kind.SUBMIT_JOB, b"f", b"", b"data")


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    match = re.search(r"^VmRSS:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert match
    return int(match[1]) * 1024


def one_job(client: Peer, busy: Peer, function: bytes, data: bytes) -> None:
    handle = client.submit(function, b"", data)
    assert busy.grab().data == data
    busy.send(Kind.WORK_COMPLETE, handle, data[::-1])
    client.expect(Kind.WORK_COMPLETE, handle, data[::-1])


def test_one_byte_at_a_time(client: Peer, hire: Hire, function: bytes) -> None:
    busy = hire(function)
    data = bytes(range(256)) * 8
    for byte in request(Kind.SUBMIT_JOB, function, b"", data):
        client.raw(bytes([byte]))
    handle = client.body(Kind.JOB_CREATED)
    assert busy.grab().data == data
    for byte in request(Kind.WORK_COMPLETE, handle, data):
        busy.raw(bytes([byte]))
    client.expect(Kind.WORK_COMPLETE, handle, data)


@pytest.mark.parametrize("cut", [1, 4, 11, 12, 13, len(SUBMISSION) - 1])
def test_a_peer_that_leaves_in_the_middle_of_a_packet(cut: int, dial: Dial, function: bytes) -> None:
    bystander, leaver = dial(), dial()
    leaver.raw(request(Kind.SUBMIT_JOB_BG, function, b"", b"data")[:cut]).close()
    bystander.silence()
    assert dial().register(function).take() is None


@pytest.mark.differs_from_gearmand
@pytest.mark.parametrize(
    "piece",
    [
        pytest.param(SUBMISSION[:1], id="one byte"),
        pytest.param(SUBMISSION[:11], id="most of a header"),
        pytest.param(SUBMISSION[:12], id="a header"),
        pytest.param(SUBMISSION[:-1], id="all but the last byte"),
        pytest.param(request(Kind.ECHO_REQ, b"x" * MEGABYTE)[:-1], id="a megabyte but one"),
    ],
)
def test_half_a_packet_is_refused_in_the_end(piece: bytes, start: Start) -> None:
    with start("--stall-timeout", "500ms") as server, Peer(server.port) as idle, Peer(server.port) as peer:
        peer.raw(piece)
        code, text = peer.error()
        assert re.fullmatch("[A-Z_]+", code)
        assert text
        peer.closed()
        idle.silence()


@pytest.mark.differs_from_gearmand
def test_half_a_line_is_refused_in_the_end(start: Start) -> None:
    with start("--stall-timeout", "500ms") as server, Peer(server.port) as idle, Peer(server.port) as peer:
        peer.raw(b"stat")
        assert re.fullmatch(rb"ERR [A-Z_]+ \S+\r\n", peer.rest())
        idle.silence()


@pytest.mark.differs_from_gearmand
def test_a_peer_that_never_reads_is_dropped_alone(start: Start) -> None:
    produced = 200
    with (
        start("--write-limit", "4MiB") as server,
        Peer(server.port) as deaf,
        Peer(server.port) as client,
        Peer(server.port) as watch,
        worker(server.port, b"flood") as busy,
        worker(server.port, b"good") as other,
    ):
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.send(Kind.SET_CLIENT_ID, b"deaf")
        handle = deaf.submit(b"flood", b"", b"data")
        busy.grab()
        before = resident(server.pid)
        for number in range(produced):
            busy.send(Kind.WORK_DATA, handle, bytes(MEGABYTE))
            if number % 10 == 0:
                one_job(client, other, b"good", b"between the floods")
        busy.silence()
        grown = resident(server.pid) - before

        def listed() -> bool:
            watch.text("workers")
            return any(b" deaf " in line for line in watch.block())

        until(lambda: not listed(), "the peer that never reads was dropped")
        one_job(client, other, b"good", b"afterwards")
        assert grown < produced * MEGABYTE // 2


@pytest.mark.differs_from_gearmand
def test_a_peer_that_asks_and_never_reads_is_not_listened_to_any_more(start: Start) -> None:
    """Its own requests make the answers that it leaves unread: they wait in its own machine, or it is dropped."""
    limit = 100 * MEGABYTE
    with start("--write-limit", "1MiB") as server, Peer(server.port) as deaf, Peer(server.port) as client:
        before = resident(server.pid)
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.socket.setblocking(False)
        echoes = memoryview(request(Kind.ECHO_REQ, bytes(MEGABYTE)) * (limit // MEGABYTE))
        sent = blocked = 0
        with contextlib.suppress(ConnectionError):
            while sent < limit and blocked < 500:
                try:
                    sent += deaf.socket.send(echoes[sent:])
                    blocked = 0
                except BlockingIOError:
                    blocked += 1
                client.silence()
        assert sent < limit
        assert resident(server.pid) - before < limit // 2


@pytest.mark.differs_from_gearmand
def test_dates_that_never_come_are_cheap_to_refuse(start: Start) -> None:
    """Two thousand of them in sixty thousand bytes: everybody else is still answered."""
    never = request(Kind.SUBMIT_JOB_SCHED, b"f", b"", b"", b"", b"31", b"2", b"", b"")
    with start() as server, Peer(server.port) as peer, Peer(server.port) as bystander:
        peer.raw(never * 2000)
        assert peer.error()[0]
        bystander.silence()


def rubbish(source: random.Random) -> bytes:
    """Something that is not the protocol, from a random byte to something that looks almost right."""
    noise = source.randbytes(source.randrange(1, 3000))
    return source.choice(
        [
            noise,
            b"\0" + noise,
            b"\0REQ" + noise,
            b"\0RES" + noise,
            b"\0REQ" + source.randrange(1, 43).to_bytes(4, "big") + len(noise).to_bytes(4, "big") + noise,
            noise.replace(b"\0", b"\n") + b"\n",
            b"status\n" * 50,
            SUBMISSION[:-1] + noise,
        ]
    )


@pytest.mark.differs_from_gearmand
def test_rubbish_from_two_hundred_connections_stops_nobody(
    server: serving.ServerProcess, client: Peer, worker: Peer, function: bytes
) -> None:
    source = random.Random(4730)
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(Peer(server.port)) for _ in range(200)]
        for _ in range(3):
            for number, peer in enumerate(crowd):
                with contextlib.suppress(ConnectionError):
                    peer.raw(rubbish(source))
                if number % 10 == 0:
                    one_job(client, worker, function, b"work %d" % number)
    one_job(client, worker, function, b"after the crowd left")
