"""Partitions of submissions: every way to submit sends them, and the server lets them take turns."""

from pathlib import Path

import pytest

import geartrain
from tests.support import serving
from tests.support.http_peer import Peer as HttpPeer

LISTENS = ("--listen", f"gearman://{serving.HOST}:0", "--listen", f"http://{serving.HOST}:0")


def test_every_way_to_submit(tmp_path: Path) -> None:
    with serving.serve("--store", "memory", *LISTENS) as server:
        http = HttpPeer(server.urls[1])
        for number, url in enumerate(server.urls):
            with geartrain.Client(url) as client:
                client.submit("f", background=True, partition=f"submit-{number}")
                client.submit_many([client.order("f", background=True, partition=b"\xff%d" % number)])
                with pytest.raises(ValueError, match="at most 255 bytes; this one has 256"):
                    client.submit("f", background=True, partition="p" * 256)
            done = serving.run_command(tmp_path, "submit", "f", "--partition", f"cli-{number}", "--server", url)
            assert (done.returncode, done.stderr) == (0, "")
        jobs = http.get("/jobs")["items"]
        partitions = [job["partition"] for job in reversed(jobs)]
        assert partitions == [
            "submit-0", {"base64": "/zA="}, "cli-0", "submit-1", {"base64": "/zE="}, "cli-1",
        ]  # fmt: skip


def test_turns() -> None:
    """Ten jobs of one tenant do not delay the first one of another."""
    with serving.serve("--store", "memory", *LISTENS) as server, geartrain.Client(server.urls[0]) as client:
        http = HttpPeer(server.urls[1])
        orders = [client.order("f", f"big {number}", background=True, partition="big") for number in range(10)]
        client.submit_many([*orders, client.order("f", "small", background=True, partition="small")])
        worker = http.worker("f")
        first, second = worker.claim(), worker.claim()
        assert (first["payload"], second["payload"]) == ("big 0", "small")


def test_foreground_jobs_over_http() -> None:
    with serving.serve("--store", "memory", *LISTENS) as server, geartrain.Client(server.urls[1]) as client:
        http = HttpPeer(server.urls[1])
        job = client.submit("f", "x", partition="acme")
        worker = http.worker("f")
        claimed = worker.claim()
        assert http.get(f"/jobs/{claimed['handle']}")["partition"] == "acme"
        worker.complete(claimed["handle"], b"done")
        assert job.result() == b"done"


def test_other_protocols_name_the_way_out() -> None:
    with pytest.raises(geartrain.UnsupportedError) as refused:
        geartrain.AsyncClient("periodic://127.0.0.1:9").order("f", background=True, partition="acme")
    assert str(refused.value) == (
        "periodic does not support partitions; supported by gearman, http; "
        "or let the server read it from unique keys: geartrain limit FUNCTION --partition-from-unique :"
    )


@pytest.mark.peer("gearmand")
def test_gearmand_has_none() -> None:
    with (
        serving.gearmand() as gearmand,
        geartrain.Client(gearmand.url) as client,
        pytest.raises(geartrain.UnsupportedError, match="is no Geartrain: it has neither"),
    ):
        client.submit("f", background=True, partition="acme")
