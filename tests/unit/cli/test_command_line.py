"""Command lines that are parsed without typer: they mean the same to typer, and whatever is unusual is left to it."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from geartrain.admin import verbs
from geartrain.cli import (
    command_line,
    connection_options,
    parameters,
    parameters_for_typer,
    status,
    submit,
    verb_modules,
    version,
)
from geartrain.cli.parameters import VerbOption
from tests.unit.cli.conftest import Run

VERBS: dict[str, Callable[..., None]] = {
    name: connection_options.extended(function)
    for name, function in (("submit", submit.submit), ("status", status.status), ("version", version.version))
}
OPTIONS = {
    name: [
        option
        for parameter in parameters.of(function)
        if isinstance(parameter.about, VerbOption)
        for option in parameter.about.names_of(parameter.name)
    ]
    for name, function in VERBS.items()
}
VALUES = ["", "x", "-", "5", "0", "-5", "--", "high", "HIGH", "cancel", "1.5", " 7 ", "a=b", "\udcff", "-w", "--help"]


class ByTyper:
    """A verb that typer parses, and that returns the values which it is called with."""

    def __init__(self, function: Callable[..., None]) -> None:
        @functools.wraps(function)
        def record(**values: Any) -> None:
            self._values = values

        record.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        app = typer.Typer()
        app.command("verb")(parameters_for_typer.converted(record))
        app.command("other")(lambda: None)  # with a single one, typer makes it the whole command
        self._command = typer.main.get_command(app)

    def parse(self, words: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any] | None:
        self._values: dict[str, Any] | None = None
        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Exception):  # typer's, for wrong usage
            for name, value in environment.items():
                patch.setenv(name, value)
            self._command.main(["verb", *words], "geartrain", standalone_mode=False)
        return self._values


BY_TYPER = {name: ByTyper(function) for name, function in VERBS.items()}


@pytest.mark.parametrize("verb", VERBS)
@given(data=st.data())
def test_what_is_parsed_means_the_same_to_typer(verb: str, data: st.DataObject) -> None:
    option = st.sampled_from(OPTIONS[verb])
    value = st.sampled_from(["x", "5", "low", "run"]) | st.sampled_from(VALUES)
    piece = (
        st.tuples(option, value)
        | st.tuples(option)
        | st.tuples(value)
        | st.tuples(st.builds("{}={}".format, option, value))
    )
    words = [word for piece in data.draw(st.lists(piece, max_size=4)) for word in piece]
    environment = data.draw(st.sampled_from([{}, {"GEARTRAIN_SERVER": ""}, {"GEARTRAIN_SERVER": "http://a"}]))
    direct = command_line.parse(VERBS[verb], words, environment)
    if direct is not None:
        assert direct == BY_TYPER[verb].parse(words, environment)


@pytest.mark.parametrize(
    "words",
    [
        "submit reverse",
        "submit reverse hello",
        "submit reverse -",
        "submit --unique k reverse --priority=low hello --server http://a -w --json",
        "submit report --after H:a:1 --after H:a:2 --on-failure run --file x.bin",
        "submit x -s gearmans://a --token-file t --tls-ca c --tls-certificate d --tls-key e",
        "submit x --unique a --unique b --priority low --priority high --wait --wait",
        "status",
        "status resize --sort queued --limit 10 --local --json -s gearman://a",
        "version",
        "version --json",
    ],
)
def test_usual_command_lines_need_no_typer(words: str) -> None:
    verb, *rest = words.split()
    direct = command_line.parse(VERBS[verb], rest, {})
    assert direct is not None
    assert direct == BY_TYPER[verb].parse(rest, {})
    assert command_line.find(words.split(), {}) is not None


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--version",
        "nonsense",
        "gearmand",
        "serve",
        "cancel H:a:1",
        "submit",
        "submit --help",
        "submit x -h",
        "submit x y z",
        "submit x --bogus",
        "submit x --uni k",
        "submit x --unique",
        "submit x --unique -5",
        "submit x --priority urgent",
        "submit x -wj",
        "submit -- x",
        "submit x --json=yes",
        "status --limit many",
        "status --limit 0",
    ],
)
def test_everything_else_is_typers(words: str) -> None:
    assert command_line.find(words.split(), {}) is None


def test_completion_is_typers() -> None:
    assert command_line.find(["version"], {command_line.COMPLETION_VARIABLE: "complete_bash"}) is None


def test_a_mistake_that_the_verb_finds_is_told_like_every_other(run: Run) -> None:
    outcome = run("submit", "x", "y", "--file", "z")
    assert outcome.code == 2
    assert "geartrain submit [OPTIONS]" in outcome.err
    assert "PAYLOAD and --file cannot be used together" in outcome.err
    hinted = run("submit", "x", "--delay", "soon")
    assert "Invalid value for --delay: 'soon' is not a duration" in " ".join(hinted.err.replace("│", " ").split())


def test_every_operators_verb_has_its_module() -> None:
    names = {verb.command.name for verb in verbs.VERBS.values() if verb.command and not verb.command.group}
    assert names == {name for name, module in verb_modules.VERBS.items() if module == "job_verbs"}


@pytest.mark.parametrize("verb", sorted(verb_modules.VERBS.keys() - VERBS.keys()))
def test_verbs_that_use_typer_are_left_to_it(verb: str) -> None:
    """They end with its exceptions, which nobody else handles."""
    assert command_line.find([verb], {}) is None
