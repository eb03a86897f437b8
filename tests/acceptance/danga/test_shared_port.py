"""The Gearman port, open to the draft: the first five bytes of a connection say what it speaks."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import certificates, danga_peer, gearman_peer, serving
from tests.support.danga_peer import SYNC
from tests.support.gearman_peer import Kind

GEARMAN = ("--listen", "gearman://127.0.0.1:0", "--store", "memory")


@pytest.fixture
def server() -> Iterator[serving.ServerProcess]:
    with serving.serve(*GEARMAN, "--danga-on-gearman-port") as server:
        yield server


def test_both_at_once(server: serving.ServerProcess) -> None:
    with (
        danga_peer.Peer(server.port) as application,
        danga_peer.Peer(server.port) as worker,
        gearman_peer.Peer(server.port) as client,
        gearman_peer.Peer(server.port) as gearman_worker,
    ):
        worker.connect(b"draft")
        gearman_worker.register(b"final")
        handle = client.submit(b"draft", b"", b"to the draft")
        assert worker.grab() == (b"draft", b"to the draft")
        worker.finish(b"from the draft")
        client.expect(Kind.WORK_COMPLETE, handle, b"from the draft")
        handle = application.create(b"final", args=b"to gearman", type=SYNC)
        assert gearman_worker.grab().data == b"to gearman"
        gearman_worker.send(Kind.WORK_COMPLETE, handle, b"from gearman")
        assert application.streamed_completion() == (1, 0, b"from gearman")
        client.text("version")
        assert client.line().startswith(b"OK ")
        [line] = [line for line in client.listing("status") if line[0] == b"draft"]
        assert line[3] == b"1"


def test_first_packets_that_arrive_byte_by_byte(server: serving.ServerProcess) -> None:
    with danga_peer.Peer(server.port) as draft, gearman_peer.Peer(server.port) as final:
        for byte in danga_peer.packet(danga_peer.Kind.JOB_ASSIGN_REQ):
            draft.raw(bytes([byte]))
        for byte in gearman_peer.request(Kind.ECHO_REQ, b"hello"):
            final.raw(bytes([byte]))
        assert draft.body(danga_peer.Kind.JOB_ASSIGN_RES) == b""
        final.expect(Kind.ECHO_RES, b"hello")


def test_rubbish_is_answered_as_gearman_answers_it(server: serving.ServerProcess) -> None:
    with gearman_peer.Peer(server.port) as peer:
        peer.raw(b"\0XYZ")
        assert peer.error()[0] == "INVALID_MAGIC"
        peer.closed()


def test_a_connection_keeps_to_its_protocol(server: serving.ServerProcess) -> None:
    with danga_peer.Peer(server.port) as draft:
        draft.silence()
        draft.raw(gearman_peer.request(Kind.ECHO_REQ, b"hello")).closed()
    assert server.says("noop is for workers")


def test_peers_of_both_are_seen_out_at_the_end() -> None:
    with (
        serving.serve(*GEARMAN, "--danga-on-gearman-port") as server,
        danga_peer.Peer(server.port) as draft,
        gearman_peer.Peer(server.port) as final,
        socket.create_connection(("127.0.0.1", server.port)) as silent,
    ):
        draft.silence()
        final.silence()
        server.stop()
        draft.closed()
        final.closed()
        assert silent.recv(1) == b""


def test_it_is_off_unless_asked_for() -> None:
    with serving.serve(*GEARMAN) as server, gearman_peer.Peer(server.port) as peer:
        peer.raw(danga_peer.packet(danga_peer.Kind.WORKER_CONNECT, b"draft"))
        assert peer.error()[0] == "INVALID_COMMAND"
        peer.closed()


def test_with_tls_too(tmp_path: Path) -> None:
    """TLS has transports of its own, which change their protocol as well."""
    certificate = str(certificates.self_signed(tmp_path).both)
    options = ("--tls-certificate", certificate, "--danga-on-gearman-port")
    context = ssl.create_default_context(cafile=certificate)
    with (
        serving.serve("--store", "memory", "--listen", f"gearmans://{serving.HOST}:0", *options) as server,
        danga_peer.Peer(server.port) as draft,
        gearman_peer.Peer(server.port) as final,
    ):
        for peer in (draft, final):
            peer.socket = context.wrap_socket(peer.socket, server_hostname="localhost")
        draft.silence()
        final.silence()
        assert draft.create(b"job").startswith(b"H:")
