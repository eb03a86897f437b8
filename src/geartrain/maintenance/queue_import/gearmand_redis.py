"""Reads the queue that gearmand keeps in a Redis with its redis plugin, and changes nothing there.

Every job is a key, PREFIX-FUNCTION-UNIQUE, with a hash that has the payload and the priority. gearmand up to 1.1.15
had the payload alone, as a string. After 2.0.0 the hash has the function and the unique key too; until then they are
only in the name of the key, where a hyphen may belong to either.
"""

import re
import socket
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from geartrain.errors import StoreError, WireError
from geartrain.model import Priority
from geartrain.wire.resp import ErrorReply
from geartrain.wire.resp_client import MORE, ReplyReader

URL_START: Final = "redis://"
PREFIX: Final = "_gear_"  # of gearmand's keys, if its --redis-prefix does not say otherwise
_PORT: Final = 6379
_SECONDS: Final = 30.0  # without an answer
_READ_SIZE: Final = 256 * 1024
_BATCH: Final = 256  # keys that are asked for at once
# By type: how to read it.
_READERS: Final = {b"hash": b"HGETALL", b"string": b"GET"}
# gearmand's clients make unique keys of this form for jobs without one. Its hyphens end no function.
_UUID: Final = re.compile(rb"-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$", re.IGNORECASE)
_GLOB: Final = re.compile(rb"([][*?\\])")


def rows(url: str, prefix: str = PREFIX, password: str = "") -> Iterator[dict[str, Any]]:
    """The columns that gearmand's tables have, of each job; the keys in their order, since Redis has none."""
    try:
        with _Redis(url) as redis:
            redis.log_in(password)
            keys = sorted(set(redis.keys(prefix.encode() + b"-")))
            for start in range(0, len(keys), _BATCH):
                yield from _rows(redis, keys[start : start + _BATCH], len(prefix.encode()) + 1)
    except (OSError, WireError) as error:
        raise StoreError(f"cannot read {without_password(url)}: {error}") from None


def without_password(url: str) -> str:
    """The URL of a Redis, to be shown; the path of a file stays as it is."""
    return re.sub(r"(?<=^redis://).*@", "", url)


def _rows(redis: "_Redis", keys: Sequence[bytes], prefix_size: int) -> Iterator[dict[str, Any]]:
    kinds = redis.ask([(b"TYPE", key) for key in keys])
    for key, kind in zip(keys, kinds, strict=True):
        if kind not in _READERS:
            raise _not_a_job(key, f"is a {kind.decode()}" if kind != b"none" else "has just been removed")
    values = redis.ask([(_READERS[kind], key) for key, kind in zip(keys, kinds, strict=True)])
    for key, value in zip(keys, values, strict=True):
        fields = dict(zip(value[::2], value[1::2], strict=True)) if isinstance(value, list) else {b"data": value}
        if fields.get(b"data") is None:
            raise _not_a_job(key, "has no data")
        function, unique = _names(key[prefix_size:])
        if fields.get(b"function"):
            function, unique = fields[b"function"], fields.get(b"unique", b"")
        priority = fields.get(b"priority", int(Priority.NORMAL))
        yield {"function_name": function, "unique_key": unique, "priority": priority, "data": fields[b"data"]}


def _not_a_job(key: bytes, why: str) -> StoreError:
    name = key.decode("utf-8", "replace")
    return StoreError(f"the key {name} {why}: no job of a gearmand that was stopped; --prefix chooses other keys")


def _names(rest: bytes) -> tuple[bytes, bytes]:
    """Function and unique key, from what follows the prefix of a key.

    >>> _names(b"my-report-d10a5342-e3df-11f1-b315-02fc00000001")
    (b'my-report', b'd10a5342-e3df-11f1-b315-02fc00000001')
    >>> _names(b"report-order-17"), _names(b"report-")
    ((b'report', b'order-17'), (b'report', b''))
    """
    made = _UUID.search(rest)
    if made:
        return rest[: made.start()], made[1]
    function, _, unique = rest.partition(b"-")
    return function, unique


class _Redis:
    """A connection on which commands are sent in batches."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        try:
            self._address = (parts.hostname or "127.0.0.1", parts.port or _PORT)
        except ValueError as error:
            raise StoreError(f"{without_password(url)}: {error}") from None
        self._database = parts.path.strip("/") or "0"
        if not self._database.isdigit():
            raise StoreError(f"{without_password(url)}: a database is a number, as in redis://127.0.0.1:6379/0")
        self._password = unquote(parts.password or "")
        self._replies = ReplyReader()

    def __enter__(self) -> "_Redis":
        self._socket = socket.create_connection(self._address, timeout=_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def log_in(self, password: str) -> None:
        password = password or self._password
        commands: list[tuple[bytes, ...]] = [(b"AUTH", password.encode())] if password else []
        self.ask([*commands, (b"SELECT", self._database.encode())])

    def keys(self, beginning: bytes) -> Iterator[bytes]:
        """Every key that begins so; one that moves meanwhile may come twice."""
        pattern = _GLOB.sub(rb"\\\1", beginning) + b"*"
        cursor = b"0"
        while True:
            [(cursor, found)] = self.ask([(b"SCAN", cursor, b"MATCH", pattern, b"COUNT", b"1000")])
            yield from found
            if cursor == b"0":
                return

    def ask(self, commands: Sequence[tuple[bytes, ...]]) -> list[Any]:
        """The replies; a StoreError for the first error among them."""
        self._socket.sendall(b"".join(map(_encode, commands)))
        replies = [self._reply() for _ in commands]
        for reply in replies:
            if isinstance(reply, ErrorReply):
                raise StoreError(f"Redis at {self._address[0]}:{self._address[1]}: {reply.code} {reply.text}")
        return replies

    def _reply(self) -> Any:
        while (reply := self._replies.next()) is MORE:
            data = self._socket.recv(_READ_SIZE)
            if not data:
                raise OSError("the connection was closed")
            self._replies.feed(data)
        return reply


def _encode(words: tuple[bytes, ...]) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
