"""TLS on the server's side: handshakes, client certificates, and certificates that change while it runs."""

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import ssl
from collections import Counter
from pathlib import Path

import pytest

import geartrain
from geartrain.address import TLS_SCHEMES
from tests.support import certificates, serving
from tests.support.certificates import Certificate
from tests.support.gearman_peer import Kind, Peer
from tests.support.peer import until
from tests.support.protocol_ends import async_test


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


@pytest.mark.parametrize("scheme", TLS_SCHEMES.values())
def test_no_plain_text_on_an_address_with_tls(server_files: Certificate, scheme: str) -> None:
    files = ["--tls-certificate", str(server_files.both)]
    with serving.serve("--store", "memory", "--listen", f"{scheme}://{serving.HOST}:0", *files) as server:
        with socket.create_connection((serving.HOST, server.port), timeout=10) as plain:
            peer = "{}:{}".format(*plain.getsockname())
            plain.sendall(b"version\r\n\r\n")
            heard = b""
            with contextlib.suppress(ConnectionResetError):
                while part := plain.recv(100):
                    heard += part
        assert heard == b""
        assert server.says(f"TLS handshake failed  peer={peer} why=WRONG_VERSION_NUMBER")


def test_handshake_has_a_time_limit(server_files: Certificate) -> None:
    with serving.serve(*flags(server_files, "--stall-timeout", "0.1")) as server, Peer(server.port) as silent:
        peer = "{}:{}".format(*silent.socket.getsockname())
        silent.closed()
        assert server.says(f'TLS handshake failed  peer={peer} why="it took longer than 0.1 seconds (stall_timeout)"')


def test_peer_that_disconnects_during_the_handshake_is_logged(server_files: Certificate) -> None:
    with serving.serve(*flags(server_files)) as server:
        with Peer(server.port) as leaving:
            peer = "{}:{}".format(*leaving.socket.getsockname())
            leaving.socket.sendall(b"\x16\x03\x01\x02\x00\x01")
        assert server.says(f'info gearman  TLS handshake failed  peer={peer} why="the peer disconnected"')
        assert ask(server.port, trusting(server_files)).startswith(b"OK")


def test_peers_without_a_handshake_count_as_connections(server_files: Certificate) -> None:
    with serving.serve(*flags(server_files, "--max-connections", "3")) as server, contextlib.ExitStack() as stack:
        silent = [stack.enter_context(Peer(server.port)) for _ in range(4)]
        silent[3].closed()
        assert server.says("connection limit reached, peer refused")
        for peer in silent[:3]:
            peer.socket.close()
        assert any(is_served(server.port, server_files) for _ in range(1000)), "the server notices that they are gone"


def is_served(port: int, server_files: Certificate) -> bool:
    with contextlib.suppress(OSError):
        return ask(port, trusting(server_files)).startswith(b"OK")
    return False


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


@async_test
async def test_no_job_is_lost_while_certificates_are_reloaded(
    tmp_path: Path, server_files: Certificate, stranger_files: Certificate
) -> None:
    """Under load from connections that stay and from new ones, which trust the old and the new certificate."""
    files = Certificate(*(tmp_path / name for name in Certificate._fields))
    replace(files, server_files)
    either = ssl.create_default_context(cafile=str(server_files.certificate))
    either.load_verify_locations(stranger_files.certificate)
    done: Counter[bytes] = Counter()
    submitted: list[bytes] = []
    with serving.serve(*flags(files)) as server:

        async def count(job: geartrain.Job) -> None:
            done[job.payload] += 1

        worker = geartrain.AsyncWorker(server.url, concurrency=4, tls=either)
        worker.register("count", count)
        working = asyncio.create_task(worker.run(signals=False))
        reloaded = asyncio.Event()

        async def submit(name: str, connections: int) -> None:
            """Until the reloads are over; one connection for all jobs, or a new one for each."""
            async with geartrain.AsyncClient(server.url, tls=either) as kept:
                for number in itertools.count():
                    payload = f"{name} {number}".encode()
                    if connections == 1:
                        await kept.submit("count", payload, background=True)
                    else:
                        async with geartrain.AsyncClient(server.url, tls=either) as fresh:
                            await fresh.submit("count", payload, background=True)
                    submitted.append(payload)
                    if reloaded.is_set():
                        return

        clients = [asyncio.create_task(submit(f"client {number}", number % 2 + 1)) for number in range(4)]
        for count, fresh in enumerate([stranger_files, server_files] * 5, 1):
            replace(files, fresh)
            server.signal(signal.SIGHUP)
            await asyncio.to_thread(reloads, server, "TLS certificate reloaded", count)
        reloaded.set()
        await asyncio.gather(*clients)
        async with asyncio.timeout(60):
            while len(done) < len(submitted):
                await asyncio.sleep(0.01)
        worker.stop()
        await working
        assert done == Counter(submitted)
        assert "TLS handshake failed" not in server.stderr
