"""PUBLISH and the commands of subscribers."""

from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import channels, keys
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection

_MOST: Final = 10_000  # channels and patterns of one connection


def publish(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """PUBLISH: the number of receivers."""
    key = keys.expect(arguments[1], keys.Kind.CHANNEL)
    finish = channels.FINISH.fullmatch(arguments[2])
    if finish is not None and connection.gearmonkey.ending:
        connection.end_waiting(keys.parse(b"job:%b:%b" % (key.function, finish[1])))
    return connection.gearmonkey.channels.relay(key.raw, arguments[2])


def subscribe(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """SUBSCRIBE: one confirmation per channel."""
    for raw in arguments[1:]:
        keys.expect(raw, keys.Kind.CHANNEL)
    return _subscribe(connection, b"subscribe", connection.channels, arguments[1:])


def psubscribe(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """PSUBSCRIBE: the same by pattern."""
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
            channels.remove_subscriber(subscribers, name, connection)
        own.clear()


def _subscribe(connection: "GearmonkeyConnection", word: bytes, own: set[bytes], names: list[bytes]) -> resp.Value:
    if len(connection.channels) + len(connection.patterns) + len(names) > _MOST:
        raise keys.refusal(f"a connection can listen to {_MOST} channels")
    subscribers = _subscribers(connection, own)
    for name in names:
        own.add(name)
        channels.add_subscriber(subscribers, name, connection)
        _confirm(connection, word, name)
    return connection.NO_REPLY


def _unsubscribe(connection: "GearmonkeyConnection", word: bytes, own: set[bytes], names: list[bytes]) -> resp.Value:
    subscribers = _subscribers(connection, own)
    for name in names or sorted(own):
        own.discard(name)
        channels.remove_subscriber(subscribers, name, connection)
        _confirm(connection, word, name)
        names = [name]
    if not names:
        _confirm(connection, word, None)
    return connection.NO_REPLY


def _confirm(connection: "GearmonkeyConnection", word: bytes, name: bytes | None) -> None:
    connection.push([word, name, len(connection.channels) + len(connection.patterns)])


def _subscribers(connection: "GearmonkeyConnection", own: set[bytes]) -> channels.Subscribers:
    return next(subscribers for names, subscribers in _subscriptions(connection) if names is own)


def _subscriptions(connection: "GearmonkeyConnection") -> list[tuple[set[bytes], channels.Subscribers]]:
    shared = connection.gearmonkey.channels
    return [(connection.channels, shared.by_name), (connection.patterns, shared.by_pattern)]
