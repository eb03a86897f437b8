"""Whether an identity may call a verb.

The verb's row names its scopes, of which one is needed. What this module adds is for which functions: those that the
verb's arguments name, by themselves or through a job or a schedule. Verbs that list things need a scope for some
function, and leave out what the identity may not read; a verb about the whole server needs it for all functions.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final, Protocol

from geartrain.admin import verbs
from geartrain.admin.verbs import Verb
from geartrain.errors import AdminError
from geartrain.rights import READ, Identity

# For whom a verb is being called; None: for the server itself or for a peer that may do everything.
caller: ContextVar[Identity | None] = ContextVar("caller", default=None)

Arguments = Mapping[str, Any]


class Subjects(Protocol):
    """How the functions of jobs and schedules are found; `Admin` implements it."""

    async def function_of_job(self, arguments: Arguments) -> bytes:
        """The function of the job that the arguments name; an AdminError if there is none."""

    def function_of_schedule(self, name: str) -> bytes:
        """The function of a schedule; empty if there is none of that name."""


def may_read(function: bytes) -> bool:
    """Whether lists for the caller contain this function."""
    identity = caller.get()
    return identity is None or identity.rights.allow(READ, function)


async def check(subjects: Subjects, verb: Verb, arguments: Arguments, identity: Identity) -> None:
    """Raise an AdminError unless the identity may call the verb with these arguments."""
    if verb.name in _FOR_EVERYBODY:
        return
    if verb.name in _SOMEWHERE and not arguments.get("function"):
        allowed = any(identity.rights.somewhere(scope) for scope in verb.scopes)
        where = ""
    else:
        functions = await _FUNCTIONS[verb.about](subjects, verb, arguments)
        allowed = all(_allows(identity, verb, function) for function in functions)
        where = f" for {_named(functions)}"
    if not allowed:
        raise AdminError("forbidden", f"{identity.name} has no right {' or '.join(verb.scopes)}{where}")


# Verbs without a secret, and verbs whose answers are filtered or are totals only.
_FOR_EVERYBODY: Final = frozenset({"ping"})
_SOMEWHERE: Final = frozenset(
    {"overview", "history", "functions", "jobs", "failures", "workers", "crons", "tail", "submit_workflow"}
)

# A set of functions; one of them empty stands for all functions.
_ALL: Final = (b"",)


def _allows(identity: Identity, verb: Verb, function: bytes) -> bool:
    rights = identity.rights
    return any(rights.allow(scope, function) if function else rights.everywhere(scope) for scope in verb.scopes)


def _named(functions: tuple[bytes, ...]) -> str:
    names = [function.decode("utf-8", "backslashreplace") for function in functions if function]
    return f"the function {', '.join(map(repr, names))}" if names else "all functions"


async def _of_server(subjects: Subjects, verb: Verb, arguments: Arguments) -> tuple[bytes, ...]:
    return (arguments.get("function") or b"",)


async def _of_function(subjects: Subjects, verb: Verb, arguments: Arguments) -> tuple[bytes, ...]:
    return (arguments[verb.arguments[0].name],)


async def _of_job(subjects: Subjects, verb: Verb, arguments: Arguments) -> tuple[bytes, ...]:
    query = arguments.get("query") or arguments.get("filter")
    if query is not None or verb.name == "bulk":
        return (query.function,) if query is not None else _ALL
    return (await subjects.function_of_job(arguments),)


async def _of_schedule(subjects: Subjects, verb: Verb, arguments: Arguments) -> tuple[bytes, ...]:
    functions = {arguments.get("function") or b"", subjects.function_of_schedule(arguments["name"])} - {b""}
    return tuple(functions) or _ALL


_FUNCTIONS: Final[dict[str, Callable[[Subjects, Verb, Arguments], Awaitable[tuple[bytes, ...]]]]] = {
    verbs.SERVER: _of_server,
    verbs.FUNCTION: _of_function,
    verbs.JOB: _of_job,
    verbs.WORKER: _of_server,
    verbs.SCHEDULE: _of_schedule,
    verbs.CLUSTER: _of_server,
}
