"""Bytes in JSON: a string where they are UTF-8 text, else an object with their base64.

The HTTP API, control jobs, dumps and `--json` all write payloads, results, names and handles this way.

>>> msgspec.json.encode([encode(b"hello"), encode(b"\\xff")])
b'["hello",{"base64":"/w=="}]'
>>> [decode(value) for value in ("hello", {"base64": "/w=="}, Base64(b"\\xff"))]
[b'hello', b'\\xff', b'\\xff']

This module imports msgspec, which takes time to load: programs that need no JSON do not import it.
"""

import base64
from typing import Any

import msgspec


class Base64(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes that are not UTF-8 text."""

    base64: bytes  # msgspec writes bytes as base64


JsonBytes = str | Base64


def encode(data: bytes, longest: int = 0) -> JsonBytes:
    """The value that msgspec writes for these bytes; `longest` cuts them, 0 does not.

    A cut inside a character of UTF-8 moves to the beginning of that character:

    >>> encode("naïve".encode(), longest=3)
    'na'
    """
    if longest:
        data = data[:longest]
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if longest and error.start >= len(data) - 3 and error.reason == "unexpected end of data":
            return data[: error.start].decode()
        return Base64(data)


def decode(value: JsonBytes | dict[str, Any]) -> bytes:
    """The bytes of a value, whether its JSON was decoded with the type `JsonBytes` or to plain dicts."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, Base64):
        return value.base64
    return base64.b64decode(value["base64"])
