"""The table of all commands: handler, number of words, and where each may be used."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import (
    channel_commands,
    counter_commands,
    hash_commands,
    key_commands,
    queue_commands,
    queue_lists,
    script_commands,
    session_commands,
    transaction,
)
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection

Handler = Callable[["GearmonkeyConnection", list[bytes]], resp.Value]

# The number of words of a command that may have any number. A command runs without a pause, so it has a bound.
ANY: Final = 10_000


# Which words of a command are keys of jobs that may have ended, so that their records have to be read first.
NONE: Final = 0
FIRST: Final = 1
ALL: Final = 2
ALL_BUT_LAST: Final = 3


class Command:
    """A row of the table."""

    def __init__(
        self,
        handler: Handler,
        min_words: int,
        max_words: int,
        keys: int = NONE,
        *,
        inside_multi: bool = False,
        subscribers: bool = False,
        in_transaction: bool = True,
        deletes: bool = False,
    ) -> None:
        self.handler = handler
        self.min_words = min_words  # the name of the command counts as a word
        self.max_words = max_words
        self.keys = keys
        self.inside_multi = inside_multi  # runs at once between MULTI and EXEC, instead of being queued
        self.subscribers = subscribers  # allowed for subscribers in version 2
        self.in_transaction = in_transaction
        self.deletes = deletes  # its keys

    def takes(self, words: int) -> bool:
        """Whether it may have so many words."""
        return self.min_words <= words <= self.max_words

    def job_keys(self, arguments: list[bytes]) -> list[bytes]:
        """The words that are keys of jobs."""
        if self.keys == FIRST:
            return [arguments[1]]
        if self.keys == ALL:
            return arguments[1:]
        return arguments[1:-1] if self.keys == ALL_BUT_LAST else []


COMMANDS: Final[dict[bytes, Command]] = {
    b"GET": Command(counter_commands.get, 2, 2),
    b"SET": Command(counter_commands.set_, 3, 3),
    b"INCR": Command(counter_commands.incr, 2, 2),
    b"INCRBY": Command(counter_commands.incrby, 3, 3),
    b"DECR": Command(counter_commands.decr, 2, 2),
    b"DECRBY": Command(counter_commands.decrby, 3, 3),
    b"HMSET": Command(hash_commands.hmset, 4, ANY, FIRST),
    b"HSET": Command(hash_commands.hset, 4, ANY, FIRST),
    b"HGET": Command(hash_commands.hget, 3, 3, FIRST),
    b"HMGET": Command(hash_commands.hmget, 3, ANY, FIRST),
    b"HGETALL": Command(hash_commands.hgetall, 2, 2, FIRST),
    b"HEXISTS": Command(hash_commands.hexists, 3, 3, FIRST),
    b"HLEN": Command(hash_commands.hlen, 2, 2, FIRST),
    b"HKEYS": Command(hash_commands.hkeys, 2, 2, FIRST),
    b"HDEL": Command(hash_commands.hdel, 3, ANY, FIRST),
    b"LPUSH": Command(queue_commands.lpush, 3, ANY),
    b"RPUSH": Command(queue_commands.rpush, 3, ANY),
    b"LPOP": Command(queue_commands.pop, 2, 3, FIRST),
    b"RPOP": Command(queue_commands.pop, 2, 3, FIRST),
    b"BLPOP": Command(queue_commands.blocking_pop, 3, ANY, ALL_BUT_LAST),
    b"BRPOP": Command(queue_commands.blocking_pop, 3, ANY, ALL_BUT_LAST),
    b"LLEN": Command(queue_commands.llen, 2, 2, FIRST),
    b"LRANGE": Command(queue_lists.lrange, 4, 4, FIRST),
    b"LREM": Command(queue_commands.lrem, 4, 4),
    b"ZADD": Command(queue_commands.zadd, 4, ANY),
    b"ZREM": Command(queue_commands.zrem, 3, ANY),
    b"ZCARD": Command(queue_lists.zcard, 2, 2),
    b"ZSCORE": Command(queue_lists.zscore, 3, 3),
    b"ZRANGE": Command(queue_lists.zrange, 4, 5),
    b"ZRANGEBYSCORE": Command(queue_lists.zrangebyscore, 4, 8),
    b"DEL": Command(key_commands.delete, 2, ANY, ALL, deletes=True),
    b"UNLINK": Command(key_commands.delete, 2, ANY, ALL, deletes=True),
    b"EXISTS": Command(key_commands.exists, 2, ANY, ALL),
    b"TYPE": Command(key_commands.type_, 2, 2, FIRST),
    b"EXPIRE": Command(key_commands.expire, 3, 4, FIRST),
    b"PEXPIRE": Command(key_commands.pexpire, 3, 4, FIRST),
    b"TTL": Command(key_commands.ttl, 2, 2, FIRST),
    b"PTTL": Command(key_commands.pttl, 2, 2, FIRST),
    b"PERSIST": Command(key_commands.persist, 2, 2),
    b"KEYS": Command(key_commands.list_keys, 2, 2, in_transaction=False),
    b"SCAN": Command(key_commands.scan, 2, 8, in_transaction=False),
    b"DBSIZE": Command(key_commands.dbsize, 1, 1),
    b"PUBLISH": Command(channel_commands.publish, 3, 3),
    b"SUBSCRIBE": Command(channel_commands.subscribe, 2, ANY, subscribers=True, in_transaction=False),
    b"PSUBSCRIBE": Command(channel_commands.psubscribe, 2, ANY, subscribers=True, in_transaction=False),
    b"UNSUBSCRIBE": Command(channel_commands.unsubscribe, 1, ANY, subscribers=True, in_transaction=False),
    b"PUNSUBSCRIBE": Command(channel_commands.punsubscribe, 1, ANY, subscribers=True, in_transaction=False),
    b"SCRIPT": Command(script_commands.script, 2, ANY),
    b"EVALSHA": Command(script_commands.evalsha, 3, ANY),
    b"EVAL": Command(script_commands.eval_, 3, ANY),
    b"MULTI": Command(transaction.multi, 1, 1, inside_multi=True),
    b"EXEC": Command(transaction.execute, 1, 1, inside_multi=True),
    b"DISCARD": Command(transaction.discard, 1, 1, inside_multi=True),
    b"WATCH": Command(transaction.watch, 2, ANY, ALL, inside_multi=True),
    b"UNWATCH": Command(transaction.unwatch, 1, 1),
    b"HELLO": Command(session_commands.hello, 1, ANY, in_transaction=False),
    b"AUTH": Command(session_commands.auth, 2, 3),
    b"PING": Command(session_commands.ping, 1, 2, subscribers=True),
    b"ECHO": Command(session_commands.echo, 2, 2),
    b"SELECT": Command(session_commands.select, 2, 2),
    b"QUIT": Command(session_commands.quit_, 1, 1, inside_multi=True, subscribers=True),
    b"RESET": Command(session_commands.reset, 1, 1, inside_multi=True, subscribers=True),
    b"CLIENT": Command(session_commands.client, 2, ANY),
    b"INFO": Command(session_commands.info, 1, ANY),
    b"COMMAND": Command(session_commands.command, 1, ANY),
    b"CONFIG": Command(session_commands.config, 2, ANY),
    b"TIME": Command(session_commands.time_, 1, 1),
}
