"""Keys that are made from the arguments of a call: unique keys, and partitions.

Calls with the same unique key are one job while it is unfinished. Calls of different partitions take turns.
"""

import hashlib
import string
from collections.abc import Callable, Sequence
from typing import Any, Final

from geartrain.app.arguments import Parameters
from geartrain.app.codecs import JSON, Codec
from geartrain.client.arguments import LONGEST_PARTITION

# True: calls with the same arguments. A text may contain arguments: "user-{user_id}". A function gets the arguments.
UniqueRule = bool | str | bytes | Callable[..., str | bytes]
PartitionRule = str | bytes | Callable[..., str | bytes]  # the same, without True

_LONGEST: Final = 64  # bytes that Gearman servers keep of a key
_DIGEST_BYTES: Final = 16


def unique_key(
    rule: UniqueRule, codec: Codec, parameters: Parameters, args: Sequence[Any], kwargs: dict[str, Any]
) -> bytes:
    """The key of a call; empty: the call is never a duplicate."""
    if isinstance(rule, bool):
        return _digest(codec, parameters.named(args, kwargs)) if rule else b""
    return shortened(_applied(rule, parameters, args, kwargs), _LONGEST)


def partition(rule: PartitionRule, parameters: Parameters, args: Sequence[Any], kwargs: dict[str, Any]) -> bytes:
    """The partition of a call; empty: none."""
    return shortened(_applied(rule, parameters, args, kwargs), LONGEST_PARTITION)


def check_partition(rule: PartitionRule, parameters: Parameters) -> None:
    """Raise ValueError for a partition that contains an argument which the function does not have."""
    if not isinstance(rule, str):
        if not isinstance(rule, bytes) and not callable(rule):
            raise ValueError(f"a partition is a text or a function, not {rule!r}")
        return
    try:
        fields = [field for _, field, _, _ in string.Formatter().parse(rule) if field is not None]
    except ValueError as error:
        raise ValueError(f"partition {rule!r}: {error}") from None
    for field in fields:
        name = field.split(".")[0].split("[")[0]
        if name not in parameters.names:
            raise ValueError(f"partition {rule!r}: the function has no parameter {name!r}")


def _applied(rule: PartitionRule, parameters: Parameters, args: Sequence[Any], kwargs: dict[str, Any]) -> bytes:
    if isinstance(rule, str):
        rule = rule.format(**parameters.named(args, kwargs))
    elif callable(rule):
        rule = rule(*args, **kwargs)
    return rule.encode() if isinstance(rule, str) else rule


def shortened(key: bytes, longest: int = _LONGEST) -> bytes:
    """A key that every protocol can carry: the end of one that is too long is replaced by a hash of the whole.

    >>> shortened(b"user-7")
    b'user-7'
    >>> shortened(b"https://example.org/" + 10 * b"very/" + b"long")
    b'https://example.org/very/very/v~7acb075d5dd4d4b18f817fa0a7736114'
    """
    if len(key) <= longest:
        return key
    digest = hashlib.blake2b(key, digest_size=_DIGEST_BYTES).hexdigest().encode()
    kept = key[: longest - len(digest) - 1].decode("utf-8", "ignore").encode()  # no half of a character
    return b"%b~%b" % (kept, digest)


def _digest(codec: Codec, named: dict[str, Any]) -> bytes:
    """A short hash of the arguments. A pickle may differ for equal values."""
    stable_codec = codec if codec.checks_types else JSON
    return hashlib.blake2b(stable_codec.encode(named), digest_size=_DIGEST_BYTES).hexdigest().encode()
