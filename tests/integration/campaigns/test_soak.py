"""A short soak with every kind of fault, and the faults themselves: each has to reach the server."""

import asyncio
import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaigns.soak import __main__ as command
from campaigns.soak import droppers, plan
from campaigns.soak.campaign import SoakCampaign
from campaigns.soak.plan import FaultKind
from campaigns.soak.server import SoakServer
from tests.support import http_peer
from tests.support.gearman_peer import Kind, Peer
from tests.support.peer import until

SEED = 20260101
ACKNOWLEDGEMENTS = 20  # between two faults


def test_no_acknowledged_job_is_lost(tmp_path: Path) -> None:
    campaign = SoakCampaign(SEED, tmp_path)
    faults = itertools.islice(plan.faults(SEED, mean_pause=0.0), len(FaultKind))
    figures = campaign.run(faults, acknowledgements=ACKNOWLEDGEMENTS)
    report = command.table(campaign.account, figures)
    print(report)
    assert figures.problems == []
    assert figures.faults == dict.fromkeys(FaultKind, 1)
    assert figures.lives == 3
    assert campaign.account.acknowledged > len(FaultKind) * ACKNOWLEDGEMENTS
    assert "acknowledged jobs in the store" in report


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SoakServer]:
    server = SoakServer(tmp_path, random.Random())
    server.start()
    try:
        yield server
    finally:
        server.kill()


def test_full_disk_refuses_jobs_until_there_is_room(server: SoakServer) -> None:
    with Peer(server.port("gearman")) as client:
        server.fill_disk()
        client.send(Kind.SUBMIT_JOB_BG, b"f", b"", b"payload")
        assert client.error() == ("QUEUE_ERROR", "QUEUE_ERROR")
        server.empty_disk()
        assert client.submit(b"f", b"", b"payload", kind=Kind.SUBMIT_JOB_BG)


def test_store_and_ports_survive_a_kill(server: SoakServer) -> None:
    with Peer(server.port("gearman")) as client:
        handle = client.submit(b"f", b"", b"payload", kind=Kind.SUBMIT_JOB_BG)
    server.kill()
    server.start()
    with Peer(server.port("gearman")) as client:
        assert client.status(handle)[0] == 1
    assert server.lives == 2
    assert server.logged_faults() == []


def test_dropped_connections_submit_nothing(server: SoakServer) -> None:
    """Nobody would run their jobs, and the soak would wait for them at its end."""
    asyncio.run(droppers.drop_connections(server.urls, 300, random.Random(SEED)))
    with Peer(server.port("gearman")) as admin:
        assert [row for row in admin.listing("status") if row[1] != b"0"] == []
    assert http_peer.Peer(server.urls["http"]).get("/schedules") == []


@pytest.mark.peer("faketime")
def test_clock_step_reaches_the_server(server: SoakServer) -> None:
    server.set_clock(3600)
    with Peer(server.port("gearman")) as client:

        def changed() -> bool:
            client.silence()  # a tick looks at the clock
            return "wall clock changed" in server.log

        until(changed, "the server notices that its clock was stepped")
