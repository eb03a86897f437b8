"""What a protocol does not support is an error at the call, with the reason; nothing is sent."""

import asyncio
import datetime
from typing import Any

import pytest

import geartrain
from geartrain import address
from geartrain.client.arguments import FEATURES
from geartrain.client.credentials import Credentials
from geartrain.client.order import Capabilities, Order
from geartrain.client.protocols import registry
from geartrain.client.protocols.gearman import Client
from geartrain.client.server_pool import PooledServer, ServerPool
from geartrain.client.submissions import Submissions
from tests.acceptance.library.conftest import play, working
from tests.support import serving

ORDERS: list[tuple[dict[str, Any], str]] = [
    ({"timeout": 5}, "gearman does not support a time limit for a single job"),
    ({"timeout": datetime.timedelta(seconds=5)}, "gearman does not support a time limit"),
    ({"delay": 5}, "only in the background"),
    ({"at": 4e9, "background": True, "priority": "high"}, "no priority for a job that runs at a given time"),
    ({"unique": "x" * 65}, "at most 64 bytes, this one has 65"),
    ({"unique": "a\0b"}, "no NUL"),
    ({"partition": "acme"}, "add background=True, or use http; or .* --partition-from-unique :$"),
]


@pytest.mark.parametrize(("wishes", "why"), ORDERS)
def test_an_order_that_gearman_does_not_support(wishes: dict[str, Any], why: str) -> None:
    nobody = "gearman://127.0.0.1:9"  # nothing listens there: the error must come before any connection
    client = geartrain.AsyncClient(nobody)
    with pytest.raises(geartrain.UnsupportedError, match=why):
        client.order("f", **wishes)

    async def scenario() -> None:
        with pytest.raises(geartrain.UnsupportedError, match=why):
            await client.submit("f", **wishes)

    play(scenario)
    with geartrain.Client(nobody) as plain, pytest.raises(geartrain.UnsupportedError, match=why):
        plain.submit("f", **wishes)


def test_a_function_with_nul() -> None:
    with pytest.raises(geartrain.UnsupportedError, match="no NUL"):
        geartrain.AsyncClient("gearman://127.0.0.1:9").order("a\0b")


def test_rescheduling_by_a_gearman_worker_fails_the_job_with_the_reason(
    ours: serving.ServerProcess, function: str
) -> None:
    async def again(job: geartrain.Job) -> None:
        job.reschedule(1)

    async def scenario() -> None:
        async with geartrain.AsyncClient(ours.url) as client, working(ours.url, **{function: again}):
            with pytest.raises(
                geartrain.JobFailedError, match="UnsupportedError: gearman does not support rescheduling"
            ):
                await client.run(function)

    play(scenario)


def test_urls_that_make_no_sense() -> None:
    for urls, why in (
        ((), "at least one URL"),
        (("gearman://a", "periodic://b"), "all of the same protocol"),
        (("amqp://a",), "unsupported scheme"),
        (("gearman://",), "has no host"),
    ):
        with pytest.raises(geartrain.AddressError, match=why):
            geartrain.AsyncClient(*urls)
    with pytest.raises(geartrain.AddressError, match="at least one URL"):
        geartrain.AsyncWorker()
    with pytest.raises(ValueError, match="thread, process, inline"):
        geartrain.AsyncWorker("gearman://a", mode="fork")
    with pytest.raises(ValueError, match="at least one job"):
        geartrain.AsyncWorker("gearman://a", concurrency=0)


def test_a_job_of_another_server() -> None:
    client = geartrain.AsyncClient("gearman://127.0.0.1:9")
    with pytest.raises(geartrain.AddressError, match="none of this client's servers"):
        client.job("H:x:1", server="gearman://127.0.0.2:9")


def test_every_capability_has_a_name_and_a_protocol() -> None:
    assert set(FEATURES) == set(Capabilities._fields)
    for capability in Capabilities._fields:
        assert registry.protocols_with(capability), capability


def test_a_job_that_was_not_acknowledged_has_no_status() -> None:
    async def scenario() -> None:
        server = PooledServer(address.parse("gearman://127.0.0.1:9"), Client, Credentials())
        submissions = Submissions(ServerPool([server]), "gearman", Client.capabilities, patience=0.0)
        job = geartrain.AsyncJob(submissions, Order(b"f"), resubmit=False)
        with pytest.raises(geartrain.ClientError, match="not acknowledged"):
            await job.status()

    asyncio.run(scenario())
