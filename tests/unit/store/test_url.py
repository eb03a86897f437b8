"""Store URLs: which store a URL names, and where the default store is."""

import contextlib
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


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("postgresql://ada:secret@db1,db2:5433/jobs", "postgresql://ada@db1,db2:5433/jobs"),
        ("postgresql://ada:sec%2Fret@db/jobs?sslmode=require", "postgresql://ada@db/jobs?sslmode=require"),
        ("postgresql://ada@db/jobs?password=secret&schema=mail", "postgresql://ada@db/jobs?schema=mail"),
        ("postgresql://ada@db/jobs?sslpassword=secret", "postgresql://ada@db/jobs"),
        ("postgresql://ada@db/jobs?pass%77ord=secret", "postgresql://ada@db/jobs"),
        # Characters that should have been escaped.
        ("postgresql://ada:sec/ret@db/jobs", "postgresql://ada@db/jobs"),
        ("postgresql://ada:sec?ret@db/jobs", "postgresql://ada@db/jobs"),
        ("postgresql://ada:sec#ret@db/jobs", "postgresql://ada@db/jobs"),
        ("postgresql://ada:sec@ret@db/jobs", "postgresql://ada@db/jobs"),
        # What is no store of ours is shown in an error.
        ("postgres://ada:secret@db/jobs", "postgres://ada@db/jobs"),
        ("host=db password='sec ret' user=ada", "host=db password=... user=ada"),
    ],
)
def test_passwords_are_not_shown(given: str, expected: str) -> None:
    assert url.shown(given) == expected
    assert url.has_password(given)
    with contextlib.suppress(StoreError):
        assert "ret" not in Target.of(given).shown


@pytest.mark.parametrize(
    "name", ["postgres://ada:xyzzy@db/jobs", "host=db password=xyzzy", "postgresql://a:xyzzy%zz@db/j"]
)
def test_an_error_has_no_password(name: str) -> None:
    with pytest.raises(StoreError) as caught:
        url.create_store(name, ResultLimits())
    assert "xyzzy" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["memory", "sqlite:///srv/a:b/c@d/jobs.db", "postgresql://db:5432/j?application_name=a@b"]
)
def test_what_has_no_password_is_shown_as_it_is(name: str) -> None:
    assert url.shown(name) == name
    assert not url.has_password(name)
