"""A rolling upgrade: each of three servers stops gracefully and starts again, under load."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

from geartrain.client.async_client import AsyncClient
from geartrain.client.async_worker import AsyncWorker
from geartrain.client.job import Job
from geartrain.model import JobState
from tests.acceptance.cluster.conftest import POSTGRESQL
from tests.chaos.members import Fleet, Member
from tests.support import postgres, serving
from tests.support.waiting import PATIENCE

pytestmark = POSTGRESQL

SERVERS = ("one", "two", "three")
CLIENTS = 3  # of each kind
JOB_SECONDS = 0.02
BETWEEN = 10  # jobs that each client waits for before the next step


class Load:
    """Clients that submit one job after the other, and workers that run them, at all servers."""

    def __init__(self, urls: list[str]) -> None:
        self._urls = urls
        self._stopping = False
        self.runs: Counter[bytes] = Counter()  # by payload
        self.results: Counter[bytes] = Counter()
        self.handles: list[str] = []  # of background jobs
        self.progress = asyncio.Semaphore(0)  # released by every job

    async def work(self, job: Job) -> bytes:
        await asyncio.sleep(JOB_SECONDS)  # the time that a job takes
        self.runs[job.payload] += 1
        return job.payload

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        worker = AsyncWorker(*self._urls, concurrency=4)
        worker.register("f", self.work)
        async with worker, asyncio.TaskGroup() as tasks:
            for number in range(CLIENTS):
                tasks.create_task(self._submit(f"background {number}", background=True))
                tasks.create_task(self._submit(f"foreground {number}", background=False))
            yield
            self._stopping = True

    async def _submit(self, name: str, background: bool) -> None:
        async with AsyncClient(*self._urls, cluster=True) as client:
            number = 0
            while not self._stopping:
                number += 1
                payload = f"{name} {number}".encode()
                job = await client.submit("f", payload, background=background, resubmit=True)
                self.results[await job.result(PATIENCE)] += 1
                if background:
                    self.handles.append(job.handle)
                self.progress.release()

    async def go_on(self) -> None:
        """Some more jobs have ended."""
        for _ in range(BETWEEN * CLIENTS):
            await self.progress.acquire()


def drain(member: Member, other: Member, folder: Path) -> None:
    """Have another server ask for it, as an operator does."""
    url = f"gearman://{serving.HOST}:{other.port}"
    done = serving.run_command(folder, "cluster", "drain", member.name, "--server", url)
    assert (done.returncode, done.stderr) == (0, "")
    member.wait()


def test_rolling_upgrade(cluster: postgres.Cluster, schema: str, tmp_path: Path) -> None:
    """Clients and workers see nothing but reconnects, and every job runs with one attempt."""
    store = cluster.url(schema=schema)
    with Fleet([Member(name, store) for name in SERVERS]) as fleet:
        load = Load([f"gearman://{serving.HOST}:{port}" for port in fleet.ports()])

        async def scenario() -> None:
            async with load.running():
                for member, other in zip(fleet.members, fleet.members[1:] + fleet.members[:1], strict=True):
                    await load.go_on()
                    await asyncio.to_thread(drain, member, other, tmp_path)
                    await load.go_on()
                    await asyncio.to_thread(member.start)
                await load.go_on()

        asyncio.run(scenario())
        assert set(load.results.values()) == {1}
        assert load.runs.keys() == load.results.keys()
    rows = cluster.query(f"SELECT handle, state, attempts FROM {schema}.records")
    assert Counter((state, attempts) for _, state, attempts in rows).keys() == {(JobState.DONE, 1)}
    assert {bytes(handle).decode() for handle, *_ in rows} >= set(load.handles)
