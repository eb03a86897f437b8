"""TLS on the server's side: handshakes, client certificates, and certificates that change while it runs."""

import contextlib
import os
import signal
import socket
import ssl
from pathlib import Path

import pytest

from tests.support import certificates, serving
from tests.support.certificates import Certificate
from tests.support.gearman_peer import Kind, Peer
from tests.support.peer import until


@pytest.fixture(scope="module")
def server_files(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificates.self_signed(tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="module")
def stranger_files(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificates.self_signed(tmp_path_factory.mktemp("stranger"))


def trusting(server: Certificate, own: Certificate | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(server.certificate))
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    return context


def ask(port: int, context: ssl.SSLContext) -> bytes:
    with (
        socket.create_connection((serving.HOST, port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=serving.HOST) as connection,
    ):
        connection.sendall(b"getpid\n")
        return connection.recv(100)


def refused(port: int, context: ssl.SSLContext) -> bool:
    """Whether the handshake fails, or the server closes right after it, as TLS 1.3 has it."""
    with contextlib.suppress(ssl.SSLError, ConnectionError):
        return ask(port, context) == b""
    return True


def flags(files: Certificate, *more: str) -> list[str]:
    listen = ["--store", "memory", "--listen", f"gearmans://{serving.HOST}:0"]
    return [*listen, "--tls-certificate", str(files.certificate), "--tls-key", str(files.key), *more]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_versions(server_files: Certificate, version: ssl.TLSVersion) -> None:
    context = trusting(server_files)
    context.minimum_version = context.maximum_version = version
    with serving.serve(*flags(server_files)) as server:
        assert ask(server.port, context) == b"OK %d\n" % server.pid


def test_no_plain_text_on_an_address_with_tls(server_files: Certificate) -> None:
    with serving.serve(*flags(server_files)) as server:
        with socket.create_connection((serving.HOST, server.port), timeout=10) as plain:
            plain.sendall(b"version\n")
            heard = b""
            with contextlib.suppress(ConnectionResetError):
                while part := plain.recv(100):
                    heard += part
        assert b"OK" not in heard
        assert server.says("TLS handshake failed")
        assert ask(server.port, trusting(server_files)).startswith(b"OK")


def test_handshake_has_a_time_limit(server_files: Certificate) -> None:
    with serving.serve(*flags(server_files, "--stall-timeout", "0.1")) as server, Peer(server.port) as silent:
        silent.closed()
        assert ask(server.port, trusting(server_files)).startswith(b"OK")


def test_orderly_end_is_not_logged(server_files: Certificate) -> None:
    with serving.serve(*flags(server_files, "--log-level", "debug")) as server:
        with Peer(server.port) as peer:
            peer.socket = trusting(server_files).wrap_socket(peer.socket, server_hostname=serving.HOST)
            peer.socket.unwrap()
        assert server.says("peer disconnected")
        assert " warning " not in server.stderr


def test_plain_address_beside_one_with_tls(server_files: Certificate) -> None:
    with serving.serve(*flags(server_files), "--listen", f"gearman://{serving.HOST}:0") as server:
        assert ask(server.port, trusting(server_files)).startswith(b"OK")
        with Peer(int(server.urls[1].rpartition(":")[2])) as plain:
            assert plain.text("getpid").line() == b"OK %d\n" % server.pid


def test_client_certificate_is_required(server_files: Certificate, stranger_files: Certificate) -> None:
    with serving.serve(*flags(server_files, "--tls-ca", str(server_files.certificate))) as server:
        assert ask(server.port, trusting(server_files, server_files)).startswith(b"OK")
        assert refused(server.port, trusting(server_files))
        assert refused(server.port, trusting(server_files, stranger_files))
        assert server.says("why=PEER_DID_NOT_RETURN_A_CERTIFICATE")


def test_payload_larger_than_all_buffers(server_files: Certificate) -> None:
    """The transport has to pause and resume."""
    payload = os.urandom(3_000_000)
    with serving.serve(*flags(server_files)) as server, Peer(server.port) as peer:
        peer.socket = trusting(server_files).wrap_socket(peer.socket, server_hostname=serving.HOST)
        peer.send(Kind.ECHO_REQ, payload)
        assert peer.packet() == (Kind.ECHO_RES, payload)


def replace(old: Certificate, new: Certificate) -> None:
    """Put new files in the place of old ones, each in one step."""
    for target, source in zip(old, new, strict=True):
        copy = target.with_suffix(".new")
        copy.write_bytes(source.read_bytes())
        copy.rename(target)


def reloads(server: serving.ServerProcess, event: str, count: int) -> None:
    until(lambda: server.stderr.count(event) >= count, event)


def test_certificate_is_reloaded(tmp_path: Path, server_files: Certificate, stranger_files: Certificate) -> None:
    """On SIGHUP, and by itself when the files have changed; an open connection stays."""
    files = Certificate(*(tmp_path / name for name in Certificate._fields))
    replace(files, server_files)
    with serving.serve(*flags(files)) as server, Peer(server.port) as kept:
        kept.socket = trusting(server_files).wrap_socket(kept.socket, server_hostname=serving.HOST)
        replace(files, stranger_files)
        server.signal(signal.SIGHUP)
        reloads(server, "TLS certificate reloaded", 1)
        assert ask(server.port, trusting(stranger_files)).startswith(b"OK")
        assert refused(server.port, trusting(server_files))
        replace(files, server_files)
        reloads(server, "TLS certificate reloaded", 2)
        assert ask(server.port, trusting(server_files)).startswith(b"OK")
        kept.send(Kind.ECHO_REQ, b"still here")
        assert kept.packet() == (Kind.ECHO_RES, b"still here")
        files.certificate.write_text("nonsense")
        server.signal(signal.SIGHUP)
        reloads(server, "TLS certificate not reloaded", 1)
        assert ask(server.port, trusting(server_files)).startswith(b"OK")


def test_authorities_are_reloaded(tmp_path: Path, server_files: Certificate, stranger_files: Certificate) -> None:
    """A client whose authority is no longer trusted is refused, even if it resumes a session."""
    authorities = tmp_path / "clients.pem"
    authorities.write_bytes(server_files.certificate.read_bytes())
    with serving.serve(*flags(server_files, "--tls-ca", str(authorities))) as server:
        client = trusting(server_files, server_files)
        assert ask(server.port, client).startswith(b"OK")
        authorities.write_bytes(stranger_files.certificate.read_bytes())
        server.signal(signal.SIGHUP)
        reloads(server, "TLS certificate reloaded", 1)
        assert refused(server.port, client)
        assert ask(server.port, trusting(server_files, stranger_files)).startswith(b"OK")
