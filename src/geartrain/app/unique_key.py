"""Unique keys of tasks: calls with the same key are one job while it is unfinished."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from geartrain.app.arguments import Parameters
from geartrain.app.codecs import JSON, Codec

# True: calls with the same arguments. A text may contain arguments: "user-{user_id}". A function gets the arguments.
UniqueRule = bool | str | bytes | Callable[..., str | bytes]


def unique_key(
    rule: UniqueRule, codec: Codec, parameters: Parameters, args: Sequence[Any], kwargs: dict[str, Any]
) -> bytes:
    """The key of a call; empty: the call is never a duplicate."""
    if isinstance(rule, bytes):
        return rule
    if isinstance(rule, str):
        return rule.format(**parameters.named(args, kwargs)).encode()
    if callable(rule):
        key = rule(*args, **kwargs)
        return key.encode() if isinstance(key, str) else key
    return _digest(codec, parameters.named(args, kwargs)) if rule else b""


def _digest(codec: Codec, named: dict[str, Any]) -> bytes:
    """A short hash of the arguments: Gearman servers cut keys at 64 bytes. A pickle may differ for equal values."""
    stable_codec = codec if codec.checks_types else JSON
    return hashlib.blake2b(stable_codec.encode(named), digest_size=16).hexdigest().encode()
