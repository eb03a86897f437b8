"""The document's "Binary Protocol Example", every byte of it, however the bytes are cut."""

import re
from collections.abc import Callable

import pytest

from tests.support.gearman_peer import Depart, Dial, Peer

CAN_DO = bytes.fromhex("00524551 00000001 00000007 72657665727365")
GRAB_JOB = bytes.fromhex("00524551 00000009 00000000")
NO_JOB = bytes.fromhex("00524553 0000000a 00000000")
PRE_SLEEP = bytes.fromhex("00524551 00000004 00000000")
SUBMIT_JOB = bytes.fromhex("00524551 00000007 0000000d 7265766572736500 00 74657374")
JOB_CREATED = bytes.fromhex("00524553 00000008")
NOOP = bytes.fromhex("00524553 00000006 00000000")
JOB_ASSIGN = bytes.fromhex("00524553 0000000b")
ASSIGNED = bytes.fromhex("00 7265766572736500 74657374")
WORK_COMPLETE = bytes.fromhex("00524551 0000000d")
COMPLETED = bytes.fromhex("00524553 0000000d")
RESULT = bytes.fromhex("00 74736574")

STAGES = ("opening", "submission", "grab", "result")

Deliver = Callable[[str, Peer, bytes], None]  # hands the bytes of a stage to the socket
Pieces = Callable[[Peer, list[bytes]], None]


def sized(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def exchange(client: Peer, worker: Peer, deliver: Deliver) -> None:
    deliver("opening", worker, CAN_DO + GRAB_JOB + PRE_SLEEP)
    assert worker.receive(12) == NO_JOB
    deliver("submission", client, SUBMIT_JOB)
    assert client.receive(8) == JOB_CREATED
    handle = client.receive(int.from_bytes(client.receive(4), "big"))
    assert re.fullmatch(rb"H:[^:\0]+:[1-9][0-9]*", handle)
    assert worker.receive(12) == NOOP
    deliver("grab", worker, GRAB_JOB)
    job = JOB_ASSIGN + sized(handle + ASSIGNED)
    assert worker.receive(len(job)) == job
    deliver("result", worker, WORK_COMPLETE + sized(handle + RESULT))
    result = COMPLETED + sized(handle + RESULT)
    assert client.receive(len(result)) == result
    client.silence()
    worker.silence()


def whole(stage: str, peer: Peer, data: bytes) -> None:
    peer.raw(data)


@pytest.fixture
def in_pieces(admin: Peer) -> Pieces:
    """Sends pieces so that the server reads them one by one: between two it has answered somebody else."""

    def send(peer: Peer, pieces: list[bytes]) -> None:
        for piece in pieces:
            peer.raw(piece)
            admin.silence()

    return send


def test_whole(dial: Dial, depart: Depart) -> None:
    worker = dial()
    exchange(dial(), worker, whole)
    depart(worker)


def test_packet_by_packet(dial: Dial, depart: Depart) -> None:
    """As the document tells it: the worker sleeps only after it heard NO_JOB."""
    worker, client = dial(), dial()
    worker.raw(CAN_DO).raw(GRAB_JOB)
    assert worker.receive(12) == NO_JOB
    worker.raw(PRE_SLEEP).silence()
    handle = client.submit(b"reverse", b"", b"test")
    assert worker.receive(12) == NOOP
    worker.raw(GRAB_JOB)
    job = JOB_ASSIGN + sized(handle + ASSIGNED)
    assert worker.receive(len(job)) == job
    worker.raw(WORK_COMPLETE + sized(handle + RESULT))
    result = COMPLETED + sized(handle + RESULT)
    assert client.receive(len(result)) == result
    depart(worker)


def test_byte_by_byte(dial: Dial, depart: Depart, in_pieces: Pieces) -> None:
    worker = dial()
    exchange(dial(), worker, lambda _, peer, data: in_pieces(peer, [data[i : i + 1] for i in range(len(data))]))
    depart(worker)


@pytest.mark.parametrize("stage", STAGES)
def test_cut_at_every_byte(stage: str, dial: Dial, depart: Depart, in_pieces: Pieces) -> None:
    lengths: dict[str, int] = {}

    def measure(name: str, peer: Peer, data: bytes) -> None:
        lengths[name] = len(data)
        peer.raw(data)

    def cut_at(cut: int) -> Deliver:
        def deliver(name: str, peer: Peer, data: bytes) -> None:
            in_pieces(peer, [data[:cut], data[cut:]] if name == stage else [data])

        return deliver

    client, worker = dial(), dial()
    exchange(client, worker, measure)
    depart(worker)
    for cut in range(1, lengths[stage]):
        worker = dial()
        exchange(client, worker, cut_at(cut))
        depart(worker)
