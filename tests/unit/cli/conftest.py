"""The command with its own home directory, and the store there."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from geartrain.cli import main
from geartrain.store.sqlite import SqliteStore
from tests.unit.cli import stores


class Outcome(NamedTuple):
    """Exit code and output of the command."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> Run:
    """Runs the command. Its settings file has a free port."""
    config = tmp_path / "geartrain.toml"
    config.write_text('listen = ["gearman://127.0.0.1:0"]\n')
    for name in [name for name in os.environ if name.startswith(("GEARTRAIN_", "XDG_", "STATE_"))]:
        monkeypatch.delenv(name)
    home = {"HOME": tmp_path, "GEARTRAIN_CONFIG": config, "SQLITE_TMPDIR": tmp_path}
    for name, value in {**home, "COLUMNS": 100, "NO_COLOR": 1}.items():
        monkeypatch.setenv(name, str(value))

    def run(*words: str | Path) -> Outcome:
        monkeypatch.setattr("sys.argv", ["geartrain", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main.main()
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        assert b"Traceback" not in err
        return Outcome(int(end.value.code or 0), out.decode(), err.decode())

    return run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The default path of the store."""
    return tmp_path / ".local" / "state" / "geartrain" / "jobs.db"


@pytest.fixture
def held(path: Path) -> Iterator[SqliteStore]:
    """A store that is open."""
    store = SqliteStore(path)
    store.open()
    yield store
    store.close(stores.NEXT_ID)
