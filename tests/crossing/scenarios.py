"""What happens to a job that enters by one protocol and is run by another.

Each scenario plays one story and returns what came of it, aspect by aspect, in the words of `expectations.py`. Whether
that is right is not its business. A scenario never waits for nothing to happen: that something was not heard is clear
when what was said after it has been heard.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from geartrain import address
from geartrain.client.async_client import AsyncClient
from geartrain.client.job import Job
from geartrain.client.job_events import Data, Progressed, Warned
from geartrain.client.order import Capabilities
from geartrain.client.protocols import registry
from geartrain.errors import JobFailedError, UnsupportedError
from tests.crossing import parties
from tests.crossing.parties import ATTEMPTS, PATIENCE, Bench, House, working
from tests.support.relay import relayed

EVERY_BYTE = bytes(range(256))
LARGE = EVERY_BYTE * (8 * 1024 * 4)  # 8 MiB
WORDS = "there is no such file"
CODE = 77

# Clients of these do not wait for a job, they look at it: nobody notices that they are gone.
OUTLIVED = frozenset({"gearmonkey"})

Outcome = dict[str, str]


class Pair(NamedTuple):
    """Who submits, and who runs."""

    house: House
    client: str
    worker: str

    @property
    def client_url(self) -> str:
        return self.house.urls[self.client]

    @property
    def worker_url(self) -> str:
        return self.house.worker_urls[self.worker]

    @property
    def client_can(self) -> Capabilities:
        return registry.client_class(address.parse(self.client_url)).capabilities

    @property
    def worker_can(self) -> Capabilities:
        return registry.worker_class(address.parse(self.worker_url)).capabilities


async def reverse(job: Job) -> bytes:
    return job.payload[::-1]


async def result(pair: Pair) -> Outcome:
    """Every byte there is, and none at all."""
    bench = Bench()
    async with working(pair.worker_url, bench, reverse), AsyncClient(pair.client_url) as client:
        full = await (await parties.submit(client, bench, EVERY_BYTE)).result(PATIENCE)
        empty = await (await parties.submit(client, bench, b"")).result(PATIENCE)
        unchanged = full == EVERY_BYTE[::-1] and bench.payloads == [EVERY_BYTE, b""] and empty == b""
    return {"result": "unchanged" if unchanged else "changed"}


async def large(pair: Pair) -> Outcome:
    """Eight megabytes, both ways."""
    bench = Bench()
    async with working(pair.worker_url, bench, reverse), AsyncClient(pair.client_url) as client:
        answer = await (await parties.submit(client, bench, LARGE)).result(PATIENCE)
        return {"large": "unchanged" if answer == LARGE[::-1] and bench.payloads == [LARGE] else "changed"}


async def failure(pair: Pair) -> Outcome:
    """A job fails with words and a code."""
    bench = Bench()

    async def fail(job: Job) -> bytes:
        if job.payload == b"probe":
            return b"here"
        raise JobFailedError(WORDS, WORDS, CODE)

    async with working(pair.worker_url, bench, fail), AsyncClient(pair.client_url) as client:
        job = await parties.submit(client, bench, b"fails")
        if not pair.client_can.failure:
            for _ in range(1 if pair.worker_can.failure else ATTEMPTS):
                await bench.begun()
            await (await parties.submit(client, bench, b"probe")).result(PATIENCE)
            heard = "heard" if job.done else "never heard"
            job.forget()
            return {"failure": heard}
        try:
            await job.result(PATIENCE)
        except JobFailedError as error:
            return {"failure": "heard when it is given up" if len(bench.ran) > 1 else _heard(error)}
        return {"failure": "taken for success"}


def _heard(error: JobFailedError) -> str:
    words = WORDS in error.reason or WORDS.encode() in error.data
    if error.code == CODE:
        return "heard with words and code" if words else "heard with its code"
    return "heard with words" if words else "heard"


async def reports(pair: Pair) -> Outcome:
    """A job says how far it is, sends two parts of its result, and a warning."""
    bench = Bench()
    looked = asyncio.Event()

    async def report(job: Job) -> bytes:
        job.data(b"one")
        job.warn(b"careful")
        job.data(b"two")
        job.progress(3, 4)
        await looked.wait()
        return b"whole"

    heard: list[object] = []
    async with working(pair.worker_url, bench, report), AsyncClient(pair.client_url) as client:
        job = await parties.submit(client, bench, b"")
        await bench.begun()
        if not (pair.client_can.progress and pair.worker_can.progress):
            looked.set()
        async with asyncio.timeout(PATIENCE):
            async for event in job.events():
                heard.append(event)
                if isinstance(event, Progressed):
                    looked.set()
    progress = "heard" if Progressed(3, 4) in heard else "not heard"
    parts = [event.data for event in heard if isinstance(event, Data)]
    assert parts in ([], [b"one", b"two"]), parts
    data = "heard" if parts else "not heard"
    warning = "heard" if Warned(b"careful") in heard else "not heard"
    return {"progress": progress, "data": data, "warning": warning}


async def unique(pair: Pair) -> Outcome:
    """Two jobs with the same key are submitted before there is a worker."""
    bench = Bench()
    async with AsyncClient(pair.client_url) as client:
        if not pair.client_can.unique:
            return {"unique": "cannot be said", "key": "cannot be said"}
        for payload in (b"first", b"second"):
            await client.submit(bench.function, payload, background=True, unique="the-key")
        await client.submit(bench.function, b"last", background=True)
        async with working(pair.worker_url, bench, reverse):
            await bench.begun()
            await bench.begun()
            await parties.until(lambda: pair.house.jobs(bench.function) == 0, "all jobs are done")
    how = {(b"first", b"last"): "shared", (b"second", b"last"): "replaced"}
    seen = "seen" if bench.ran[0].unique == "the-key" else "not seen"
    return {"unique": how.get(tuple(bench.payloads), f"as {bench.payloads}"), "key": seen}


async def priority(pair: Pair) -> Outcome:
    """Jobs of every priority are submitted, the low one first, before there is a worker."""
    bench = Bench()
    async with AsyncClient(pair.client_url) as client:
        if not pair.client_can.priority:
            return {"priority": "cannot be said"}
        for level in ("low", "normal", "high"):
            await client.submit(bench.function, level, background=True, priority=level)
        async with working(pair.worker_url, bench, reverse):
            for _ in range(3):
                await bench.begun()
    return {"priority": "kept" if bench.payloads == [b"high", b"normal", b"low"] else "not kept"}


async def partition(pair: Pair) -> Outcome:
    """A tenant has three jobs, another one has one that is submitted last, before there is a worker."""
    bench = Bench()
    async with AsyncClient(pair.client_url) as client:
        try:
            for tenant, number in (("one", 1), ("one", 2), ("one", 3), ("two", 1)):
                await client.submit(bench.function, f"{tenant} {number}", background=True, partition=tenant.encode())
        except UnsupportedError:
            return {"partition": "cannot be said"}
        async with working(pair.worker_url, bench, reverse):
            for _ in range(4):
                await bench.begun()
    turns = [b"one 1", b"two 1", b"one 2", b"one 3"]
    return {"partition": "take turns" if bench.payloads == turns else f"as {bench.payloads}"}


async def after(pair: Pair) -> Outcome:
    """A job of high priority waits for one of low priority."""
    bench = Bench()
    async with AsyncClient(pair.client_url) as client:
        try:
            first = await client.submit(bench.function, b"first", background=True, priority="low")
            await client.submit(bench.function, b"second", background=True, priority="high", after=[first])
        except UnsupportedError:
            return {"after": "cannot be said"}
        async with working(pair.worker_url, bench, reverse):
            for _ in range(2):
                await bench.begun()
    return {"after": "waits" if bench.payloads == [b"first", b"second"] else "does not wait"}


async def background(pair: Pair) -> Outcome:
    """A job is submitted that nobody waits for; its result is asked for later."""
    bench = Bench()
    async with AsyncClient(pair.client_url) as client:
        if not pair.client_can.background:
            return {"background": "cannot be said"}
        job = await client.submit(bench.function, b"abc", background=True)
        async with working(pair.worker_url, bench, reverse):
            await bench.begun()
            if pair.client_can.result_later:
                answer = await job.result(PATIENCE)
                return {"background": "run, and its result kept" if answer == b"cba" else "run, its result lost"}
            await parties.until(lambda: pair.house.jobs(bench.function) == 0, "the job is done")
    return {"background": "run"}


async def worker_lost(pair: Pair) -> Outcome:
    """A worker is lost with a job in its hands, while its client waits."""
    bench = Bench()
    never = asyncio.Event()

    async def hang(job: Job) -> None:
        await never.wait()

    async with (
        relayed(pair.worker_url) as relay,
        AsyncClient(pair.client_url) as client,
        working(relay.url, bench, hang),
    ):
        job = await parties.submit(client, bench, b"abc")
        await bench.begun()
        await relay.cut()
        async with working(pair.worker_url, bench, reverse):
            answer = await job.result(PATIENCE)
    again = answer == b"cba" and bench.payloads == [b"abc", b"abc"]
    return {"worker lost": "run by another" if again else "lost"}


async def client_lost(pair: Pair) -> Outcome:
    """A client that waits for two jobs is lost, while one of them runs and the other one waits."""
    bench = Bench()
    gone = asyncio.Event()

    async def wait(job: Job) -> bytes:
        await gone.wait()
        return b"done"

    async with working(pair.worker_url, bench, wait), relayed(pair.client_url) as relay:
        async with AsyncClient(relay.url, patience=0.0) as client:
            for payload in (b"runs", b"waits"):
                await parties.submit(client, bench, payload)
            await bench.begun()
            await parties.until(lambda: pair.house.jobs(bench.function) == 2, "the server has both jobs")
            await relay.cut()
            if pair.client not in OUTLIVED:
                await parties.until(lambda: pair.house.jobs(bench.function) == 1, "one of them is dropped")
        gone.set()
        async with AsyncClient(pair.house.urls["gearman"]) as another:
            last = await another.submit(bench.function, b"last")
            assert await last.result(PATIENCE) == b"done"  # the worker is none the worse for it
    how = {(b"runs", b"last"): "dropped unless it runs", (b"runs", b"waits", b"last"): "run all the same"}
    return {"client lost": how.get(tuple(bench.payloads), f"as {bench.payloads}")}


Scenario = Callable[[Pair], Awaitable[Outcome]]
SCENARIOS: tuple[Scenario, ...] = (
    result, large, failure, reports, unique, priority, partition, after, background, worker_lost, client_lost,
)  # fmt: skip
