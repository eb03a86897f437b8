"""The peer door: who may link to a server, and what links survive."""

import os
import signal
from pathlib import Path

import pytest

from geartrain import address
from geartrain.wire import peer
from tests.acceptance.cluster.conftest import POSTGRESQL, Pair, member
from tests.acceptance.cluster.test_lending import idle_worker, woken
from tests.support import postgres, serving
from tests.support.gearman_peer import Kind, Peer
from tests.support.peer import RawPeer, connect

pytestmark = POSTGRESQL

FUNCTION = b"f"


def peer_port(server: serving.ServerProcess) -> int:
    return address.parse(server.urls[-1]).port


class Stranger(RawPeer):
    """A connection to a peer door."""

    def __init__(self, server: serving.ServerProcess) -> None:
        super().__init__(connect(peer_port(server)))
        hello = self.frame()
        assert isinstance(hello, peer.Hello)
        self.server_hello = hello
        self.own_hello = peer.Hello(peer.MAGIC, peer.VERSION, 1, "stranger", os.urandom(peer.NONCE_BYTES))

    def frame(self) -> peer.Frame | None:
        size = int.from_bytes(head := self.receive(4), "big")
        reader = peer.Reader(1 << 20)
        reader.feed(head + self.receive(size))
        assert reader.next()
        return reader.frame()

    def send(self, frame: peer.Frame) -> None:
        self.raw(peer.encode(frame))


def test_a_server_that_does_not_know_the_secret_is_refused(pair: Pair) -> None:
    with Stranger(pair[0]) as stranger:
        stranger.send(stranger.own_hello)
        assert isinstance(stranger.frame(), peer.Proof)
        stranger.send(peer.Proof(peer.proof(b"guess", stranger.own_hello, stranger.server_hello, True)))
        stranger.closed()
    assert pair[0].says("it does not know the secret of this cluster")


def test_the_servers_own_proof_proves_nothing(pair: Pair) -> None:
    with Stranger(pair[0]) as stranger:
        stranger.send(stranger.own_hello)
        reflected = stranger.frame()
        assert isinstance(reflected, peer.Proof)
        stranger.send(reflected)
        stranger.closed()


@pytest.mark.parametrize(
    "first",
    [
        peer.encode(peer.Lend(1, 1, b"H:x:1", FUNCTION, b"", 1, 1.0, 1.0, 0)),
        peer.encode(peer.Proof(b"x" * 32)),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0REQ\0\0\0\x10\0\0\0\0",
        (5000).to_bytes(4, "big") + b"\1",
    ],
    ids=["lend", "proof", "http", "gearman", "large"],
)
def test_whoever_does_not_begin_with_hello_is_refused(pair: Pair, first: bytes) -> None:
    with Stranger(pair[0]) as stranger:
        stranger.raw(first)
        stranger.closed()


def test_peer_door_needs_a_shared_store(tmp_path: Path) -> None:
    failed = serving.run_command(tmp_path, "serve", "--store", "memory", "--listen", f"peer://{serving.HOST}:0")
    assert failed.returncode != 0
    assert "peer:// is for servers that share a store" in failed.stderr


def test_a_link_comes_back_after_a_server_was_stopped(own_pair: Pair) -> None:
    """Longer than a link without a sign of life is kept, and shorter than the lease."""
    one, two = own_pair
    assert one.says("linked to server")
    with idle_worker(two) as taker, Peer(one.port) as client:
        two.signal(signal.SIGSTOP)
        try:
            assert one.says("no sign of life")
        finally:
            two.signal(signal.SIGCONT)
        handle = client.submit(FUNCTION)
        assert woken(taker).handle == handle
        taker.send(Kind.WORK_COMPLETE, handle, b"")
        client.expect(Kind.WORK_COMPLETE, handle, b"")


def test_payload_of_a_foreground_job_is_never_in_the_database() -> None:
    """Not in its files, nor in its write-ahead log: with and without a key, run at home and elsewhere."""
    marker = b"marker-" + os.urandom(16).hex().encode()
    with postgres.running() as database, member(database.url(), "one") as one, member(database.url(), "two") as two:
        with idle_worker(two) as taker, Peer(one.port) as client, Peer(two.port) as other:
            for key in (b"", b"key"):
                handle = client.submit(FUNCTION, key, marker)
                assert woken(taker).data == marker
                if key:
                    assert other.submit(FUNCTION, key, marker) == handle
                taker.send(Kind.WORK_COMPLETE, handle, marker).send(Kind.PRE_SLEEP)
                client.expect(Kind.WORK_COMPLETE, handle, marker)
            # What is in the log after this would be found.
            background = client.submit(FUNCTION, b"", marker + b" background", kind=Kind.SUBMIT_JOB_BG)
            assert woken(taker).handle == background
        database.query("CHECKPOINT")
        found = [path for path in database.folder.rglob("*") if path.is_file() and marker in path.read_bytes()]
        assert found, "the search finds what is there"
        contents = b"".join(path.read_bytes() for path in found)
        assert contents.count(marker) == contents.count(marker + b" background")
