"""PUBLISH and the commands of subscribers."""

from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import channels, keys
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection

_MOST: Final = 10_000  # channels and patterns of one connection


def publish(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """PUBLISH: to how many."""
    key = keys.expect(arguments[1], keys.Kind.CHANNEL)
    return connection.monkey.channels.relay(key.raw, arguments[2])


def subscribe(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """SUBSCRIBE: one confirmation per channel."""
    for raw in arguments[1:]:
        keys.expect(raw, keys.Kind.CHANNEL)
    return _listen(connection, b"subscribe", connection.channels, arguments[1:])


def psubscribe(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """PSUBSCRIBE: the same by pattern."""
    return _listen(connection, b"psubscribe", connection.patterns, arguments[1:])


def unsubscribe(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """UNSUBSCRIBE: from these, or from all."""
    return _leave(connection, b"unsubscribe", connection.channels, arguments[1:])


def punsubscribe(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """PUNSUBSCRIBE: the same by pattern."""
    return _leave(connection, b"punsubscribe", connection.patterns, arguments[1:])


def forget(connection: "GearmonkeyConnection") -> None:
    """A connection listens no more."""
    for own, everybody in _books(connection):
        for name in own:
            channels.leave(everybody, name, connection)
        own.clear()


def _listen(connection: "GearmonkeyConnection", word: bytes, own: set[bytes], names: list[bytes]) -> resp.Value:
    if len(connection.channels) + len(connection.patterns) + len(names) > _MOST:
        raise keys.refusal(f"a connection can listen to {_MOST} channels")
    everybody = _everybody(connection, own)
    for name in names:
        own.add(name)
        channels.listen(everybody, name, connection)
        _confirm(connection, word, name)
    return connection.SILENT


def _leave(connection: "GearmonkeyConnection", word: bytes, own: set[bytes], names: list[bytes]) -> resp.Value:
    everybody = _everybody(connection, own)
    for name in names or sorted(own):
        own.discard(name)
        channels.leave(everybody, name, connection)
        _confirm(connection, word, name)
        names = [name]
    if not names:
        _confirm(connection, word, None)
    return connection.SILENT


def _confirm(connection: "GearmonkeyConnection", word: bytes, name: bytes | None) -> None:
    connection.push([word, name, len(connection.channels) + len(connection.patterns)])


def _everybody(connection: "GearmonkeyConnection", own: set[bytes]) -> channels.Subscribers:
    return next(everybody for mine, everybody in _books(connection) if mine is own)


def _books(connection: "GearmonkeyConnection") -> list[tuple[set[bytes], channels.Subscribers]]:
    shared = connection.monkey.channels
    return [(connection.channels, shared.by_name), (connection.patterns, shared.by_pattern)]
