"""The HTTP routes of the operators' verbs, made from `admin/verbs` and the methods of `Admin`.

The table has the method, the path, the arguments and the scopes; the type of the answer is the one that the method
declares. Query parameters and JSON bodies become msgspec structs, so that they are validated, and described in the
OpenAPI document, like those of the routes that are written by hand.
"""

import re
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

import msgspec

from geartrain import jsonbytes
from geartrain.admin import verbs, views
from geartrain.admin.base import method_arguments
from geartrain.admin.service import Admin
from geartrain.admin.verbs import Argument, Http, Verb
from geartrain.admin.workflow_views import WorkflowMember
from geartrain.doors.http import request as api
from geartrain.doors.http.problems import Refusal
from geartrain.doors.http.request import ApiRequest
from geartrain.doors.http.response import Response
from geartrain.doors.http.route import API, Handler, RawBytes, Route
from geartrain.job_query import JobQuery
from geartrain.jsonbytes import JsonBytes

_TYPES: Final[dict[str, Any]] = {
    verbs.TEXT: str,
    verbs.BYTES: JsonBytes,
    verbs.INTEGER: int,
    verbs.NUMBER: float,
    verbs.BOOLEAN: bool,
    verbs.TEXTS: list[str],
    verbs.MEMBERS: list[WorkflowMember],
}
_NAMED_CHOICES: Final[dict[tuple[str, ...], Any]] = {verbs.PRIORITIES: views.PriorityField}
_CHANGE_PROBLEMS: Final = ("not-found", "conflict", "unavailable")
# The header with the names of servers of a cluster that have not answered.
UNANSWERED: Final = "Geartrain-Unanswered"
_UNSAFE_IN_A_FILE_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


def routes(table: Mapping[str, Verb] = verbs.VERBS, admin: type[Admin] = Admin) -> tuple[Route, ...]:
    """One route for each verb that has one."""
    return tuple(_route(verb, verb.http, table, admin) for verb in table.values() if verb.http is not None)


def _route(verb: Verb, http: Http, table: Mapping[str, Verb], admin: type[Admin]) -> Route:
    names = http.path.count("{")
    is_query = http.method == "GET"
    kind = "Query" if is_query else "Request"
    struct = _struct(_title(verb) + kind, verb.help, verb.arguments[names:], is_query)
    answer = _answer_type(table[http.shows] if http.shows else verb, http, admin)
    return Route(
        method=http.method,
        path=API + http.path,
        handler=_handler(verb, http, table, names),
        scopes=frozenset(verb.scopes),
        summary=verb.help,
        answer=answer,
        status=http.status if answer is not None else 204,
        query=struct if is_query else None,
        body=None if is_query else struct,
        problems=(*_problems(verb, names), *http.problems),
        verb=verb.name,
    )


def _problems(verb: Verb, names: int) -> tuple[str, ...]:
    if verb.changes:
        return _CHANGE_PROBLEMS
    return ("not-found",) if names else ()


def _answer_type(verb: Verb, http: Http, admin: type[Admin]) -> Any:
    """The type that the route sends; None for no body."""
    answer = typing.get_type_hints(getattr(admin, verb.name))["return"]
    if http.field:
        return msgspec.defstruct(f"{_title(verb)}Answer", [(http.field, JsonBytes)], frozen=True)
    if answer is bytes:
        return RawBytes
    return None if answer is type(None) else answer


def _struct(name: str, help: str, arguments: tuple[Argument, ...], is_query: bool) -> Any:
    """A struct of the arguments; None if there are none."""
    if not arguments:
        return None
    fields: list[Any] = []
    for argument in arguments:
        required = argument.required or argument.required_by_http
        field = (argument.name, _field_type(argument, is_query))
        fields.append(field if required else (*field, argument.default))
    namespace = {"__doc__": f"{help}."}
    return msgspec.defstruct(name, fields, namespace=namespace, forbid_unknown_fields=True, kw_only=True)


def _field_type(argument: Argument, is_query: bool) -> Any:
    if argument.type == verbs.FILTER:
        return _struct("JobFilter", "Which jobs: those that match every field", verbs.FILTER_ARGUMENTS, is_query=False)
    type: Any = str if is_query and argument.type == verbs.BYTES else _TYPES[argument.type]
    if argument.choices:
        allowed = argument.choices
        if argument.default is not None and argument.default not in allowed:
            allowed = (str(argument.default), *allowed)
        type = _NAMED_CHOICES.get(allowed) or Literal[allowed]
    if argument.longest is not None:
        type = Annotated[type, msgspec.Meta(max_length=argument.longest)]
    else:
        type = Annotated[type, msgspec.Meta(ge=argument.minimum, le=argument.maximum)]
    if argument.default is None and not (argument.required or argument.required_by_http):
        type = type | None
    return Annotated[type, msgspec.Meta(description=argument.help)]


def _handler(verb: Verb, http: Http, table: Mapping[str, Verb], names: int) -> Handler:
    """The handler of a verb that has this many of its arguments in the path."""
    in_path, others = verb.arguments[:names], verb.arguments[names:]

    async def handle(request: ApiRequest) -> Response:
        context = request.context
        named = {argument.name: _path_value(argument, request.names[0]) for argument in in_path}
        arguments = {**named, **_values(others, request.query if http.method == "GET" else request.body)}
        context.tick_loop.begin_tick()
        answer, unanswered = await context.admin.ask(verb, method_arguments(verb, arguments), request.identity, request)
        if http.shows:
            shown = table[http.shows]
            # Without a check of its own: whoever may change a thing is shown what became of it.
            answer = await context.admin.call(shown, {shown.arguments[0].name: next(iter(named.values()))})
        if verb.changes:
            await context.tick_loop.durable()
        response = _response(verb, http, answer, request)
        if unanswered:
            response.headers[UNANSWERED.lower()] = ", ".join(map(quote, unanswered))
        return response

    return handle


def _path_value(argument: Argument, value: bytes) -> bytes | str:
    if argument.type == verbs.BYTES:
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Refusal("bad-request", f"the {argument.name} in the path must be UTF-8") from None


def _values(arguments: tuple[Argument, ...], struct: Any) -> dict[str, Any]:
    """The fields of a struct as the verb takes them."""
    return {argument.name: _value(argument, getattr(struct, argument.name)) for argument in arguments}


def _value(argument: Argument, value: Any) -> Any:
    if argument.type == verbs.FILTER:
        return JobQuery.parse(**_values(verbs.FILTER_ARGUMENTS, value))
    if argument.type == verbs.BYTES:
        # A query parameter may hold any bytes, as surrogate escapes.
        return api.raw(value) if isinstance(value, str) else jsonbytes.decode(value)
    return value


def _response(verb: Verb, http: Http, answer: Any, request: ApiRequest) -> Response:
    if http.field:
        return api.json({http.field: jsonbytes.encode(answer)}, http.status)
    if isinstance(answer, bytes):
        return _download(f"{verb.name}-{request.names[0].decode('ascii', 'replace')}", answer)
    return api.nothing() if answer is None else api.json(answer, http.status)


def _download(name: str, data: bytes) -> Response:
    """Bytes of unknown origin: a browser saves them, and never displays them as the page or script they may be."""
    file_name = _UNSAFE_IN_A_FILE_NAME.sub("-", name)
    headers = {"Content-Disposition": f'attachment; filename="{file_name}"'}
    return Response(data, headers=headers, media_type="application/octet-stream")


def _title(verb: Verb) -> str:
    return verb.name.title().replace("_", "")
