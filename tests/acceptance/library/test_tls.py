"""Clients and workers over TLS."""

import ssl
from pathlib import Path

import pytest

import geartrain
from tests.acceptance.library import functions
from tests.acceptance.library.conftest import plain_worker, serve
from tests.support import certificates


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificates.self_signed(tmp_path_factory.mktemp("tls")).both


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
