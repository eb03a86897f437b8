"""Byte for byte what a real Redis answers, to the same commands, in both versions of the protocol."""

import re
import socket

import pytest

from geartrain.doors.gearmonkey.glob import Glob
from geartrain.wire import resp
from tests.acceptance.gearmonkey import redis_py_peer
from tests.acceptance.gearmonkey.conftest import Place, opened

# Each line is a command. FN is a function of the run's own, ID the answer to the last INCR uid.
CONVERSATION = """
PING
PING hello
ECHO hello
SELECT 3
SELECT 99
SELECT x
GET count:FN
INCR count:FN
INCRBY count:FN 1
DECR count:FN
DECRBY count:FN 1
GET count:FN
INCRBY count:FN x
INCR uid:FN
HMSET job:FN:ID status idle input in
HGETALL job:FN:ID
HGETALL job:FN:999
HSET job:FN:ID status idle
HGET job:FN:ID input
HGET job:FN:ID output
HMGET job:FN:ID status output
EXISTS job:FN:ID
TYPE job:FN:ID
TYPE job:FN:999
TTL job:FN:ID
TTL job:FN:999
EXPIRE job:FN:999 10
PUBLISH channel:FN create:ID
LLEN queue:FN:normal
LPUSH queue:FN:normal ID
LLEN queue:FN:normal
LRANGE queue:FN:normal 0 -1
LRANGE queue:FN:normal 5 9
TYPE queue:FN:normal
GET queue:FN:normal
LPUSH job:FN:ID x
HGETALL queue:FN:normal
ZADD queue:FN:normal 1 2
BRPOP queue:FN:high queue:FN:normal queue:FN:low 1
BRPOP queue:FN:high queue:FN:normal queue:FN:low 0.01
BRPOP queue:FN:high x
BRPOP queue:FN:high -1
RPOP queue:FN:normal
LPOP queue:FN:normal
HMSET job:FN:ID status busy
HMSET job:FN:ID status:dividend 1 status:divisor 4
HMGET job:FN:ID status status:dividend status:divisor
HSET job:FN:ID status success output out
EXPIRE job:FN:ID 90000
PUBLISH channel:FN finish:ID
LPUSH lock:FN:ID OK
EXPIRE lock:FN:ID 10
TTL job:FN:ID
BRPOP lock:FN:ID 1
HMGET job:FN:ID status input output
DEL job:FN:ID
DEL job:FN:ID
HGETALL job:FN:ID
EXISTS job:FN:ID job:FN:ID
INCR uid:FN
HSET job:FN:ID status idle input in
ZADD queue:FN:scheduled 1000 ID
ZADD queue:FN:scheduled 1000 ID
ZCARD queue:FN:scheduled
ZRANGE queue:FN:scheduled 0 -1
ZRANGE queue:FN:scheduled 0 -1 WITHSCORES
ZRANGEBYSCORE queue:FN:scheduled 0 999
ZRANGEBYSCORE queue:FN:scheduled 0 1000 LIMIT 0 1
ZADD queue:FN:scheduled x ID
LPUSH queue:FN:scheduled ID
EVALSHA 0000000000000000000000000000000000000000 0
SCRIPT LOAD SCRIPT_TEXT
SCRIPT EXISTS 5231827cd49b540660ef44969b38cc858f157824 00
EVALSHA 5231827cd49b540660ef44969b38cc858f157824 1 queue:FN:scheduled 999
EVALSHA 5231827cd49b540660ef44969b38cc858f157824 1 queue:FN:scheduled 1000
EVALSHA 5231827cd49b540660ef44969b38cc858f157824 1 queue:FN:scheduled 1000
EVAL SCRIPT_TEXT 1 queue:FN:scheduled 1000
EVALSHA 5231827cd49b540660ef44969b38cc858f157824 x
ZCARD queue:FN:scheduled
INCR uid:FN
MULTI
MULTI
HMSET job:FN:ID status idle input in
LPUSH queue:FN:low ID
BRPOP queue:FN:high queue:FN:low 5
BRPOP queue:FN:high queue:FN:low 5
EXEC
EXEC
DISCARD
MULTI
LPUSH
EXEC
MULTI
PING
DISCARD
INCR uid:FN
HMSET job:FN:ID status idle input in colour red
HSET job:FN:ID size large
HGETALL job:FN:ID
LPUSH queue:FN:normal ID
GET count:FNnew
EXISTS count:FNnew
HGET job:FN:ID colour
HSET job:FN:ID shape round
HSET job:FN:ID shape square colour blue
HDEL job:FN:ID size nothing
HLEN job:FN:ID
BRPOP queue:FN:normal 1
GET count:FNnew
HSET job:FN:ID status:dividend 0.25 status:divisor 1
HMGET job:FN:ID status:dividend status:divisor
HSET job:FN:ID status:dividend 4611686018427387904 status:divisor 9223372036854775808
HMGET job:FN:ID status:dividend status:divisor
HSET job:FN:ID note half
HSET job:FN:ID status success
HMGET job:FN:ID status output note
EXISTS lock:FN:ID
HSET job:FN:ID output out
HMGET job:FN:ID status input output status:dividend status:divisor colour shape note
EXPIRE job:FN:ID 90000
LPUSH lock:FN:ID OK
BRPOP lock:FN:ID 1
HSET job:FN:ID note whole after end
HMGET job:FN:ID note after
HDEL job:FN:ID after
HLEN job:FN:ID
INCR uid:FN
HSET job:FN:ID status idle input in
LPUSH queue:FN:normal ID
RPOP queue:FN:normal
HSET job:FN:ID output out
HGET job:FN:ID output
HSET job:FN:ID status error
HMGET job:FN:ID status output
INCR uid:FN
HSET job:FN:ID status idle input in
LPUSH queue:FN:normal ID
RPOP queue:FN:normal
MULTI
HSET job:FN:ID status success
LPUSH lock:FN:ID OK
HSET job:FN:ID output out
EXEC
HMGET job:FN:ID status output
INCR uid:FN
HSET job:FN:ID status idle input in
LPUSH queue:FN:normal ID
RPOP queue:FN:normal
HSET job:FN:ID status success
LPUSH lock:FN:ID OK
HGETALL job:FN:ID
HSET job:FN:ID output late
HGETALL job:FN:ID
INCR uid:FN
HSET job:FN:ID status idle input in
ZADD queue:FN:scheduled 4000000000 ID
EVALSHA 5231827cd49b540660ef44969b38cc858f157824 1 queue:FN:scheduled 3999999999
EVAL SCRIPT_TEXT 1 queue:FN:scheduled 3999999999
EVAL SCRIPT_TEXT 1 queue:FN:scheduled 4000000000
EVAL SCRIPT_TEXT 1 queue:FN:scheduled 4000000000
ZCARD queue:FN:scheduled
HSET job:FN:ID status success output out
INCR count:FNnew
DECR count:FNnew
GET count:FNnew
EXISTS count:FNnew
DEL count:FNnew
GET count:FNnew
WATCH count:FN
UNWATCH
GET
GET a b
HMSET job:FN:1
HMSET job:FN:1 status
LPUSH queue:FN:high
HGETALLL job:FN:1
SUBSCRIBE channel:FN
PING
PING x
PUBLISH channel:FN hello
UNSUBSCRIBE channel:FN
PSUBSCRIBE chan*:FN
PUNSUBSCRIBE
UNSUBSCRIBE
CLIENT SETNAME me
CLIENT GETNAME
CLIENT SETNAME a\\x20b
CLIENT UNBLOCK 999999999
CLIENT UNBLOCK x
CLIENT UNBLOCK 999999999 WHY
CONFIG GET nothing-of-the-kind
RESET
CLIENT GETNAME
QUIT
"""

