"""Replies that are encoded piece by piece: long lists, and lists and hashes of long strings."""

from collections.abc import Iterator, Mapping
from typing import Final

from geartrain.doors.peer_output import HIGH_WATER
from geartrain.wire import resp

_MANY: Final = 64  # members of a list


def is_long(value: resp.Value) -> bool:
    """Whether a reply is to be encoded piece by piece."""
    if isinstance(value, dict):
        value = list(value.values())
    elif not isinstance(value, list):
        return False
    if len(value) > _MANY:
        return True
    size = 0
    for member in value:
        if isinstance(member, bytes):
            size += len(member)
        elif isinstance(member, (list, dict)) and member:
            return True
    return size > HIGH_WATER


def parts(value: resp.Value, version: int) -> Iterator[bytes]:
    """The encoded reply in parts, each of which has at most one string."""
    if isinstance(value, list):
        yield b"*%d\r\n" % len(value)
        for member in value:
            yield from parts(member, version)
    elif isinstance(value, Mapping):
        members = list(value.items())  # it may be changed before its last part is sent
        yield b"*%d\r\n" % (2 * len(members)) if version == 2 else b"%%%d\r\n" % len(members)
        for name, member in members:
            yield resp.encode(name, version)
            yield from parts(member, version)
    else:
        yield resp.encode(value, version)
