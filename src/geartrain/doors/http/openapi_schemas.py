"""Schemas as generators of clients understand them.

msgspec writes correct JSON Schema, but generators read less of it, and read some of it differently:

- A tuple is `prefixItems` with `items: false`, which many of them refuse. Ours are all of one type: a list of a length.
- An enum without a type becomes a class of anything. Enums with a title become named schemas, so that the same class
  describes the state of a job wherever it is.
- A default makes a property mandatory for some generators, and optional for others. In what clients send, the default
  is in the description instead, and the property is optional. In what the server sends, the property is always there,
  so it is required.
- A filter that is not set is an empty string, which is no word of an enum: the parameter is left out instead.
"""

import inspect
import json
from collections.abc import Iterator
from typing import Any, Final

REFERENCE: Final = "#/components/schemas/{name}"
_PREFIX: Final = REFERENCE.format(name="")
_UNSAID: Final[tuple[Any, ...]] = (None, "", [], {})  # defaults that mean that there is none

Schema = dict[str, Any]


def portable(components: dict[str, Schema], sent_by_clients: set[str], omitting: set[str]) -> dict[str, Schema]:
    """These schemas for generators, and the enums that are part of them.

    `sent_by_clients` are the names of those that requests consist of. `omitting` are the names of objects that the
    server sends without the fields that have their default.
    """
    named: dict[str, Schema] = {}
    for name, schema in components.items():
        schema = rewritten(schema, named)
        if name in sent_by_clients:
            schema = _without_defaults(schema)
        else:
            schema = _without_defaults(schema, complete=name not in omitting)
        named[name] = schema
    return named


def rewritten(schema: Any, named: dict[str, Schema]) -> Any:
    """A schema without what generators do not understand; enums that have a title go into `named`."""
    if isinstance(schema, list):
        return [rewritten(part, named) for part in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: rewritten(value, named) for key, value in schema.items()}
    if "prefixItems" in changed:
        changed = _list(changed)
    if isinstance(changed.get("enum"), list):
        return _enum(changed, named)
    if isinstance(changed.get("description"), str):
        changed["description"] = inspect.cleandoc(changed["description"])
    if changed.get("required") == []:
        del changed["required"]
    return changed


def parameter(name: str, field: Schema, required: bool, named: dict[str, Schema]) -> Schema:
    """A field of a struct as a query parameter."""
    schema = rewritten(field, named)
    description = schema.pop("description", "")
    if schema.get("default", None) in _UNSAID:
        schema.pop("default", None)
    described = {"description": description} if description else {}
    return {"name": name, "in": "query", "required": required, **described, "schema": schema}


def names_below(schema: Any, components: dict[str, Schema]) -> set[str]:
    """The names of the components that a schema consists of, however deep."""
    names: set[str] = set()
    waiting = [schema]
    while waiting:
        for reference in references(waiting.pop()):
            name = reference.removeprefix(_PREFIX)
            if name not in names:
                names.add(name)
                waiting.append(components[name])
    return names


def references(part: Any) -> Iterator[str]:
    """All references in a part of the document."""
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for value in part.values():
            yield from references(value)
    elif isinstance(part, list):
        for value in part:
            yield from references(value)


def _list(schema: Schema) -> Schema:
    """A tuple whose items are all of one type, as a list."""
    first, *others = schema["prefixItems"]
    if any(other != first for other in others):
        raise ValueError(f"a tuple of different types cannot be described: {schema}")
    return {**{key: value for key, value in schema.items() if key != "prefixItems"}, "items": first}


def _enum(schema: Schema, named: dict[str, Schema]) -> Schema:
    """An enum with its type; a reference to it if it has a title."""
    outside: Schema = {key: schema[key] for key in ("default", "description") if key in schema}
    inside = {key: value for key, value in schema.items() if key not in outside}
    if outside.get("default") == "":
        inside["enum"] = [value for value in inside["enum"] if value]
    typed = {"type": "string", **inside} if all(isinstance(value, str) for value in inside["enum"]) else inside
    if "title" not in typed:
        return {**outside, **typed}
    known = named.setdefault(typed["title"], typed)
    if known != typed:
        raise ValueError(f"two different enums have the title {typed['title']}")
    return {**outside, "$ref": REFERENCE.format(name=typed["title"])}


def _without_defaults(schema: Schema, *, complete: bool = False) -> Schema:
    """An object without defaults: they are in the descriptions, or, where it is complete, of no interest."""
    if "properties" not in schema:
        return schema
    properties = {name: _without_default(field, not complete) for name, field in schema["properties"].items()}
    changed = {**schema, "properties": properties}
    if complete and properties:
        changed["required"] = list(properties)
    return changed


def _without_default(field: Schema, say: bool) -> Schema:
    rest = {key: value for key, value in field.items() if key != "default"}
    if not say or field.get("default") in _UNSAID:
        return rest
    said = f"Default: {json.dumps(field['default'])}"
    description = rest.get("description", "")
    return {**rest, "description": f"{description}. {said}" if description else said}
