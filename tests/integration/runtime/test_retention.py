"""One failed job is still there, whole, after more good ones than there may be records."""

import asyncio
from pathlib import Path

import pytest

from geartrain.engine.engine import Engine, PollingWorker
from geartrain.runtime.committer import Committer
from geartrain.runtime.memory_journal import MemoryJournal
from geartrain.runtime.tick import TickLoop
from geartrain.server import options
from geartrain.server.config.settings import Settings
from geartrain.store.contract import Query
from geartrain.store.memory import MemoryStore
from geartrain.store.sqlite import SqliteStore

GOOD = 120_000
RETENTION = options.retention(Settings())


def work(engine: Engine, first: int, last: int) -> None:
    """The job number 0 fails, all others are done."""
    worker = PollingWorker("test")
    engine.register(worker, b"f")
    for number in range(first, last):
        engine.submit(b"f", payload=b"%d" % number, background=True)
        job = engine.claim(worker)
        assert job is not None
        if number:
            engine.complete(worker, job, b"")
        else:
            engine.raise_exception(worker, job, b"bad input")
    engine.remove_worker(worker)


async def fill(store: SqliteStore) -> None:
    """In batches, as they come from the ticks of a server."""
    committer = Committer(store, RETENTION)
    engine = Engine(first_id=store.open(), journal=committer)
    tick_loop = TickLoop(asyncio.get_running_loop(), engine, lambda: 1_800_000_000.0)
    committer.start(tick_loop)
    for first in range(0, GOOD + 1, 5000):
        tick_loop.begin_tick()
        work(engine, first, min(first + 5000, GOOD + 1))
        await tick_loop.durable()
    await committer.stop()
    tick_loop.close()


def check(store: SqliteStore | MemoryStore) -> None:
    (failed,) = store.records(Query(state=4))
    assert failed.reason == "bad input"
    assert store.payloads([failed.id], 10)[failed.id].data == b"0"


def test_sqlite(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "jobs.db")
    asyncio.run(fill(store))
    while store.prune(1_800_000_000.0, RETENTION):
        pass
    assert len(store.records(Query(limit=GOOD))) == RETENTION.done.most + 1
    check(store)
    store.close(10**9)


def test_memory() -> None:
    store = MemoryStore()
    journal = MemoryJournal(store, RETENTION)
    engine = journal.engine = Engine(journal=journal)
    engine.now = 1_800_000_000.0
    work(engine, 0, GOOD + 1)
    assert len(store.records(Query(limit=GOOD))) == pytest.approx(RETENTION.done.most, rel=0.15)
    check(store)
