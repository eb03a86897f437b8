"""Health checks, and HTTP over TLS."""

import http.client
import os
import signal
import ssl
import time
from pathlib import Path

import geartrain
from tests.acceptance.http.conftest import HTTP
from tests.support import certificates, serving
from tests.support.http_peer import Peer


def test_health_checks(peer: Peer) -> None:
    for path in ("/healthz", "/readyz"):
        answer = peer.ask("GET", path)
        assert (answer.status, answer.json) == (200, {"status": "ok", "version": geartrain.__version__})
    assert peer.ask("HEAD", "/healthz").data == b""


def test_a_draining_server_is_healthy_but_not_ready() -> None:
    with serving.serve("--store", "memory", "--listen", HTTP) as server:
        peer = Peer(server.url)
        job = peer.submit("f")
        worker = peer.worker("f")
        worker.claim()
        kept = http.client.HTTPConnection(peer.host, peer.port, timeout=20)
        try:
            kept.request("GET", "/readyz")
            assert kept.getresponse().read()
            server.signal(signal.SIGUSR1)
            deadline = time.monotonic() + 15
            status = 200
            while status == 200 and time.monotonic() < deadline:
                kept.request("GET", "/readyz")
                response = kept.getresponse()
                status = response.status
                response.read()
            assert status == 503
            kept.request("POST", f"/api/v1{worker.path}/jobs/{job['handle']}/complete", b"done")
            assert kept.getresponse().status == 204
        finally:
            kept.close()
        assert server.wait() == 0


def test_over_tls(tmp_path: Path) -> None:
    certificate, key, _ = certificates.self_signed(tmp_path)
    flags = ("--tls-certificate", os.fspath(certificate), "--tls-key", os.fspath(key))
    with serving.serve("--store", "memory", "--listen", f"https://{serving.HOST}:0", *flags) as server:
        trusting = ssl.create_default_context(cafile=os.fspath(certificate))
        connection = http.client.HTTPSConnection(serving.HOST, server.port, timeout=20, context=trusting)
        try:
            connection.request("POST", "/api/v1/login", b'{"token": ""}', {"Content-Type": "application/json"})
            response = connection.getresponse()
            assert response.status == 200
            assert "Secure" in response.headers["set-cookie"]
            response.read()
        finally:
            connection.close()
