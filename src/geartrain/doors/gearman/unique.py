"""Gearman's unique IDs and the engine's unique keys.

They are the same, except that the unique ID `-` means "the job with this payload". Its key is a digest of the payload
after a NUL, which no other Gearman unique ID can contain. Jobs with an empty payload are never shared, so there it is
random.
"""

import hashlib
import os
from typing import Final

from geartrain import escape
from geartrain.errors import WireError
from geartrain.wire import gearman as wire

_BY_PAYLOAD: Final = b"\0-"


def key(unique: bytes, payload: bytes) -> bytes:
    """The engine's key for a unique ID; an empty one never has duplicates."""
    if unique == b"-":
        return _BY_PAYLOAD + (hashlib.blake2b(payload, digest_size=16).digest() if payload else os.urandom(16))
    if len(unique) > wire.MAX_UNIQUE:
        raise too_large()
    return unique


def too_large() -> WireError:
    """The error for a unique ID over the limit, in gearmand's words."""
    return WireError("ARGUMENT_TOO_LARGE", "Unique value too large", fatal=False)


def display(key: bytes) -> bytes:
    """The unique ID that workers get. A NUL, which other protocols allow, would end it: such a key is escaped."""
    if b"\0" not in key:
        return key
    return b"-" if key.startswith(_BY_PAYLOAD) else escape.escape(key)
