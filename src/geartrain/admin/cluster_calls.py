"""Verbs in a cluster: which servers answer, and what becomes of their answers.

The column `place` of the table of verbs says it. A verb about one job goes to the home of the job. Lists and totals are
asked of all servers, and put together. Settings are saved in the store, and the other servers apply them before the
operator gets the answer. A server that does not answer in time is named beside the answer, and not waited for.
"""

import asyncio
import functools
import typing
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from geartrain.admin import cluster_questions, verbs
from geartrain.admin.other_admins import NoAnswerError, OtherAdmins
from geartrain.admin.verbs import Verb
from geartrain.errors import AdminError
from geartrain.rights import Identity

if TYPE_CHECKING:
    from geartrain.admin.service import Admin

SECONDS: Final = 1.0  # that a page waits for other servers
CHANGE_SECONDS: Final = 10.0  # that a change waits for the server that has to commit it
_LARGE: Final = frozenset({"payload", "result"})  # answers that may take longer
# Of a job that was lent, what its worker says is said to the server that the worker is connected to.
_OF_WORKERS: Final = frozenset({"postpone", "bury"})

_CHANGES: Final = frozenset({"bulk_living", "retry_failed"})  # parts of verbs, answered when they are durable

Arguments = dict[str, Any]


class VerbAnswer(NamedTuple):
    """The answer to a verb."""

    value: Any
    unanswered: list[str]  # the names of servers that have not answered


class ServerAnswer(NamedTuple):
    """What one server has answered."""

    node: int
    name: str
    value: Any


class ClusterCall:
    """A verb that is being answered by several servers."""

    def __init__(self, admin: "Admin", others: OtherAdmins, identity: Identity | None) -> None:
        self.admin = admin
        self.others = others
        self.unanswered: list[str] = []
        self._identity = identity

    async def gather(
        self,
        method: str,
        arguments: Mapping[int, Arguments] | Arguments | None = None,
        own: str = "",
        seconds: float = SECONDS,
    ) -> list[ServerAnswer]:
        """What a method of `Admin` returns at every server, this one first; `own`: the method for this one.

        Servers that find nothing have no part. If no server finds anything, the AdminError of this one is raised.
        """
        arguments = arguments or {}
        names = self.others.names()
        mine = self._own(own or method, arguments)
        theirs = [self._ask(node, method, arguments, seconds) for node in names]
        answers = await asyncio.gather(mine, *theirs, return_exceptions=True)
        places = [(self.others.node, self.others.name), *names.items()]
        parts: list[ServerAnswer] = []
        missing: list[AdminError] = []
        for (node, name), answer in zip(places, answers, strict=True):
            if isinstance(answer, NoAnswerError):
                self.unanswered.append(name)
            elif isinstance(answer, AdminError) and answer.kind == "not-found":
                missing.append(answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                parts.append(ServerAnswer(node, name, answer))
        if missing and not parts:
            raise missing[0]
        return parts

    async def own(self, method: str, arguments: Arguments) -> Any:
        """What a method of `Admin` returns here."""
        return await self._own(method, arguments)

    async def ask(self, node: int, method: str, arguments: Arguments, seconds: float) -> Any:
        """What a method of `Admin` returns at another server."""
        return await self._ask(node, method, arguments, seconds)

    async def at_home(self, verb: Verb, arguments: Arguments) -> Any:
        """The answer of the server that has the job."""
        admin, others = self.admin, self.others
        if admin.has_job(arguments, others.owns, borrowed=verb.name in _OF_WORKERS):
            return await self._own(verb.name, arguments)
        seconds = CHANGE_SECONDS if verb.changes or verb.name in _LARGE else SECONDS
        names = others.names()
        giver = admin.id_in(arguments) >> others.node_bits
        if giver in names:  # it lives, so nobody has taken its jobs
            try:
                return await self._ask(giver, verb.name, arguments, seconds)
            except NoAnswerError as error:
                raise AdminError("unavailable", f"{error}; it has the job") from None
        for node, name in names.items():
            try:
                return await self._ask(node, verb.name, arguments, seconds)
            except NoAnswerError:
                self.unanswered.append(name)
            except AdminError as error:
                if error.kind != "not-found":
                    raise
        try:
            return await self._own(verb.name, arguments)
        except AdminError as error:
            if error.kind == "not-found" and self.unanswered:
                raise AdminError("unavailable", f"{error.text}; no answer from {', '.join(self.unanswered)}") from None
            raise

    async def everywhere_applied(self, verb: Verb, arguments: Arguments) -> Any:
        """The answer of this server, when the others have applied what it has saved."""
        answer = await self._own(verb.name, arguments)
        await self.admin.durable()
        await self.gather("see_settings", own="durable")
        return answer

    async def _own(self, method: str, arguments: Arguments | Mapping[int, Arguments]) -> Any:
        return await self.admin.answer(method, _for(self.others.node, arguments), self._identity)

    async def _ask(self, node: int, method: str, arguments: Arguments | Mapping[int, Arguments], seconds: float) -> Any:
        question = cluster_questions.pack(method, _for(node, arguments), self._identity)
        content = await self.others.ask(node, question, seconds)
        return cluster_questions.unpack_answer(content, _answer_type(getattr(type(self.admin), method)))


def _for(node: int, arguments: Arguments | Mapping[int, Arguments]) -> Arguments:
    """The arguments for one server, where each has its own."""
    by_node: Any = arguments
    own: Arguments = by_node.get(node, by_node)
    return own


@functools.cache
def _answer_type(method: Any) -> Any:
    """The type of the answer that a method of `Admin` declares."""
    return typing.get_type_hints(method)["return"]


Merge = Callable[[ClusterCall, Arguments], Awaitable[Any]]


class ClusterAnswers:
    """What this server answers to the others."""

    def __init__(self, admin: "Admin", others: OtherAdmins, parts: frozenset[str]) -> None:
        self._admin = admin
        self._others = others
        self._parts = parts  # methods that others may ask for, besides the verbs about one job

    async def answer(self, content: bytes) -> bytes:
        """The answer to a question."""
        question = cluster_questions.unpack(content)
        try:
            return cluster_questions.pack_answer(await self._answer(question))
        except AdminError as error:
            return cluster_questions.pack_error(error)

    async def _answer(self, question: cluster_questions.AdminQuestion) -> Any:
        method, arguments = question.method, question.arguments
        verb = verbs.VERBS.get(method)
        if verb is not None and verb.place == verbs.HOME:
            if not self._admin.has_job(arguments, self._others.owns):
                raise AdminError("not-found", "this server does not have the job")
        elif method not in self._parts:
            raise AdminError("unsupported", f"server {self._others.name} is older, and does not know {method}")
        answer = await self._admin.answer(method, arguments, question.identity())
        if method in _CHANGES or (verb is not None and verb.changes):
            await self._admin.durable()
        return answer
