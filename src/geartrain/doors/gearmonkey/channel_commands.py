"""PUBLISH and the commands of subscribers."""

from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import channels, keys
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection

_MOST: Final = 10_000  # channels and patterns of one connection
_MOST_PATTERNS: Final = 100  # of one connection
_LONGEST_CHANNEL: Final = 1024  # bytes; the name of a function is shorter


def publish(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """PUBLISH: the number of receivers."""
    key = _channel(arguments[1])
    finish = channels.FINISH.fullmatch(arguments[2]) if connection.gearmonkey.ending else None
    if finish is not None:
        connection.end_waiting(keys.parse(b"job:%b:%b" % (key.function, finish[1])))
    return connection.gearmonkey.channels.relay(key.raw, arguments[2])


def subscribe(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """SUBSCRIBE: one confirmation per channel."""
    for raw in arguments[1:]:
        _channel(raw)
    return _subscribe(connection, b"subscribe", connection.channels, arguments[1:])


def psubscribe(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """PSUBSCRIBE: the same by pattern."""
    if len(connection.patterns.union(arguments[1:])) > _MOST_PATTERNS:
        raise keys.refusal(f"a connection can listen to {_MOST_PATTERNS} patterns")
    return _subscribe(connection, b"psubscribe", connection.patterns, arguments[1:])


def unsubscribe(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """UNSUBSCRIBE: from these channels, or from all."""
    return _unsubscribe(connection, b"unsubscribe", connection.channels, arguments[1:])


def punsubscribe(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """PUNSUBSCRIBE: the same by pattern."""
    return _unsubscribe(connection, b"punsubscribe", connection.patterns, arguments[1:])


def forget(connection: "GearmonkeyConnection") -> None:
    """Remove all subscriptions of a connection."""
    for own, subscribers in _subscriptions(connection):
        for name in own:
            subscribers.remove(name, connection)
        own.clear()


def _subscribe(connection: "GearmonkeyConnection", word: bytes, own: set[bytes], names: list[bytes]) -> resp.Value:
    if len(connection.channels) + len(connection.patterns) + len(names) > _MOST:
        raise keys.refusal(f"a connection can listen to {_MOST} channels")
    subscribers = _subscribers(connection, own)
    subscribers.check(names)
    for name in names:
        own.add(name)
        subscribers.add(name, connection)
        _confirm(connection, word, name)
    return connection.NO_REPLY


def _unsubscribe(connection: "GearmonkeyConnection", word: bytes, own: set[bytes], names: list[bytes]) -> resp.Value:
    subscribers = _subscribers(connection, own)
    for name in names or sorted(own):
        own.discard(name)
        subscribers.remove(name, connection)
        _confirm(connection, word, name)
        names = [name]
    if not names:
        _confirm(connection, word, None)
    return connection.NO_REPLY


def _channel(raw: bytes) -> keys.Key:
    key = keys.expect(raw, keys.CHANNEL)
    if len(raw) > _LONGEST_CHANNEL:
        raise keys.refusal(f"the name of a channel has at most {_LONGEST_CHANNEL} bytes")
    return key


def _confirm(connection: "GearmonkeyConnection", word: bytes, name: bytes | None) -> None:
    connection.push([word, name, len(connection.channels) + len(connection.patterns)])


def _subscribers(connection: "GearmonkeyConnection", own: set[bytes]) -> channels.ChannelSubscribers:
    return next(subscribers for names, subscribers in _subscriptions(connection) if names is own)


def _subscriptions(connection: "GearmonkeyConnection") -> list[tuple[set[bytes], channels.ChannelSubscribers]]:
    shared = connection.gearmonkey.channels
    return [(connection.channels, shared.by_name), (connection.patterns, shared.by_pattern)]
