"""RESP's codecs: commands to a server, and a server's replies."""

from campaigns.codecs.codec import Codec, Packet, Stream
from campaigns.mutation import LIMIT, unwrapped
from geartrain.wire import resp as wire
from geartrain.wire import resp_client

_SPACE = b"\xfe"  # separates the words of a body


def _command(line: bytes) -> bytes:
    return _SPACE.join(line.split(b" "))


COMMANDS = tuple(
    _command(line)
    for line in (
        b"PING", b"HELLO 3", b"HELLO 2", b"SELECT 0", b"INFO", b"COMMAND DOCS", b"CLIENT SETNAME fuzz", b"CLIENT ID",
        b"CONFIG GET maxmemory", b"TIME", b"DBSIZE", b"ECHO hello", b"RESET",
        b"INCR job:reverse:autoincrement", b"GET job:reverse:autoincrement", b"INCRBY key 10", b"SET key value",
        b"HMSET job:reverse:1 input data status queued priority normal",
        b"HSET job:reverse:1 input data", b"HGETALL job:reverse:1", b"HGET job:reverse:1 status",
        b"HMGET job:reverse:1 status output", b"HDEL job:reverse:1 output", b"HLEN job:reverse:1",
        b"LPUSH queue:reverse:normal 1", b"RPUSH queue:reverse:high 1 2 3", b"RPOP queue:reverse:normal",
        b"BRPOP queue:reverse:high queue:reverse:normal queue:reverse:low 1", b"LLEN queue:reverse:normal",
        b"LRANGE queue:reverse:normal 0 -1", b"LREM queue:reverse:normal 0 1",
        b"ZADD scheduled:reverse 4000000000 1", b"ZREM scheduled:reverse 1", b"ZSCORE scheduled:reverse 1",
        b"ZRANGE scheduled:reverse 0 -1 WITHSCORES", b"ZRANGEBYSCORE scheduled:reverse -inf +inf LIMIT 0 10",
        b"DEL job:reverse:1", b"EXISTS job:reverse:1", b"TYPE job:reverse:1", b"EXPIRE job:reverse:1 60",
        b"TTL job:reverse:1", b"KEYS job:*", b"SCAN 0 MATCH job:* COUNT 10", b"PUBLISH job:reverse:1 done",
        b"SUBSCRIBE job:reverse:1", b"PSUBSCRIBE job:reverse:*", b"UNSUBSCRIBE", b"PUNSUBSCRIBE job:*",
        b"MULTI", b"EXEC", b"DISCARD", b"WATCH job:reverse:1", b"UNWATCH",
        b"SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db", b"EVAL return 0",
    )
)  # fmt: skip
# These begin with a byte that no command of several words has: their frames are the bodies themselves.
RAW = (b"*0\r\n", b"*-1\r\n", b"*1\r\n$4\r\nPING\r\n", b" PING\r\n", b' SET k "a b\\x00\\n"\r\n', b" SET k 'it\\'s'\n")
_RAW_BEGIN = b"* $"
REPLIES = (
    b"+OK\r\n",
    b"-ERR no such job\r\n",
    b":1\r\n",
    b":-9223372036854775808\r\n",
    b"$5\r\nhello\r\n",
    b"$-1\r\n",
    b"$0\r\n\r\n",
    b"*-1\r\n",
    b"*0\r\n",
    b"*2\r\n$5\r\nqueue\r\n$1\r\n1\r\n",
    b"*2\r\n*1\r\n:1\r\n*1\r\n+a\r\n",
    b"*3\r\n$7\r\nmessage\r\n$5\r\njob:1\r\n$4\r\ndone\r\n",
    b"*1\r\n" * 40,
)


def request(body: bytes) -> bytes:
    """A command of the words of the body."""
    return body if body[:1] in _RAW_BEGIN else wire.request(*body.split(_SPACE))


def _open() -> Stream:
    reader = wire.Reader(LIMIT)

    def packet() -> Packet | None:
        if reader.next() != wire.COMMAND:
            return None
        words = reader.arguments
        return (len(words), tuple(words), wire.number(words[-1]))

    return Stream(reader.feed, packet)


def _open_client() -> Stream:
    reader = resp_client.ReplyReader()

    def packet() -> Packet | None:
        reply = reader.next()
        return None if reply is resp_client.MORE else (type(reply).__name__, reply)

    return Stream(reader.feed, packet)


TOKENS = (b"\r\n", b"*", b"$", b"*1\r\n", b"$0\r\n\r\n", b'"', b"'", b"\\x", _SPACE, b":", b"-1", b"\r", b"\n")
CODECS = (
    Codec("resp", (*COMMANDS, *RAW), _open, request, TOKENS),
    Codec("resp-client", REPLIES, _open_client, unwrapped, TOKENS),
)
