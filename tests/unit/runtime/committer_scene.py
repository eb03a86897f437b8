"""A committer at work: engine, connections and a real store whose commits can be made to wait or to fail."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from geartrain.doors.connection import Connection
from geartrain.doors.door import Door, Limits
from geartrain.engine.engine import Engine, PollingWorker
from geartrain.engine.job import LiveJob
from geartrain.errors import StoreError
from geartrain.runtime.committer import Committer
from geartrain.runtime.tick import TickLoop
from geartrain.store.contract import COMMITTED, Batch, CommitOutcome, Quota, Retention
from geartrain.store.sqlite import SqliteStore
from tests.contract.stores.factories import ids

PATIENCE = 60.0
NOW = 1_800_000_000.0


class GatedStore(SqliteStore):
    """A real store whose commits can be made to wait, or to fail."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._permits: threading.Semaphore | None = None
        self.failures: list[Exception] = []  # for the next commits, one each
        self.outcomes: list[CommitOutcome] = []  # of the next commits that succeed, as a shared store would return them
        self.tried: list[Batch] = []
        self.entered = threading.Semaphore(0)  # counts commits that have begun
        self.pruned: list[Retention] = []

    def hold(self) -> None:
        """From now on every commit waits."""
        self._permits = threading.Semaphore(0)

    def let_one(self) -> None:
        """One commit may go on."""
        assert self._permits is not None
        self._permits.release()

    def let_all(self) -> None:
        """No commit waits any more."""
        if self._permits is not None:
            self._permits.release(1000)

    def commit(self, batch: Batch) -> CommitOutcome:
        self.tried.append(batch)
        self.entered.release()
        if self._permits is not None:
            assert self._permits.acquire(timeout=PATIENCE)
        if self.failures:
            raise self.failures.pop(0)
        super().commit(batch)
        return self.outcomes.pop(0) if self.outcomes else COMMITTED

    def prune(self, now: float, retention: Retention) -> int:
        self.pruned.append(retention)
        return super().prune(now, retention)


class Wire:
    """The other end of a connection: what was sent to it, write by write."""

    def pause_reading(self) -> None:
        """Nothing is read from here anyway."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.closed = False

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def get_extra_info(self, name: str) -> object:
        return ("127.0.0.1", 1)

    def write(self, data: bytes) -> None:
        self.heard.append(data)

    def close(self) -> None:
        self.closed = True


class Scene:
    """An engine, a committer and connections in a running loop."""

    def __init__(self, store: GatedStore) -> None:
        self.store = store
        self.committer = Committer(store, Retention(Quota(60.0, 1000), Quota(600.0, 100)))
        self.engine = Engine(first_id=store.open(), journal=self.committer)
        self.engine.now = NOW
        self.tick_loop = TickLoop(asyncio.get_running_loop(), self.engine, lambda: NOW)
        self.door = Door(self.tick_loop, Limits())
        self.worker = PollingWorker("test")
        self.engine.register(self.worker, b"f")

    def connect(self, kind: type[Connection] = Connection) -> tuple[Connection, Wire]:
        wire = Wire()
        connection = kind(self.door)
        connection.connection_made(wire)  # type: ignore[arg-type]
        return connection, wire

    def submit(self, connection: Connection, name: bytes, **options: Any) -> LiveJob:
        """Submit a background job; its name is acknowledged, or its name with `no ` before it."""
        job = self.engine.submit(b"f", payload=name, background=True, **options)
        connection.acknowledge(name, b"no " + name)
        return job

    async def writing(self) -> None:
        """Until a commit has begun."""
        await asyncio.get_running_loop().run_in_executor(None, self.store.entered.acquire, True, PATIENCE)

    async def until(self, condition: Callable[[], bool]) -> None:
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while not condition():
            assert asyncio.get_running_loop().time() < deadline, "never happened"
            await asyncio.sleep(0.001)

    async def idle(self) -> None:
        """Until everything that was journalled so far was tried."""
        await self.ticks()
        await self.until(lambda: self.committer._writing is None and self.committer._gather_timer is None)

    async def ticks(self) -> None:
        """So many that whatever would happen at once has happened."""
        for _ in range(5):
            await asyncio.sleep(0)


@asynccontextmanager
async def scene(path: Path) -> AsyncIterator[Scene]:
    made = Scene(GatedStore(path))
    made.committer.start(made.tick_loop)
    made.store.tried.clear()
    made.store.entered = threading.Semaphore(0)
    try:
        yield made
    finally:
        made.store.let_all()
        await made.committer.stop()
        made.tick_loop.close()
        made.store.close(made.engine.next_id)


Story = Callable[[Scene], Coroutine[Any, Any, None]]


def play(path: Path, story: Story) -> None:
    """Run a story in a loop of its own."""

    async def run() -> None:
        async with scene(path) as made:
            await asyncio.wait_for(story(made), 2 * PATIENCE)

    asyncio.run(run())


def kept(path: Path) -> list[int]:
    """The jobs in the file, after a stop."""
    store = SqliteStore(path)
    store.open()
    found = ids(store)
    store.close(1)
    return found


def failures(count: int) -> list[Exception]:
    return [StoreError("cannot write: disk I/O error") for _ in range(count)]
