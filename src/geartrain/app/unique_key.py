"""Unique keys of tasks: what makes two calls the same job while it waits or runs."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from geartrain.app.arguments import Parameters
from geartrain.app.codecs import JSON, Codec

# True: the same arguments. A text may name arguments, as in "user-{user_id}". A function gets the call's arguments.
UniqueRule = bool | str | bytes | Callable[..., str | bytes]


def unique_key(
    rule: UniqueRule, codec: Codec, parameters: Parameters, args: Sequence[Any], kwargs: dict[str, Any]
) -> bytes:
    """The key of one call; empty: it is never a duplicate of anything."""
    if isinstance(rule, bytes):
        return rule
    if isinstance(rule, str):
        return rule.format(**parameters.named(args, kwargs)).encode()
    if callable(rule):
        key = rule(*args, **kwargs)
        return key.encode() if isinstance(key, str) else key
    return _digest(codec, parameters.named(args, kwargs)) if rule else b""


def _digest(codec: Codec, named: dict[str, Any]) -> bytes:
    """Short enough for Gearman, whose servers cut keys at 64 bytes."""
    language = codec if codec.checks_types else JSON
    return hashlib.blake2b(language.encode(named), digest_size=16).hexdigest().encode()
