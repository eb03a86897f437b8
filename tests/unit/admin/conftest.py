"""A steward over an engine at a fixed time, on a site that is whatever the test says."""

import dataclasses
from typing import Any

import pytest

from geartrain.admin.service import Admin
from geartrain.admin.views import StoreView, System
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Journal
from geartrain.job_query import JobQuery
from geartrain.model import Record
from geartrain.runtime.tick import TickLoop
from tests.support.eager_loop import EagerLoop

NOW = 1_800_000_000.0  # 15 January 2027, 08:00 UTC


class Keeper(Journal):
    """A journal that keeps values, and tells what came in one go with them."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.calls: list[str] = []

    def accepted(self, job: object) -> None:
        self.calls.append("accepted")

    def save_value(self, name: str, value: bytes) -> None:
        self.calls.append("kept")
        self.kept[name] = value


@dataclasses.dataclass
class FakeSite:
    """Time is what the test sets."""

    now: float = NOW

    def tick_loop(self, engine: Engine) -> TickLoop:
        loop: Any = EagerLoop()
        return TickLoop(loop, engine, lambda: self.now)

    def connections(self) -> int:
        return 3

    async def system(self) -> System:
        store = StoreView("memory", False, None, 0, 0, None, None)
        return System("1", False, "3", "asyncio", "test", 1, NOW, 1, [], store)


class FakeArchive:
    """Records in a list."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    async def find(self, handle: bytes) -> Record | None:
        return next((record for record in self.records if record.handle == handle), None)

    async def newest(self, query: JobQuery, limit: int) -> list[Record]:
        matching = [
            record
            for record in self.records
            if (query.state is None or record.state == query.state) and (not query.below or record.id < query.below)
        ]
        return sorted(matching, key=lambda record: -record.id)[:limit]


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


@pytest.fixture
def engine(keeper: Keeper) -> Engine:
    engine = Engine(journal=keeper)
    engine.now = NOW
    return engine


@pytest.fixture
def server() -> FakeSite:
    return FakeSite()


@pytest.fixture
def tick_loop(engine: Engine, server: FakeSite) -> TickLoop:
    return server.tick_loop(engine)


@pytest.fixture
def archive() -> FakeArchive:
    return FakeArchive()


@pytest.fixture
def admin(tick_loop: TickLoop, server: FakeSite, archive: FakeArchive, keeper: Keeper) -> Admin:
    return Admin(tick_loop, server, archive, keeper.kept)


def restarted(engine: Engine, server: FakeSite, keeper: Keeper) -> tuple[Engine, Admin]:
    """The same server after a stop, with what was kept."""
    again = Engine(journal=keeper, first_id=engine.next_id)
    return again, Admin(server.tick_loop(again), server, FakeArchive(), dict(keeper.kept))
