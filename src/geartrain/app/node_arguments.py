"""Arguments that are results of other jobs: how a payload refers to them.

A payload is written before its job has a handle, so it names parents by their places in the workflow, with the place of
the job itself. Members of a workflow have consecutive ids, so the worker knows the handles of the parents from its own.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from geartrain.app.node import WorkflowNode, nodes_in


class ParentResult(msgspec.Struct, omit_defaults=True):
    """A value among the arguments that is the result of a parent. The names of the fields are the wire format."""

    # The number of the argument or its name; if an element of it is meant, that one's number follows.
    at: list[int | str]
    of: int | list[int]  # the place of the parent; a list: the value is a list of the results of these


def take_out(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any], list[ParentResult]]:
    """The same arguments with None instead of nodes, and what the worker puts in place of it."""
    plain_args, plain_kwargs = list(args), dict(kwargs)
    results: list[ParentResult] = []
    for number, value in enumerate(args):
        plain_args[number] = _taken_out(number, value, results)
    for name, value in kwargs.items():
        plain_kwargs[name] = _taken_out(name, value, results)
    return plain_args, plain_kwargs, results


def _taken_out(key: int | str, value: Any, results: list[ParentResult]) -> Any:
    nodes = nodes_in(value)
    if not nodes:
        return value
    if isinstance(value, WorkflowNode):
        results.append(ParentResult([key], value.place))
        return None
    if len(nodes) == len(value):
        results.append(ParentResult([key], [node.place for node in nodes]))
        return None
    elements = list(value)
    for number, element in enumerate(value):
        if isinstance(element, WorkflowNode):
            results.append(ParentResult([key, number], element.place))
            elements[number] = None
    return elements


def places_in(results: Sequence[ParentResult]) -> list[int]:
    """The places of all parents that are referred to, each once."""
    places: dict[int, None] = {}
    for result in results:
        places.update(dict.fromkeys(result.of if isinstance(result.of, list) else [result.of]))
    return list(places)


def put_in(
    args: Sequence[Any], kwargs: dict[str, Any], results: Sequence[ParentResult], values: dict[int, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The opposite of `take_out`, with values by place."""
    whole_args, whole_kwargs = list(args), dict(kwargs)
    for result in results:
        value = [values[place] for place in result.of] if isinstance(result.of, list) else values[result.of]
        holder: Any = whole_kwargs if isinstance(result.at[0], str) else whole_args
        for key in result.at[:-1]:
            holder = holder[key]
        holder[result.at[-1]] = value
    return whole_args, whole_kwargs
