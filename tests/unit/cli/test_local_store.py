"""The verbs for a store: which store they use, and how they fail."""

import os
import re
from pathlib import Path

import pytest

from geartrain.store.sqlite import SqliteStore
from tests.unit.cli.conftest import Run
from tests.unit.cli.stores import fill, job

VERBS = ("dump", "load", "doctor", "compact")


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_examples(run: Run, verb: str) -> None:
    code, out, _ = run(verb, "--help")
    text = re.sub(r"[│\s]+", " ", out)
    assert code == 0
    assert f"Examples • geartrain {verb}" in text
    assert "--store" in text
    assert "--config" in text
    assert "…" not in text


def test_verbs_are_listed(run: Run) -> None:
    text = run("--help").out
    for verb in VERBS:
        assert re.search(rf"^│ {verb} ", text, re.MULTILINE)


@pytest.mark.parametrize("words", [["dump"], ["compact"]])
def test_missing_store_is_one_line(run: Run, path: Path, words: list[str]) -> None:
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert err.startswith(f"geartrain: {path} does not exist; name the store with --store.")
    assert err.count("\n") == 1
    assert not path.parent.exists()


@pytest.mark.parametrize("words", [["dump"], ["compact"], ["load", "-"]])
def test_memory_store_has_no_file(run: Run, words: list[str]) -> None:
    code, out, err = run(*words, "--store", "memory")
    assert (code, out) == (1, "")
    assert err.startswith("geartrain: a memory store has no file")


@pytest.mark.parametrize("verb", VERBS)
def test_wrong_settings_are_reported(run: Run, verb: str) -> None:
    words = ["-"] if verb == "load" else []
    code, out, err = run(verb, *words, "--store", "mysql://here")
    assert code == 1
    allowed = "must be memory, sqlite:///path/to/file or postgresql://user@host/database"
    assert f"--store mysql://here: {allowed}" in " ".join((out + err).split())


def test_store_comes_from_flag_environment_or_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(("file", "environment", "flag"), start=1):
        fill(tmp_path / f"{name}.db", *(job(id) for id in range(1, number + 1)))
    config = tmp_path / "other.toml"
    config.write_text(f'store = "sqlite://{tmp_path}/file.db"\n')
    assert run("dump", "--config", config).out.count('"job"') == 1
    monkeypatch.setenv("GEARTRAIN_STORE", f"sqlite://{tmp_path}/environment.db")
    assert run("dump", "--config", config).out.count('"job"') == 2
    assert run("dump", "--config", config, "--store", f"sqlite://{tmp_path}/flag.db").out.count('"job"') == 3


@pytest.mark.parametrize("words", [["compact"], ["load", "-"]])
def test_store_that_is_in_use_names_its_process(run: Run, held: SqliteStore, words: list[str]) -> None:
    code, _, err = run(*words)
    assert code == 1
    assert err == f"geartrain: {held.path} is in use by process {os.getpid()}; stop it, or use another file\n"
