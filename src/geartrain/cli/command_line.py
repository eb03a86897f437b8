"""Calls a verb without typer, where its command line has the usual form; typer gets all others.

Importing typer and building its commands takes several times as long as a submission. So this parser knows little, and
leaves everything that it is not sure about to typer, which then helps, completes or reports the mistake. What this
parser accepts means the same to typer: tests/unit/cli/test_command_line.py compares both.
"""

import enum
import functools
import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from geartrain.cli import parameters, verb_modules
from geartrain.cli.parameters import VerbArgument, VerbOption, VerbParameter

# Shells ask for completion with it.
COMPLETION_VARIABLE: Final = "_GEARTRAIN_COMPLETE"


class _RefusedError(Exception):
    """These words are for typer."""


def find(words: Sequence[str], environment: Mapping[str, str] = os.environ) -> Callable[[], object] | None:
    """The call that a command line means; None if typer has to parse it."""
    if not words or words[0] not in verb_modules.WITHOUT_TYPER or COMPLETION_VARIABLE in environment:
        return None
    module = importlib.import_module(f"geartrain.cli.{words[0]}")
    from geartrain.cli import connection_options

    function = connection_options.extended(getattr(module, words[0]))
    values = parse(function, words[1:], environment)
    return None if values is None else functools.partial(function, **values)


def parse(function: Callable[..., Any], words: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any] | None:
    """The arguments for a verb's function; None if typer has to parse the words."""
    try:
        return _CommandLine(parameters.of(function)).parse(list(words), environment)
    except _RefusedError:
        return None


class _CommandLine:
    """Parses the words of one command line."""

    def __init__(self, declared: Sequence[VerbParameter]) -> None:
        self._parameters = declared
        self._arguments = [parameter for parameter in declared if isinstance(parameter.about, VerbArgument)]
        self._options = {
            name: parameter
            for parameter in declared
            if isinstance(parameter.about, VerbOption)
            for name in parameter.about.names_of(parameter.name)
        }
        self._words: dict[str, list[str]] = {}
        self._flags: set[str] = set()

    def parse(self, words: list[str], environment: Mapping[str, str]) -> dict[str, Any]:
        self._sort(words)
        return {parameter.name: self._value(parameter, environment) for parameter in self._parameters}

    def _sort(self, words: list[str]) -> None:
        """Find the words of each parameter."""
        places = iter(self._arguments)
        words.reverse()
        while words:
            word = words.pop()
            if word.startswith("-") and word != "-":
                self._option(word, words)
            elif (place := next(places, None)) is not None:
                self._words[place.name] = [word]
            else:
                raise _RefusedError

    def _option(self, word: str, rest: list[str]) -> None:
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        parameter = self._options.get(name)
        if parameter is None:
            raise _RefusedError
        if parameter.type is bool:
            if equals:
                raise _RefusedError
            self._flags.add(parameter.name)
            return
        if not equals:
            value = rest.pop() if rest else "-"
            if value.startswith("-"):
                raise _RefusedError
        self._words.setdefault(parameter.name, []).append(value)

    def _value(self, parameter: VerbParameter, environment: Mapping[str, str]) -> Any:
        if parameter.type is bool and isinstance(parameter.about, VerbOption) and parameter.about.names:
            if parameter.default is not False:
                raise _RefusedError
            return parameter.name in self._flags
        words = self._words.get(parameter.name) or _from_environment(parameter, environment)
        if not words:
            if parameter.default is parameters.REQUIRED:
                raise _RefusedError
            return parameter.default
        if parameter.type == list[str] and isinstance(parameter.about, VerbOption):
            return words
        return _converted(parameter, words[-1])


def _from_environment(parameter: VerbParameter, environment: Mapping[str, str]) -> list[str]:
    variable = parameter.about.envvar if isinstance(parameter.about, VerbOption) else None
    value = environment.get(variable, "") if variable else ""
    return [value] if value else []


def _converted(parameter: VerbParameter, word: str) -> Any:
    convert = _CONVERTERS.get(parameter.type)
    if convert is None and isinstance(parameter.type, enum.EnumMeta):
        convert = parameter.type
    if convert is None:
        raise _RefusedError
    try:
        value = convert(word)
    except ValueError:
        raise _RefusedError from None
    about = parameter.about
    if isinstance(about, VerbOption) and not _is_within(value, about.min, about.max):
        raise _RefusedError
    return value


def _is_within(value: Any, lowest: float | None, highest: float | None) -> bool:
    return (lowest is None or value >= lowest) and (highest is None or value <= highest)


_CONVERTERS: Final[dict[Any, Callable[[str], Any]]] = {str: str, int: int, Path: Path}
