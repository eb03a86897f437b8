"""Admin over an engine at a fixed time, with a server and an archive that the test controls."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from geartrain.admin.service import Admin
from geartrain.admin.views import StoreView, System, UserView
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Journal
from geartrain.engine.job import LiveJob
from geartrain.job_query import JobQuery
from geartrain.model import FailedPayload, JobState, Record
from geartrain.runtime.tick import TickLoop
from tests.support.eager_loop import EagerLoop

NOW = 1_800_000_000.0  # 15 January 2027, 08:00 UTC


class SavingJournal(Journal):
    """A journal that saves values, and records the order of calls."""

    def __init__(self) -> None:
        self.saved: dict[str, bytes] = {}
        self.calls: list[str] = []
        self.removed: list[int] = []

    def remove_record(self, id: int) -> None:
        self.removed.append(id)

    def accepted(self, job: object) -> None:
        self.calls.append("accepted")

    def save_value(self, name: str, value: bytes) -> None:
        self.calls.append("saved")
        self.saved[name] = value


@dataclasses.dataclass
class FakeServer:
    """A server whose time the test sets."""

    now: float = NOW
    cluster = None

    def tick_loop(self, engine: Engine) -> TickLoop:
        loop: Any = EagerLoop()
        return TickLoop(loop, engine, lambda: self.now)

    def connections(self) -> int:
        return 3

    def kept_seconds(self, state: JobState) -> float | None:
        return {JobState.DONE: 60.0, JobState.FAILED: 3600.0}.get(state)

    def users(self) -> list[UserView]:
        return []

    async def system(self) -> System:
        store = StoreView("memory", False, None, 0, 0, None, None)
        return System("1", False, "3", "asyncio", "test", 1, NOW, 1, [], store)


class FakeArchive:
    """Records in a list, and the payloads of failed jobs by id."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.kept: dict[int, bytes] = {}
        self.logs: dict[int, bytes] = {}

    async def payloads(self, records: Sequence[Record], longest: int) -> dict[int, FailedPayload]:
        kept = {record.id: self.kept[record.id] for record in records if record.id in self.kept}
        return {id: FailedPayload(len(payload), payload[:longest]) for id, payload in kept.items()}

    async def failed_jobs(self, records: Sequence[Record]) -> list[LiveJob | None]:
        return [_failed_job(record, self.kept[record.id]) if record.id in self.kept else None for record in records]

    async def log(self, id: int) -> bytes:
        return self.logs.get(id, b"")

    async def result(self, record: Record) -> bytes:
        return record.result

    async def find(self, handle: bytes) -> Record | None:
        return next((record for record in self.records if record.handle == handle), None)

    async def newest(self, query: JobQuery, limit: int) -> list[Record]:
        matching = [
            record
            for record in self.records
            if (query.state is None or record.state == query.state)
            and (not query.below or record.id < query.below)
            and query.matches_reason(record.state, record.reason)
        ]
        return sorted(matching, key=lambda record: -record.id)[:limit]


def _failed_job(record: Record, payload: bytes) -> LiveJob:
    job = LiveJob(
        record.id, record.handle, record.function, record.unique, payload, record.priority, True,
        record.submitted_at, record.submitted_at, record.door,
    )  # fmt: skip
    job.state = JobState.FAILED
    return job


@pytest.fixture
def journal() -> SavingJournal:
    return SavingJournal()


@pytest.fixture
def engine(journal: SavingJournal) -> Engine:
    engine = Engine(journal=journal)
    engine.now = NOW
    return engine


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def tick_loop(engine: Engine, server: FakeServer) -> TickLoop:
    return server.tick_loop(engine)


@pytest.fixture
def archive() -> FakeArchive:
    return FakeArchive()


@pytest.fixture
def admin(tick_loop: TickLoop, server: FakeServer, archive: FakeArchive, journal: SavingJournal) -> Admin:
    return Admin(tick_loop, server, archive, journal.saved)


def restarted(engine: Engine, server: FakeServer, journal: SavingJournal) -> tuple[Engine, Admin]:
    """The same server after a restart, with the values that it saved."""
    again = Engine(journal=journal, first_id=engine.next_id)
    return again, Admin(server.tick_loop(again), server, FakeArchive(), dict(journal.saved))
