"""What Capabilities deny is an UnsupportedError of the library and sends nothing; so is a name that is not allowed.

Questions about a job are different: a Geartrain server answers them with control jobs, see test_later.py.
"""

import asyncio
import time
from typing import Any

import pytest

import geartrain
from geartrain.address import parse
from geartrain.client.job_events import Completed
from geartrain.client.order import Order
from geartrain.client.protocols import registry
from geartrain.errors import ClientError, NoWorkersError, UnsupportedError
from tests.contract.protocols.targets import Target
from tests.support.protocol_ends import WorkerEnd, async_test, connected_client, connected_worker, new_name

WISHES: dict[str, dict[str, Any]] = {
    "background": {"background": True},
    "priority": {"priority": "high"},
    "unique": {"unique": "key"},
    "run_at": {"at": time.time() + 3600, "background": True},
    "timeout": {"timeout": 60.0},
    "expires": {"expires": 60.0, "background": True},
    "keep_for": {"keep_for": 60.0, "background": True},
    "partition": {"partition": "acme", "background": True},
}
QUESTIONS = {"status": "status", "cancel": "cancel", "result_later": "result"}
ODD_NAMES = (
    b"",
    b"\xff",
    b"f" * 255,
    b"f" * 256,
    b"-flag with space",
    b"colon:slash/query?fragment#%20",
    "größe".encode(),
)


@async_test
async def test_what_is_denied_is_refused_and_harms_nothing(target: Target, url: str) -> None:
    function = new_name()
    async with geartrain.AsyncClient(url) as client, connected_worker(url, function) as worker:
        for capability, wishes in WISHES.items():
            if getattr(target.can, capability):
                client.order(function, **wishes)
            else:
                with pytest.raises(UnsupportedError, match=f"^{target.protocol} "):
                    await client.submit(function, **wishes)
        for capability, question in QUESTIONS.items():
            if not getattr(target.can, capability) and target.server != "geartrain":
                with pytest.raises(UnsupportedError, match=f"^{target.protocol} "):
                    await getattr(client.job("1", function), question)()
        job = await _submitted(client, function)
        worker.complete(await worker.job(), b"done")
        assert await job.result() == b"done"


async def _submitted(client: geartrain.AsyncClient, function: bytes) -> geartrain.AsyncJob:
    """Submit, again if the server has not heard of the worker yet and does not wait for one."""
    while True:
        try:
            return await client.submit(function)
        except NoWorkersError:
            await asyncio.sleep(0.01)


@async_test
async def test_names_that_the_protocol_cannot_express_are_refused(target: Target, url: str) -> None:
    for name in target.refused_names:
        assert registry.client_class(parse(url)).unsupported_reason(Order(name)), name
        with pytest.raises(ClientError):
            await WorkerEnd(url).open(name)
        async with connected_worker(url, new_name()) as worker:
            with pytest.raises(ClientError):
                worker.protocol.register(name, 0.0)


@async_test
async def test_all_other_names_work(target: Target, url: str) -> None:
    names = [name for name in ODD_NAMES if name not in target.refused_names]
    async with connected_client(url) as client, connected_worker(url, *names) as worker:
        for name in names:
            assert not client.protocol.unsupported_reason(Order(name)), name
            listener = await client.accepted(name)
            job = await worker.job()
            assert job.function == name
            worker.complete(job, name)
            assert await listener.ending() == Completed(name)
