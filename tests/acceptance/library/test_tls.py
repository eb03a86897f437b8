"""Clients and workers over TLS."""

import ssl
import subprocess
from pathlib import Path

import pytest

import geartrain
from tests.acceptance.library import functions
from tests.acceptance.library.conftest import plain_worker, serve


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate and its key in one file."""
    folder = tmp_path_factory.mktemp("tls")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", "key.pem", "-nodes"]
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    command = ["openssl", "req", "-x509", *key, "-out", "cert.pem", *subject]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_text((folder / "cert.pem").read_text() + (folder / "key.pem").read_text())
    return both


def test_client_and_worker_over_tls(certificate: Path, function: str) -> None:
    trusted = ssl.create_default_context(cafile=str(certificate))
    with serve(0, "--tls-certificate", str(certificate)) as server:
        worker = geartrain.Worker(server.url, tls=trusted)
        worker.register(function, functions.talk)
        with plain_worker(worker), geartrain.Client(server.url, tls=trusted) as client:
            assert client.run(function, b"x" * 1_000_000) == b"x" * 1_000_000
        for context in (ssl.create_default_context(), None):
            with (
                geartrain.Client(server.url, tls=context, patience=0) as stranger,
                pytest.raises(geartrain.ServerGoneError, match="no server could be reached"),
            ):
                stranger.submit(function)
