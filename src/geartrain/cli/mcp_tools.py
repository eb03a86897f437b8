"""The tools of `geartrain mcp`: verbs of the table, with schemas of their arguments, and an answer made of several.

Those that change something are offered only if the person who starts the command allows them by name.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from geartrain.admin import verbs
from geartrain.admin.verbs import Argument, Verb
from geartrain.cli import wait_reasons

Ask = Callable[..., Awaitable[Any]]  # a verb and its arguments; the answer as plain JSON values

_BYTES: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "string"},
        {"type": "object", "properties": {"base64": {"type": "string"}}, "required": ["base64"]},
    ]
}
_TYPES: Final[dict[str, dict[str, Any]]] = {
    verbs.TEXT: {"type": "string"},
    verbs.BYTES: _BYTES,
    verbs.INTEGER: {"type": "integer"},
    verbs.NUMBER: {"type": "number"},
    verbs.BOOLEAN: {"type": "boolean"},
    verbs.TEXTS: {"type": "array", "items": {"type": "string"}},
}
# Tools that read, by name: the verb, and what it is for where the verb's own line does not say enough.
_READING: Final = {
    "status": ("overview", "Counts, rates and latencies of the whole server: begin here"),
    "functions": ("functions", "List functions with their queued, running, scheduled and dead jobs and their workers"),
    "function": ("function", ""),
    "jobs": ("jobs", "List jobs, newest first, of a state, a function, a time or a reason; payloads are cut"),
    "job": ("job", "Show a job with its attempts, its reason and its payload"),
    "job_log": ("log", ""),
    "failures": ("failures", "Failed and dead jobs in groups of equal reasons, with numbers and examples"),
    "workers": ("workers", ""),
    "schedules": ("crons", ""),
}
WHY: Final = "why_waiting"
_WHY_HELP: Final = "Why a job waits: a pause, no worker, busy workers, a time in the future, a failed attempt"


class Tool(NamedTuple):
    """A tool, as an assistant sees it, and what answers a call of it."""

    name: str
    description: str
    schema: dict[str, Any]
    answer: Callable[[Ask, Mapping[str, Any]], Awaitable[Any]]
    changes: bool = False
    destroys: bool = False


def allowable() -> dict[str, Verb]:
    """The verbs that change something and may be allowed: those of operators, on jobs, functions and schedules."""
    subjects = (verbs.JOB, verbs.FUNCTION, verbs.SCHEDULE)
    return {
        name: verb
        for name, verb in verbs.VERBS.items()
        if verb.changes and not verb.streams and verb.about in subjects and verbs.WORK not in verb.scopes
    }


def tools(allowed: Iterable[str] = ()) -> dict[str, Tool]:
    """The tools that read, and those of the verbs that are allowed.

    >>> [tool.name for tool in tools(["retry"]).values() if tool.changes]
    ['retry']
    """
    reading = [_of_verb(name, verbs.VERBS[verb], help) for name, (verb, help) in _READING.items()]
    job = verbs.VERBS["job"]
    why = Tool(WHY, _WHY_HELP, _schema(job.arguments), lambda ask, values: wait_reasons.explain(ask, values["handle"]))
    changing = [_of_verb(name, verb) for name, verb in allowable().items() if name in set(allowed)]
    return {tool.name: tool for tool in (*reading, why, *changing)}


def _of_verb(name: str, verb: Verb, help: str = "") -> Tool:
    async def answer(ask: Ask, values: Mapping[str, Any]) -> Any:
        return await ask(verb.name, **values)

    destroys = verb.button is not None and verb.button.danger
    return Tool(name, help or verb.help, _schema(verb.arguments), answer, verb.changes, destroys)


def _schema(arguments: Iterable[Argument]) -> dict[str, Any]:
    """The JSON Schema of an object with these arguments."""
    arguments = tuple(arguments)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {argument.name: _property(argument) for argument in arguments},
        "additionalProperties": False,
    }
    required = [argument.name for argument in arguments if argument.required or argument.required_by_http]
    return {**schema, "required": required} if required else schema


def _property(argument: Argument) -> dict[str, Any]:
    if argument.type == verbs.FILTER:
        return {**_schema(verbs.FILTER_ARGUMENTS), "description": argument.help}
    schema = {**_TYPES[argument.type], "description": argument.help}
    if argument.choices:
        # Empty stands for no choice, where that is the default.
        schema["enum"] = [*argument.choices, *([""] if argument.default == "" else [])]
    limits = {"default": argument.default, "minimum": argument.minimum, "maximum": argument.maximum}
    return {**schema, **{name: value for name, value in limits.items() if value is not None}}
