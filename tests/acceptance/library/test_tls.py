"""Clients, workers, apps and commands over URLs with TLS."""

import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import geartrain
from geartrain import address
from geartrain.app.worker import AppWorker
from geartrain.app.worker_options import WorkerOptions
from geartrain.client import gearmonkey, tls
from tests.acceptance.library import functions
from tests.acceptance.library.conftest import plain_worker
from tests.support import certificates, process, serving
from tests.support.protocol_ends import async_test


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificates.self_signed(tmp_path_factory.mktemp("tls")).both


@pytest.fixture(scope="module")
def server(certificate: Path) -> Iterator[serving.ServerProcess]:
    """Every protocol with TLS, and Gearman without it."""
    schemes = (*address.TLS_SCHEMES.values(), "gearman")
    listens = [word for scheme in schemes for word in ("--listen", f"{scheme}://{serving.HOST}:0")]
    with serving.serve("--store", "memory", *listens, "--tls-certificate", str(certificate)) as running:
        assert [url.partition(":")[0] for url in running.urls] == list(schemes)
        yield running


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(tls.CA_VARIABLE, str(certificate))


def url_of(server: serving.ServerProcess, scheme: str) -> str:
    return next(url for url in server.urls if url.startswith(f"{scheme}://"))


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("scheme", [*address.TLS_SCHEMES.values(), "gearman"])
def test_client_and_worker(server: serving.ServerProcess, scheme: str, function: str) -> None:
    url = url_of(server, scheme)
    worker = geartrain.Worker(url)
    worker.register(function, functions.talk)
    with plain_worker(worker), geartrain.Client(url) as client:
        assert client.run(function, b"x" * 1_000_000) == b"x" * 1_000_000


@pytest.mark.usefixtures("trusted")
@async_test
async def test_app(server: serving.ServerProcess) -> None:
    app = geartrain.App("tls", url_of(server, "gearmans"))

    @app.task
    def double(number: int) -> int:
        return 2 * number

    worker = AppWorker(app, WorkerOptions(concurrency=1))
    await worker.start()
    try:
        assert await double.call(21) == 42
        handle = await double.submit(4)
        assert await handle.result(30) == 8  # through the control function
    finally:
        await worker.close()


@pytest.mark.usefixtures("trusted")
def test_gearmonkey_client(server: serving.ServerProcess, function: str) -> None:
    with gearmonkey.Client(url_of(server, "gearmonkeys")) as client:
        number = client.run(function, b"payload")
        assert client.get(function, number).status == "idle"


def test_context_of_the_program(server: serving.ServerProcess, certificate: Path, function: str) -> None:
    own = ssl.create_default_context(cafile=str(certificate))
    with geartrain.Client(url_of(server, "gearmans"), tls=own) as client:
        assert client.submit(function, background=True).handle


def test_unknown_authority_is_refused(server: serving.ServerProcess, function: str) -> None:
    with (
        geartrain.Client(url_of(server, "gearmans"), patience=0) as stranger,
        pytest.raises(geartrain.ServerGoneError, match="TLS failed: self-signed certificate"),
    ):
        stranger.submit(function)


def test_plain_client_is_refused(server: serving.ServerProcess, function: str) -> None:
    url = url_of(server, "gearmans").replace("gearmans://", "gearman://")
    with (
        geartrain.Client(url, patience=0) as plain,
        pytest.raises(geartrain.ServerGoneError, match="no server could be reached"),
    ):
        plain.submit(function)


def test_parameters_of_listening_addresses_are_refused() -> None:
    for kind in (geartrain.Client, geartrain.Worker):
        with pytest.raises(geartrain.ClientError, match="clients use GEARTRAIN_TLS_CA"):
            kind("gearmans://127.0.0.1:1?ca=/some/ca.pem")


@pytest.mark.parametrize(
    ("variable", "complaint"),
    [
        (tls.CA_VARIABLE, "cannot load the TLS authorities from /nowhere.pem: No such file or directory"),
        (tls.CERTIFICATE_VARIABLE, "cannot load the TLS certificate and key from /nowhere.pem: No such file"),
    ],
)
def test_unusable_files(variable: str, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "/nowhere.pem")
    for kind in (geartrain.Client, geartrain.Worker):
        with pytest.raises(geartrain.ClientError, match=complaint):
            kind("gearmans://127.0.0.1:1")


@pytest.mark.parametrize("scheme", list(address.TLS_SCHEMES.values()))
def test_commands(server: serving.ServerProcess, certificate: Path, scheme: str, tmp_path: Path) -> None:
    command = [str(serving.installed_command()), "status", "--server", url_of(server, scheme), "--json"]
    environment = process.clean_environment(tmp_path)
    for options, code in ((["--tls-ca", str(certificate)], 0), ([], 5), (["--tls-ca", "/nowhere.pem"], 1)):
        done = subprocess.run([*command, *options], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
