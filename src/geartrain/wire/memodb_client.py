r"""MemoDB's messages from the other side: what clients and workers send to a broker, and receive from it.

>>> job(b"alive.tv", 40000).hex()
'85666d656d6f3031024068616c6976652e7476199c40'
>>> message, at = parse(bytes.fromhex("83666d656d6f30310340") + b"result")
>>> message.kind == memodb.RESULT, at
(True, 10)
"""

import functools
from collections.abc import Iterable
from typing import Any, Final

import cbor2

from geartrain.errors import WireError
from geartrain.wire import memodb
from geartrain.wire.memodb import Message

# A broker repeats a few headers; those that differ each time are not worth caching.
_CACHED: Final = 1024


def parse(data: bytes, start: int = 0, end: int = -1) -> tuple[Message, int]:
    """The header of a broker's message, and where its payload begins; a WireError if it is invalid."""
    end = len(data) if end < 0 else end
    if data.startswith(memodb.RESULT_TO_CLIENT, start) and end - start >= len(memodb.RESULT_TO_CLIENT):
        return _RESULT, start + len(memodb.RESULT_TO_CLIENT)
    at = memodb.header_end(data, start, end)
    return _decoded(data[start:at]), at


_RESULT: Final = Message(memodb.RESULT, b"")


@functools.lru_cache(_CACHED)
def _decoded(header: bytes) -> Message:
    try:
        items: list[Any] = cbor2.loads(header)
    except (cbor2.CBORDecodeError, ValueError) as error:
        raise _invalid(f"is not valid CBOR: {error}") from None
    if len(items) < 3 or items[0] != memodb.VERSION or not isinstance(items[2], bytes):
        raise _invalid(f"is not one of {memodb.VERSION}")
    kind, id, rest = items[1], items[2], items[3:]
    if kind == memodb.JOB:
        if not id or len(rest) != 2 or not isinstance(rest[0], str) or not isinstance(rest[1], int):
            raise _invalid("is a JOB without a worker's id, a service or a timeout")
        return Message(memodb.JOB, id, service=rest[0].encode(), timeout=rest[1])
    if kind not in (memodb.RESULT, memodb.HEARTBEAT, memodb.DISCONNECT):
        raise _invalid(f"has type {kind!r}, which no broker sends")
    return Message(kind, id)


def _invalid(why: str) -> WireError:
    return WireError("INVALID", f"the header of an answer {why}")


def ready(services: Iterable[bytes]) -> bytes:
    """READY. The original broker ignores a list that is not in this order: by length, then by bytes."""
    names = sorted(set(services), key=lambda name: (len(name), name))
    return cbor2.dumps([memodb.VERSION, memodb.READY, b"", [name.decode() for name in names]], canonical=True)


@functools.lru_cache(_CACHED)
def job(service: bytes, milliseconds: int) -> bytes:
    """JOB, of a client; `service` is UTF-8."""
    return memodb.job(b"", service, milliseconds)


def result(id: bytes, disconnecting: bool = False) -> bytes:
    """RESULT, of a worker; its payload follows."""
    flag = [True] if disconnecting else []
    return cbor2.dumps([memodb.VERSION, memodb.RESULT, id, *flag], canonical=True)


def heartbeat(id: bytes) -> bytes:
    """HEARTBEAT, of a worker."""
    return memodb.heartbeat(id)
