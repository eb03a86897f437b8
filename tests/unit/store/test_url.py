"""Store URLs: which store a URL names, and where the default store is."""

from pathlib import Path

import pytest

from geartrain.errors import StoreError
from geartrain.store import url
from geartrain.store.contract import ResultLimits
from geartrain.store.memory import MemoryStore
from geartrain.store.postgresql_connection import Target
from geartrain.store.sqlite import SqliteStore


def test_memory() -> None:
    assert isinstance(url.create_store("memory", ResultLimits()), MemoryStore)


def test_sqlite(tmp_path: Path) -> None:
    store = url.create_store(f"sqlite://{tmp_path}/some%20jobs.db", ResultLimits())
    assert isinstance(store, SqliteStore)
    store.open()
    store.close(1)
    assert (tmp_path / "some jobs.db").exists()


@pytest.mark.parametrize("name", ["disk", "sqlite:///", "sqlite://host/jobs.db", "postgres:///jobs"])
def test_unsupported_store(name: str) -> None:
    with pytest.raises(StoreError, match=rf"unsupported store '{name}': use memory, sqlite:///"):
        url.create_store(name, ResultLimits())


@pytest.mark.parametrize(
    "name",
    [
        "postgresql://ada@db1,db2/jobs?target_session_attrs=read-write",
        "postgresql://ada@[2001:db8::1]:5433/jobs",
        "postgresql:///jobs?host=/run/postgresql",
        "postgresql://?service=jobs",
        "postgresql://",
    ],
)
def test_postgresql_gets_the_url_as_it_is(name: str) -> None:
    assert url.shown(name) == name
    assert Target.of(name).conninfo == name


def test_the_schema_is_not_for_postgresql() -> None:
    assert Target.of("postgresql:///jobs?schema=mail&host=/run").conninfo == "postgresql:///jobs?host=/run"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"STATE_DIRECTORY": "/var/lib/geartrain", "HOME": "/"}, "sqlite:///var/lib/geartrain/jobs.db"),
        ({"STATE_DIRECTORY": "/var/lib/a:/var/lib/b"}, "sqlite:///var/lib/a/jobs.db"),
        ({"XDG_STATE_HOME": "/state", "HOME": "/home/ann"}, "sqlite:///state/geartrain/jobs.db"),
        ({"HOME": "/home/ann"}, "sqlite:///home/ann/.local/state/geartrain/jobs.db"),
    ],
)
def test_default_store(environment: dict[str, str], expected: str) -> None:
    assert url.default_url(environment) == expected


def test_empty_url_is_the_default_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    store = url.create_store("", ResultLimits())
    assert isinstance(store, SqliteStore)
    assert store.path == tmp_path / "jobs.db"
