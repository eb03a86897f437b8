"""Questions of one server's admin to another's, and the answers, as the bytes that go over a link.

A question names a method of `Admin`, with its arguments and the caller, so that a list leaves out there what the caller
may not read. The caller's right to ask was checked by the server that asks.
"""

import dataclasses
from typing import Any, Final

import msgspec

from geartrain import rights
from geartrain.admin.views import Problem
from geartrain.errors import AdminError
from geartrain.job_query import JobQuery
from geartrain.model import JobState
from geartrain.rights import Identity

_QUERIES: Final = ("query", "filter")  # arguments that are a JobQuery
_FIELDS: Final = [field.name for field in dataclasses.fields(JobQuery) if field.init]


class AdminQuestion(msgspec.Struct, frozen=True, array_like=True):
    """A method of `Admin`, with its arguments."""

    method: str
    arguments: dict[str, Any]
    caller: str = ""
    rights: list[str] | None = None  # of the caller; None: all

    def identity(self) -> Identity | None:
        """For whom the question is."""
        return None if self.rights is None else Identity(self.caller, rights.parse(self.rights))


class _Reply(msgspec.Struct, omit_defaults=True):
    answer: msgspec.Raw = msgspec.Raw()
    error: Problem | None = None


def pack(method: str, arguments: dict[str, Any], identity: Identity | None) -> bytes:
    """A question as bytes."""
    plain = {name: _plain(value) if name in _QUERIES else value for name, value in arguments.items()}
    if identity is None:
        return msgspec.msgpack.encode(AdminQuestion(method, plain))
    return msgspec.msgpack.encode(AdminQuestion(method, plain, identity.name, list(identity.rights.words)))


def unpack(content: bytes) -> AdminQuestion:
    """The question in these bytes."""
    question = msgspec.msgpack.decode(content, type=AdminQuestion)
    for name in _QUERIES:
        if name in question.arguments:
            question.arguments[name] = _query(question.arguments[name])
    return question


def _plain(query: JobQuery) -> dict[str, Any]:
    return {name: getattr(query, name) for name in _FIELDS}


def _query(values: dict[str, Any]) -> JobQuery:
    state = values.pop("state")
    return JobQuery(state=None if state is None else JobState(state), **values)


def pack_answer(answer: Any) -> bytes:
    """An answer as bytes."""
    return msgspec.msgpack.encode({"answer": answer})


def pack_error(error: AdminError) -> bytes:
    """Why there is no answer, as bytes."""
    return msgspec.msgpack.encode({"error": Problem(error.kind, error.text)})


def unpack_answer(content: bytes, type: Any) -> Any:
    """The answer in these bytes; an AdminError if they say why there is none."""
    reply = msgspec.msgpack.decode(content, type=_Reply)
    if reply.error is not None:
        raise AdminError(reply.error.kind, reply.error.text)
    return msgspec.msgpack.decode(reply.answer, type=type)
