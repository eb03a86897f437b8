"""Who asks for a result that was cut, or whose record is gone, hears exactly that, over every protocol."""

from collections.abc import Iterator

import pytest

import geartrain
from geartrain.errors import ResultCutError, ResultGoneError
from tests.support import serving
from tests.support.gearman_peer import Kind, worker
from tests.support.http_peer import Peer as HttpPeer
from tests.support.peer import until

SCHEMES = ("gearman", "danga", "periodic", "http")


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    listens = [word for scheme in SCHEMES for word in ("--listen", f"{scheme}://{serving.HOST}:0")]
    with serving.serve("--store", "memory", "--result-max", "1000", *listens) as process:
        yield process


@pytest.mark.parametrize("scheme", SCHEMES)
def test_cut_and_gone(server: serving.ServerProcess, scheme: str) -> None:
    http = HttpPeer(server.urls[SCHEMES.index("http")])
    function = f"cut-{scheme}"
    with (
        geartrain.Client(server.urls[SCHEMES.index(scheme)]) as client,
        geartrain.Client(server.urls[SCHEMES.index(scheme)]) as later,
        worker(server.port, function.encode()) as taker,
    ):
        job = client.submit(function, background=True)
        handle = taker.grab().handle
        taker.send(Kind.WORK_COMPLETE, handle, b"x" * 1001).silence()
        until(lambda: http.get(f"/jobs/{handle.decode()}")["state"] == "done", "the job is done")
        for asked in (job, later.job(job.handle, job.function, job.unique)):
            with pytest.raises(ResultCutError, match=r"1,000 of 1,001"):
                asked.result(10)
        with pytest.raises(ResultGoneError):
            later.job(b"H:nowhere:1" if scheme != "periodic" else b"", function, b"no such key").result(10)
