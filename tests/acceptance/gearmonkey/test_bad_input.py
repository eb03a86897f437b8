"""What makes no sense at our door: an error in Redis' words, and nobody else is hurt."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from tests.acceptance.gearmonkey import redis_py_peer
from tests.support import serving


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    with serving.serve("--store", "memory", "--listen", f"gearmonkey://{serving.HOST}:0") as running:
        yield running


@pytest.fixture
def raw(server: serving.ServerProcess) -> Iterator[Any]:
    connection = redis_py_peer.connect(server.port)
    yield connection
    connection.close()


def said_before_closing(port: int, data: bytes) -> bytes:
    """What the server says to these bytes before it hangs up."""
    with socket.create_connection((serving.HOST, port), 10) as peer:
        peer.sendall(data)
        heard = b""
        while True:
            try:
                part = peer.recv(65536)
            except ConnectionResetError:
                return heard
            if not part:
                return heard
            heard += part


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"*1\r\n$1099511627776\r\n", b"-ERR Protocol error: invalid bulk length\r\n"),
        (b"*1\r\n" * 1000, b"-ERR Protocol error: expected '$', got '*'\r\n"),
        (b"*2000000000\r\n", b"-ERR Protocol error: invalid multibulk length\r\n"),
        (b"\x00" * 70_000, b"-ERR Protocol error: too big inline request\r\n"),
        (b"PING 'x\r\n", b"-ERR Protocol error: unbalanced quotes in request\r\n"),
        (b"POST / HTTP/1.1\r\n", b"-ERR Protocol error: this port does not speak HTTP\r\n"),
        (b"GET / HTTP/1.1\r\nHost: evil\r\n\r\n", b"-ERR Protocol error: this port does not speak HTTP\r\n"),
        (b"POST /\r\n", b"-ERR Protocol error: this port does not speak HTTP\r\n"),
    ],
)  # fmt: skip
def test_refused_and_closed(server: serving.ServerProcess, raw: Any, data: bytes, answer: bytes) -> None:
    raw.ping()
    assert said_before_closing(server.port, data) == answer
    assert raw.ping(), "another peer suffered for it"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("GET session:1", "'session:1' is no key of GearMonkey: this is a job server and not a Redis"),
        ("SET greeting hello", "'greeting' is no key of GearMonkey"),
        ("LPUSH queue:f:urgent 1", "'queue:f:urgent' is no queue"),
        ("LPUSH queue:f:normal one", "has no job id at its end"),
        ("LPUSH queue:f:normal 5", "INCR uid:f and HMSET"),
        ("HMSET job:f:5 status idle", "there is no job 5; take an id with INCR uid:f first"),
        ("HMSET job:f:5 colour red", "there is no job 5; take an id with INCR uid:f first"),
        ("HMSET job:f:5 status lazy", "'lazy' is no status of a job"),
        ("SET uid:f 1", "ids are never given out twice"),
        ("DEL queue:f:normal", "cannot be deleted"),
        ("EXPIRE queue:f:normal 10", "does not expire"),
        ("ZADD queue:f:scheduled -1 1", "is no time in seconds since 1970"),
        ("ZADD queue:f:scheduled nan 1", "value is not a valid float"),
        ("SUBSCRIBE news", "'news' is no key of GearMonkey"),
        ("SCRIPT LOAD return", "only the script of GearMonkey's document is known here"),
        ("FLUSHALL", "unknown command 'FLUSHALL'"),
        ("INCRBY uid:f 1000000", "gives out 1 to 1000 ids at once"),
        ("AUTH secret", "without any password configured"),
        ("HELLO 4", "unsupported protocol version"),
    ],
)
def test_refused_and_open(raw: Any, command: str, words: str) -> None:
    with pytest.raises((redis.ResponseError, redis.AuthenticationError)) as refused:
        raw.execute_command(*command.split(" "))
    assert words in str(refused.value)
    assert raw.ping()


def test_pipeline_behind_a_waiting_pop_waits_and_is_answered_in_order(server: serving.ServerProcess) -> None:
    with socket.create_connection((serving.HOST, server.port), 10) as peer:
        peer.sendall(b"BRPOP queue:pipe:high 0.05\r\nPING one\r\n")
        peer.sendall(b"PING two\r\n")
        expected = b"*-1\r\n$3\r\none\r\n$3\r\ntwo\r\n"
        heard = b""
        while len(heard) < len(expected):
            heard += peer.recv(100)
        assert heard == expected


def test_pop_of_a_client_that_is_gone_takes_no_job(server: serving.ServerProcess, raw: Any) -> None:
    with socket.create_connection((serving.HOST, server.port), 10) as peer:
        peer.sendall(b"BRPOP queue:gone:normal 0\r\n")
        while raw.info()["blocked_clients"] == 0:
            pass
    while raw.info()["blocked_clients"] != 0:
        pass
    number = raw.incr("uid:gone")
    raw.hset(f"job:gone:{number}", mapping={"status": "idle", "input": ""})
    raw.lpush("queue:gone:normal", number)
    assert raw.rpop("queue:gone:normal") == b"%d" % number


def test_pop_gets_only_the_priorities_that_it_asks_for(server: serving.ServerProcess, raw: Any) -> None:
    """Although there are jobs of its function that it does not want."""
    client = redis_py_peer.Client(server.port)
    unwanted = client.run("choosy", priority="high")
    with socket.create_connection((serving.HOST, server.port), 10) as peer:
        peer.sendall(b"BRPOP queue:choosy:low 10\r\n")
        while raw.info()["blocked_clients"] == 0:
            pass
        wanted = client.run("choosy", priority="low")
        assert peer.recv(100) == b"*2\r\n$16\r\nqueue:choosy:low\r\n$%d\r\n%d\r\n" % (len(str(wanted)), wanted)
    assert raw.rpop("queue:choosy:high") == b"%d" % unwanted
    client.close()


def test_same_push_twice_queues_once(server: serving.ServerProcess, raw: Any) -> None:
    """Libraries send a command again when its answer is late."""
    client = redis_py_peer.Client(server.port)
    number = client.run("twice")
    assert raw.lpush("queue:twice:normal", number) == 1
    assert raw.rpop("queue:twice:normal") == b"%d" % number
    assert raw.rpop("queue:twice:normal") is None
    client.close()


def test_watched_key_that_changed_stops_the_transaction(raw: Any) -> None:
    with raw.pipeline() as pipeline:
        pipeline.watch("count:watched")
        raw.incr("count:watched")
        pipeline.multi()
        pipeline.incr("count:watched")
        with pytest.raises(redis.WatchError):
            pipeline.execute()
    assert raw.get("count:watched") == b"1"
