"""An engine at a fixed time, with a recording journal."""

import pytest

from geartrain.engine.engine import Engine
from tests.unit.engine.recording import NOW, RecordingJournal, RecordingWatcher


@pytest.fixture
def journal() -> RecordingJournal:
    return RecordingJournal()


@pytest.fixture
def engine(journal: RecordingJournal) -> Engine:
    engine = Engine(journal=journal)
    engine.now = NOW
    return engine


@pytest.fixture
def watcher() -> RecordingWatcher:
    return RecordingWatcher()
