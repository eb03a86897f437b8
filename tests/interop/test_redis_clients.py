"""Real Redis clients at our door: redis-py, in RESP 2 and 3, with and without asyncio, and redis-cli."""

import asyncio
import itertools
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import redis
import redis.asyncio

from tests.acceptance.gearmonkey import redis_py_peer
from tests.support import redis_server, serving

_serial = itertools.count(1)


@pytest.fixture(scope="module")
def monkey() -> Iterator[int]:
    with serving.serve("--store", "memory", "--listen", f"gearmonkey://{serving.HOST}:0") as running:
        yield int(running.url.rpartition(":")[2])


@pytest.fixture
def fn() -> str:
    """A function of its own: what a test pops and does not finish goes back to its queue."""
    return f"f{next(_serial)}"


@pytest.mark.parametrize("options", [{}, {"protocol": 2}, {"protocol": 3}, {"db": 5, "client_name": "me"}])
def test_redis_py(monkey: int, fn: str, options: dict[str, Any]) -> None:
    with redis.Redis(port=monkey, **options) as client:
        number = client.incr(f"uid:{fn}")
        assert client.hset(f"job:{fn}:{number}", mapping={"status": "idle", "input": b"\xff"}) == 2
        assert client.lpush(f"queue:{fn}:normal", number) == 1
        popped = client.brpop([f"queue:{fn}:high", f"queue:{fn}:normal"], 1)
        assert list(popped) == [f"queue:{fn}:normal".encode(), b"%d" % number]
        assert client.hgetall(f"job:{fn}:{number}") == {b"status": b"busy", b"input": b"\xff"}
        with pytest.warns(DeprecationWarning, match="hmset"):
            assert client.hmset(f"job:{fn}:{number}", {"status": "success", "output": "out"})
        assert client.brpop([f"lock:{fn}:{number}"], 1)
        assert client.brpop([f"queue:{fn}:high"], 0.01) is None
        assert client.evalsha("5231827cd49b540660ef44969b38cc858f157824", 1, f"queue:{fn}:scheduled", 1) is None
        assert client.scan_iter("job:*") is not None
        assert client.info()["redis_version"]


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("transaction", [True, False])
def test_redis_py_pipeline(monkey: int, fn: str, protocol: int, transaction: bool) -> None:
    with redis.Redis(port=monkey, protocol=protocol) as client:
        number = client.incr(f"uid:{fn}")
        with client.pipeline(transaction=transaction) as pipeline:
            pipeline.hset(f"job:{fn}:{number}", mapping={"status": "idle", "input": "x"})
            pipeline.lpush(f"queue:{fn}:normal", number)
            pipeline.rpop(f"queue:{fn}:normal")
            assert pipeline.execute() == [2, 1, b"%d" % number]


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py_subscriber(monkey: int, protocol: int) -> None:
    with redis.Redis(port=monkey, protocol=protocol) as client, client.pubsub() as subscriber:
        subscriber.subscribe("channel:s")
        assert subscriber.get_message(timeout=60)["type"] == "subscribe"
        assert client.publish("channel:s", "hello") == 1
        assert subscriber.get_message(timeout=60)["data"] == b"hello"
        subscriber.ping()
        subscriber.unsubscribe()
        kinds = [subscriber.get_message(timeout=60) for _ in range(2)]
        assert [message["type"] for message in kinds if message][-1] == "unsubscribe"


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py_registered_script(monkey: int, fn: str, protocol: int) -> None:
    with redis.Redis(port=monkey, protocol=protocol) as client:
        due = client.register_script(redis_py_peer.SCRIPT)
        assert due(keys=[f"queue:{fn}:scheduled"], args=[1]) is None
        number = client.incr(f"uid:{fn}")
        client.hset(f"job:{fn}:{number}", mapping={"status": "idle", "input": "x"})
        assert client.zadd(f"queue:{fn}:scheduled", {str(number): 1}) == 1
        assert due(keys=[f"queue:{fn}:scheduled"], args=[1]) == [f"queue:{fn}:scheduled".encode(), b"%d" % number]


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py_with_asyncio(monkey: int, fn: str, protocol: int) -> None:
    async def scenario() -> None:
        async with redis.asyncio.Redis(port=monkey, protocol=protocol) as client:
            number = await client.incr(f"uid:{fn}")
            await client.hset(f"job:{fn}:{number}", mapping={"status": "idle", "input": "x"})
            popping = asyncio.create_task(client.brpop([f"queue:{fn}:high", f"queue:{fn}:normal"], 5))
            await client.ping()
            await client.lpush(f"queue:{fn}:normal", number)
            assert list(await popping) == [f"queue:{fn}:normal".encode(), b"%d" % number]
            assert await client.hget(f"job:{fn}:{number}", "status") == b"busy"

    asyncio.run(scenario())


@pytest.mark.peer("redis-server")
@pytest.mark.parametrize("options", [[], ["-3"]])
def test_redis_cli(monkey: int, options: list[str]) -> None:
    lines = [
        "PING",
        "incr uid:cli",
        "HGETALL job:cli:1",
        'PUBLISH channel:cli "hello there"',
        "GET nothing",
        "nonsense",
    ]
    command = [redis_server.program("redis-cli"), "-p", str(monkey), *options]
    said = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=60, check=True)
    first, number, *rest = said.stdout.splitlines()
    assert first == "PONG"
    assert int(number) > 0
    assert "0" in rest
    assert any(line.startswith("ERR 'nothing' is no key of GearMonkey") for line in rest)
    assert any(line.startswith("ERR unknown command 'nonsense'") for line in rest)
