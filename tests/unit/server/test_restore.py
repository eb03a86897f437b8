"""Which store a setting names, and where jobs are kept when nobody says."""

from pathlib import Path

import pytest

from geartrain.errors import StartError
from geartrain.server import restore
from geartrain.store.memory import MemoryStore
from geartrain.store.sqlite import SqliteStore


def test_memory() -> None:
    assert isinstance(restore.make("memory", 1024), MemoryStore)


def test_sqlite(tmp_path: Path) -> None:
    store = restore.make(f"sqlite://{tmp_path}/some%20jobs.db", 1024)
    assert isinstance(store, SqliteStore)
    store.open()
    store.close(1)
    assert (tmp_path / "some jobs.db").exists()


@pytest.mark.parametrize("url", ["disk", "sqlite:///", "sqlite://host/jobs.db", "postgres:///jobs"])
def test_no_such_store(url: str) -> None:
    with pytest.raises(StartError, match=r"there is no store .*; use memory, or sqlite:///"):
        restore.make(url, 1024)


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({"STATE_DIRECTORY": "/var/lib/geartrain", "HOME": "/"}, "sqlite:///var/lib/geartrain/jobs.db"),
        ({"STATE_DIRECTORY": "/var/lib/a:/var/lib/b"}, "sqlite:///var/lib/a/jobs.db"),
        ({"XDG_STATE_HOME": "/state", "HOME": "/home/ann"}, "sqlite:///state/geartrain/jobs.db"),
        ({"HOME": "/home/ann"}, "sqlite:///home/ann/.local/state/geartrain/jobs.db"),
    ],
)
def test_usual_place(environment: dict[str, str], url: str) -> None:
    assert restore.default_url(environment) == url
