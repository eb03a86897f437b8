"""Unique keys of tasks: calls with the same key are one job while it is unfinished."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from geartrain.app.arguments import Parameters
from geartrain.app.codecs import JSON, Codec

# True: calls with the same arguments. A text may contain arguments: "user-{user_id}". A function gets the arguments.
UniqueRule = bool | str | bytes | Callable[..., str | bytes]

_LONGEST: Final = 64  # bytes that Gearman servers keep of a key
_DIGEST_BYTES: Final = 16


def unique_key(
    rule: UniqueRule, codec: Codec, parameters: Parameters, args: Sequence[Any], kwargs: dict[str, Any]
) -> bytes:
    """The key of a call; empty: the call is never a duplicate."""
    if isinstance(rule, bool):
        return _digest(codec, parameters.named(args, kwargs)) if rule else b""
    if isinstance(rule, str):
        rule = rule.format(**parameters.named(args, kwargs))
    elif callable(rule):
        rule = rule(*args, **kwargs)
    return shortened(rule.encode() if isinstance(rule, str) else rule)


def shortened(key: bytes) -> bytes:
    """A key that every protocol can carry: the end of one that is too long is replaced by a hash of the whole.

    >>> shortened(b"user-7")
    b'user-7'
    >>> shortened(b"https://example.org/" + 10 * b"very/" + b"long")
    b'https://example.org/very/very/v~7acb075d5dd4d4b18f817fa0a7736114'
    """
    if len(key) <= _LONGEST:
        return key
    digest = hashlib.blake2b(key, digest_size=_DIGEST_BYTES).hexdigest().encode()
    kept = key[: _LONGEST - len(digest) - 1].decode("utf-8", "ignore").encode()  # no half of a character
    return b"%b~%b" % (kept, digest)


def _digest(codec: Codec, named: dict[str, Any]) -> bytes:
    """A short hash of the arguments. A pickle may differ for equal values."""
    stable_codec = codec if codec.checks_types else JSON
    return hashlib.blake2b(stable_codec.encode(named), digest_size=_DIGEST_BYTES).hexdigest().encode()
