"""How peers come in: both dialects on one port, names and tokens, and what is sent away."""

import pytest

from tests.acceptance.periodic.conftest import Start
from tests.support import serving
from tests.support.peer import until
from tests.support.periodic_peer import (
    CLIENT,
    NAMED_CLIENT,
    NAMED_WORKER,
    WORKER,
    Command,
    Dial,
    Dialect,
    Peer,
    frame,
    identity,
    job,
    text,
)

DOCUMENT_CLIENT = bytes.fromhex("00524551 00000001 01")
TODAY_WORKER = bytes.fromhex("00524551 00000001 3c0c8ea1 02")


def test_ids_differ_and_have_four_bytes(dial: Dial, dialect: Dialect) -> None:
    peers = [dial(dialect, None) for _ in range(5)]
    assert len({peer.register(CLIENT) for peer in peers}) == 5


def test_the_id_in_the_document_s_dialect_is_bare(dial: Dial) -> None:
    peer = dial(Dialect.DOCUMENT, None).raw(DOCUMENT_CLIENT)
    assert peer.receive(8) == bytes.fromhex("00524553 00000004")
    peer.receive(4)
    peer.silence()


def test_the_id_in_today_s_dialect_is_data(dial: Dial) -> None:
    peer = dial(Dialect.TODAY, None).raw(TODAY_WORKER)
    assert peer.receive(13)[:8] == bytes.fromhex("00524553 00000005")
    peer.receive(4)
    peer.silence()


def test_peers_speak_before_they_are_answered(dial: Dial, dialect: Dialect, function: bytes) -> None:
    """As clients do: everything in one write, or byte by byte."""
    said = [bytes([WORKER]), b"aaaa\x07" + text(function), b"bbbb\x0d" + job(function, b"n"), b"zzzz\x01"]
    stream = b"".join(frame(dialect, payload) for payload in said)
    for size in (len(stream), 1):
        peer = dial(dialect, None)
        for at in range(0, len(stream), size):
            peer.raw(stream[at : at + size])
        peer.payload()
        peer.expect(b"bbbb", Command.SUCCESS)
        if dialect is Dialect.TODAY:
            peer.expect(b"aaaa", Command.SUCCESS)
            peer.expect(b"zzzz", Command.SUCCESS)
        given = peer.assigned(b"zzzz")
        assert given.name == b"n"
        peer.done(given)
        peer.silence()


def test_both_dialects_meet(dial: Dial, function: bytes) -> None:
    """A client of one, a worker of the other, and the other way round."""
    for one, other in [(Dialect.DOCUMENT, Dialect.TODAY), (Dialect.TODAY, Dialect.DOCUMENT)]:
        client, worker = dial(one), dial(other, WORKER).offer(function)
        waiting = client.run(function, b"name", b"payload", count=3)
        given = worker.take()
        assert given[1:4] == (function, b"name", b"payload")
        assert given.count == 3
        worker.done(given, b"result")
        assert client.data(waiting) == b"result"
        worker.close()


@pytest.mark.parametrize("kind", [0, 3, 5, 255])
def test_a_wrong_type_is_refused(
    dial: Dial, dialect: Dialect, kind: int, server: serving.ServerProcess, client: Peer
) -> None:
    peer = dial(dialect, None)
    peer.raw(frame(dialect, bytes([kind])))
    if dialect is Dialect.DOCUMENT:
        peer.raw(b"\0" * 20)  # what is not a type of the document is taken for the CRC of today's dialect
    peer.closed()
    client.silence()
    assert server.says("peer refused")


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\0REX", b"status\n", b"\0RES\0\0\0\1\1"])
def test_strangers_are_sent_away(dial: Dial, said: bytes) -> None:
    dial(Dialect.DOCUMENT, None).raw(said).closed()


def test_names_are_taken_where_no_token_is_asked_for(dial: Dial, function: bytes) -> None:
    worker = dial(Dialect.TODAY, NAMED_WORKER, identity(b"worker-a", b"whatever")).offer(function)
    client = dial(Dialect.TODAY, NAMED_CLIENT, identity(b"client-a", b""))
    waiting = client.run(function, b"name")
    worker.done(worker.take(), b"result")
    assert client.data(waiting) == b"result"