# What says the same in other words from one Redis to another, or where ids differ by nature.
_SAME = [
    (re.compile(rb"-ERR unknown command [`'](\w+)[`'], with args beginning with: [^\r]*"), rb"-ERR unknown command \1"),
    (re.compile(rb"-ERR Unknown subcommand[^\r]*|-ERR unknown subcommand[^\r]*"), rb"-ERR unknown subcommand"),
    (re.compile(rb"-ERR Can't execute '\w+'[^\r]*"), rb"-ERR Can't execute"),
    (re.compile(rb"-NOSCRIPT[^\r]*"), rb"-NOSCRIPT"),
    (re.compile(rb"-(ERR|EXECABORT) ([^\r]*)"), lambda found: found[0].lower()),
]


class Talker:
    """Sends a command at a time, and knows that its answer is complete by that to an ECHO after it."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.marks = 0

    def ask(self, *words: bytes) -> bytes:
        self.socket.sendall(resp.request(*words))
        if words[0] == b"QUIT":
            return b"".join(iter(lambda: self.socket.recv(65536), b""))
        return self._until_mark()

    def _until_mark(self) -> bytes:
        """PING is allowed everywhere, also for subscribers; in a transaction it is one more that is queued."""
        self.marks += 1
        mark = b"mark-%d" % self.marks
        self.socket.sendall(b"PING " + mark + b"\r\n")
        ends = (b"$%d\r\n%b\r\n" % (len(mark), mark), b"+QUEUED\r\n")
        data = b""
        while True:
            data += self.socket.recv(65536)
            for end in ends:
                if data.endswith(end) and (end is ends[0] or data.count(b"\r\n") > 1):
                    return data.removesuffix(end).removesuffix(b"*2\r\n$4\r\npong\r\n")

    def close(self) -> None:
        self.socket.close()


def converse(place: Place, version: bytes) -> list[tuple[str, bytes]]:
    talker = Talker(place.port)
    if place.name == "redis":
        with redis_py_peer.connect(place.port, db=3) as redis:
            redis.set(b"uid:replies" + version, 5000)  # so that an id is not the number of something else
    heard = [("HELLO", b"" if talker.ask(b"HELLO", version) else b"nothing")]
    number = b"0"
    for line in CONVERSATION.strip().splitlines():
        words = [
            word.replace(b"FN", b"replies" + version)
            .replace(b"ID", number)
            .replace(b"SCRIPT_TEXT", redis_py_peer.SCRIPT.encode())
            .replace(b"\\x20", b" ")
            for word in line.encode().split()
        ]
        answer = talker.ask(*words)
        if line == "INCR uid:FN":
            number = answer[1:-2]
            answer = b":ID\r\n"
        heard.append((line, _normal(answer, number)))
    talker.close()
    return heard


def _normal(answer: bytes, number: bytes) -> bytes:
    with_id = re.compile(rb"\$\d+\r\n([^\r]*)\b%b\r\n" % number)
    answer = with_id.sub(rb"$-\r\n\1ID\r\n", answer) if number != b"0" else answer
    for pattern, same in _SAME:
        answer = pattern.sub(same, answer)
    return answer


@pytest.mark.peer("redis-server")
@pytest.mark.parametrize("version", [b"2", b"3"])
def test_answers_are_those_of_redis(version: bytes) -> None:
    with opened("redis") as redis, opened("geartrain") as geartrain:
        expected, found = converse(redis, version), converse(geartrain, version)
    differences = [
        f"{line}: {theirs!r} became {ours!r}"
        for (line, theirs), (_, ours) in zip(expected, found, strict=True)
        if theirs != ours
    ]
    assert not differences, "\n".join(differences)


PATTERNS = [
    "*", "**", "a*", "*a", "*a*b*", "?", "??", "a?", "[ab]", "[^a]*", "[a-c]?", "[c-a]*", "[]", "[^]", "[a", "[a-",
    "[a-]", "[\\]]", "\\*", "a\\", "*[ab]?", "*?b*[^c]", "[^-]", "[a\\-c]", "[-a]", "\\?*", "a*a", "[", "]", "x*]",
]  # fmt: skip
NAMES = [
    "a",
    "b",
    "c",
    "aa",
    "ab",
    "ba",
    "abc",
    "aab",
    "*",
    "?",
    "]",
    "-",
    "a-",
    "a]",
    "x]",
    "\\",
    "a\\",
    "[",
    "?a",
    "acbd",
]


@pytest.mark.peer("redis-server")
def test_patterns_match_what_they_match_in_redis() -> None:
    with opened("redis") as place, redis_py_peer.connect(place.port) as redis:
        for name in NAMES:
            redis.set(name, "")
        for pattern in PATTERNS:
            expected = {name.decode() for name in redis.keys(pattern)}
            assert {name for name in NAMES if Glob(pattern.encode()).matches(name.encode())} == expected, pattern


@pytest.mark.parametrize(("reason", "answer"), [((), b"*-1\r\n"), ((b"ERROR",), b"-UNBLOCKED client unblocked")])
def test_a_pop_that_waits_is_called_off(place: Place, reason: tuple[bytes, ...], answer: bytes) -> None:
    waiting, other = Talker(place.port), Talker(place.port)
    try:
        number = waiting.ask(b"CLIENT", b"ID").strip()[1:]
        waiting.socket.sendall(resp.request(b"BRPOP", b"queue:called-off:normal", b"0"))
        while other.ask(b"CLIENT", b"UNBLOCK", number, *reason) != b":1\r\n":
            pass  # the pop is on its way
        assert waiting.socket.recv(65536).startswith(answer)
        assert other.ask(b"CLIENT", b"UNBLOCK", number) == b":0\r\n"
    finally:
        waiting.close()
        other.close()
