"""Every command that is known: its handler, how many words it has, and how it may be used."""

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from geartrain.doors.gearmonkey import (
    channel_commands,
    counter_commands,
    hash_commands,
    key_commands,
    queue_commands,
    script_commands,
    session_commands,
    transaction,
)
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection

Handler = Callable[["GearmonkeyConnection", list[bytes]], resp.Value]

ANY: Final = 2**31  # number of words


class Keys(enum.Enum):
    """Which words of a command are keys of jobs that may be over, so that their records have to be looked up."""

    NONE = slice(0, 0)
    FIRST = slice(1, 2)
    ALL = slice(1, None)
    ALL_BUT_LAST = slice(1, -1)


class Row(NamedTuple):
    """A command; its name counts as a word."""

    handler: Handler
    least: int
    most: int
    keys: Keys = Keys.NONE
    at_once: bool = False  # also between MULTI and EXEC
    subscribers: bool = False  # also while it listens in version 2
    in_transaction: bool = True


_FIRST, _ALL = Keys.FIRST, Keys.ALL

COMMANDS: Final[dict[bytes, Row]] = {
    b"GET": Row(counter_commands.get, 2, 2),
    b"SET": Row(counter_commands.set_, 3, 3),
    b"INCR": Row(counter_commands.incr, 2, 2),
    b"INCRBY": Row(counter_commands.incrby, 3, 3),
    b"DECR": Row(counter_commands.decr, 2, 2),
    b"DECRBY": Row(counter_commands.decrby, 3, 3),
    b"HMSET": Row(hash_commands.hmset, 4, ANY, _FIRST),
    b"HSET": Row(hash_commands.hset, 4, ANY, _FIRST),
    b"HGET": Row(hash_commands.hget, 3, 3, _FIRST),
    b"HMGET": Row(hash_commands.hmget, 3, ANY, _FIRST),
    b"HGETALL": Row(hash_commands.hgetall, 2, 2, _FIRST),
    b"HEXISTS": Row(hash_commands.hexists, 3, 3, _FIRST),
    b"HLEN": Row(hash_commands.hlen, 2, 2, _FIRST),
    b"HKEYS": Row(hash_commands.hkeys, 2, 2, _FIRST),
    b"HDEL": Row(hash_commands.hdel, 3, ANY, _FIRST),
    b"LPUSH": Row(queue_commands.lpush, 3, ANY),
    b"RPUSH": Row(queue_commands.rpush, 3, ANY),
    b"LPOP": Row(queue_commands.pop, 2, 3, _FIRST),
    b"RPOP": Row(queue_commands.pop, 2, 3, _FIRST),
    b"BLPOP": Row(queue_commands.blocking_pop, 3, ANY, Keys.ALL_BUT_LAST),
    b"BRPOP": Row(queue_commands.blocking_pop, 3, ANY, Keys.ALL_BUT_LAST),
    b"LLEN": Row(queue_commands.llen, 2, 2, _FIRST),
    b"LRANGE": Row(queue_commands.lrange, 4, 4, _FIRST),
    b"LREM": Row(queue_commands.lrem, 4, 4),
    b"ZADD": Row(queue_commands.zadd, 4, ANY),
    b"ZREM": Row(queue_commands.zrem, 3, ANY),
    b"ZCARD": Row(queue_commands.zcard, 2, 2),
    b"ZSCORE": Row(queue_commands.zscore, 3, 3),
    b"ZRANGE": Row(queue_commands.zrange, 4, 5),
    b"ZRANGEBYSCORE": Row(queue_commands.zrangebyscore, 4, 8),
    b"DEL": Row(key_commands.delete, 2, ANY, _ALL),
    b"UNLINK": Row(key_commands.delete, 2, ANY, _ALL),
    b"EXISTS": Row(key_commands.exists, 2, ANY, _ALL),
    b"TYPE": Row(key_commands.type_, 2, 2, _FIRST),
    b"EXPIRE": Row(key_commands.expire, 3, 4, _FIRST),
    b"PEXPIRE": Row(key_commands.pexpire, 3, 4, _FIRST),
    b"TTL": Row(key_commands.ttl, 2, 2, _FIRST),
    b"PTTL": Row(key_commands.pttl, 2, 2, _FIRST),
    b"PERSIST": Row(key_commands.persist, 2, 2),
    b"KEYS": Row(key_commands.list_keys, 2, 2),
    b"SCAN": Row(key_commands.scan, 2, 8),
    b"DBSIZE": Row(key_commands.dbsize, 1, 1),
    b"PUBLISH": Row(channel_commands.publish, 3, 3),
    b"SUBSCRIBE": Row(channel_commands.subscribe, 2, ANY, subscribers=True, in_transaction=False),
    b"PSUBSCRIBE": Row(channel_commands.psubscribe, 2, ANY, subscribers=True, in_transaction=False),
    b"UNSUBSCRIBE": Row(channel_commands.unsubscribe, 1, ANY, subscribers=True, in_transaction=False),
    b"PUNSUBSCRIBE": Row(channel_commands.punsubscribe, 1, ANY, subscribers=True, in_transaction=False),
    b"SCRIPT": Row(script_commands.script, 2, ANY),
    b"EVALSHA": Row(script_commands.evalsha, 3, ANY),
    b"EVAL": Row(script_commands.eval_, 3, ANY),
    b"MULTI": Row(transaction.multi, 1, 1, at_once=True),
    b"EXEC": Row(transaction.execute, 1, 1, at_once=True),
    b"DISCARD": Row(transaction.discard, 1, 1, at_once=True),
    b"WATCH": Row(transaction.watch, 2, ANY, _ALL, at_once=True),
    b"UNWATCH": Row(transaction.unwatch, 1, 1),
    b"HELLO": Row(session_commands.hello, 1, ANY, in_transaction=False),
    b"AUTH": Row(session_commands.auth, 2, 3),
    b"PING": Row(session_commands.ping, 1, 2, subscribers=True),
    b"ECHO": Row(session_commands.echo, 2, 2),
    b"SELECT": Row(session_commands.select, 2, 2),
    b"QUIT": Row(session_commands.quit_, 1, 1, at_once=True, subscribers=True),
    b"RESET": Row(session_commands.reset, 1, 1, at_once=True, subscribers=True),
    b"CLIENT": Row(session_commands.client, 2, ANY),
    b"INFO": Row(session_commands.info, 1, ANY),
    b"COMMAND": Row(session_commands.command, 1, ANY),
    b"CONFIG": Row(session_commands.config, 2, ANY),
    b"TIME": Row(session_commands.time_, 1, 1),
}