@pytest.mark.parametrize("arguments", [b"", identity(b"name", b"token")[:-1], b"\xff" * 8, b"\0" * 8])
def test_a_cut_off_name_is_refused(dial: Dial, arguments: bytes) -> None:
    dial(Dialect.TODAY, None).raw(frame(Dialect.TODAY, bytes([NAMED_CLIENT]) + arguments)).closed()


# Who comes in without the token. The document's dialect cannot show one.
STRANGERS = [
    (Dialect.TODAY, bytes([NAMED_CLIENT]) + identity(b"client", b"wrong")),
    (Dialect.TODAY, bytes([NAMED_WORKER]) + identity(b"secret", b"")),
    (Dialect.TODAY, bytes([CLIENT])),
    (Dialect.DOCUMENT, bytes([CLIENT])),
]


def test_a_token_that_is_set_has_to_be_shown(start: Start) -> None:
    with start("--periodic-token", "secret") as server:
        right = identity(b"worker", b"secret")
        with Peer(server.port, Dialect.TODAY, NAMED_WORKER, right) as worker:
            worker.offer(b"f")
            for dialect, said in STRANGERS:
                with Peer(server.port, dialect, None) as stranger:
                    stranger.raw(frame(dialect, said) + frame(dialect, b"aaaa\x09"))
                    assert stranger.payload() == bytes([Command.NO_WORKER])
                    stranger.closed()
            worker.silence()
        until(lambda: server.stderr.count("the token is wrong") == len(STRANGERS), "a line for each")
        assert "secret" not in server.stderr


def test_quiet_addresses_confirm_nothing_to_workers(start: Start, socket_file: str) -> None:
    quiet = f"periodic+unix://{socket_file}.quiet"
    with (
        start("--listen", quiet, "--periodic-quiet", quiet) as server,
        Peer(f"{socket_file}.quiet", Dialect.TODAY, None) as worker,
        Peer(server.port, Dialect.TODAY) as client,
    ):
        worker.register(WORKER, quiet=True)
        worker.send(Command.CAN_DO, text(b"f"))
        worker.silence()
        grab = worker.send(Command.GRAB_JOB)
        worker.silence()
        worker.submit(b"f", b"name")  # what clients ask is answered here too
        given = worker.assigned(grab)
        worker.send(Command.WORK_DONE, given.handle)
        worker.silence()
        until(lambda: client.status()[b"f"][1] == 0, "the job is done")
        with Peer(server.port, Dialect.TODAY, WORKER) as other:
            other.confirmed(Command.CAN_DO, text(b"g"))


def test_quiet_addresses_may_have_names(free_port: int) -> None:
    port = free_port
    address = f"periodic://localhost:{port}"
    with (
        serving.serve("--store", "memory", "--listen", address, "--periodic-quiet", address),
        Peer(port, Dialect.TODAY, None) as worker,
    ):
        worker.register(WORKER, quiet=True)
        worker.send(Command.CAN_DO, text(b"f"))
        worker.silence()


# What a worker of node-periodic 1.3.0 sends before it is answered: its registration, CAN_DO `reverse`, and a grab.
NODE_1_3 = bytes.fromhex(
    "00524551 00000001 3c0c8ea1 02"
    "00524551 0000000d 15b36eb8 39475a73 07 07 72657665727365"
    "00524551 00000005 c16f844f 4e6a6545 01"
)
NODE_GRAB = b"NjeE"


def test_the_worker_of_node_periodic_1_3(free_port: int) -> None:
    """It throws at an answer of more than four bytes whose first four are not a message id that it waits for."""
    address = f"periodic://127.0.0.1:{free_port}"
    with (
        serving.serve("--store", "memory", "--listen", address, "--periodic-quiet", address),
        Peer(free_port, Dialect.TODAY, None) as worker,
        Peer(free_port, Dialect.TODAY, None) as client,
    ):
        client.register(CLIENT, quiet=True)
        worker.raw(NODE_1_3)
        assert len(worker.payload()) == 4
        worker.silence()
        client.submit(b"reverse", b"name")
        given = worker.assigned(NODE_GRAB)
        worker.send(Command.WORK_DONE, given.handle, b"0Zz9")
        worker.silence()
        assert client.status()[b"reverse"][:3] == [1, 0, 0]
