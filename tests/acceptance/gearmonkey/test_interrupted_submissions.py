"""A submission to our door that is interrupted is repeated, and makes one job."""

from collections.abc import Iterator

import pytest

from geartrain.client import gearmonkey
from tests.acceptance.gearmonkey import redis_py_peer
from tests.acceptance.gearmonkey.conftest import Place, opened
from tests.support import serving
from tests.support.redis_proxy import cut_after


@pytest.fixture(scope="module")
def door() -> Iterator[Place]:
    with opened("geartrain") as there:
        yield there


@pytest.mark.parametrize("command", [b"INFO", b"INCR", b"HMSET"])
def test_cut_before_the_reply(door: Place, function: str, command: bytes) -> None:
    with redis_py_peer.connect(door.port) as raw, cut_after(door.port, command) as port:
        with gearmonkey.Client(f"gearmonkey://{serving.HOST}:{port}") as client:
            numbers = [client.run(function, b"%d" % n) for n in range(3)]
        assert raw.lrange(f"queue:{function}:normal", 0, -1) == [b"%d" % number for number in reversed(numbers)]
        assert [raw.hget(f"job:{function}:{number}", "input") for number in numbers] == [b"0", b"1", b"2"]


def test_scheduled_job(door: Place, function: str) -> None:
    with redis_py_peer.connect(door.port) as raw, cut_after(door.port, b"ZADD") as port:
        with gearmonkey.Client(f"gearmonkey://{serving.HOST}:{port}") as client:
            number = client.run(function, b"x", "scheduled", scheduled=4e9)
        assert raw.zrange(f"queue:{function}:scheduled", 0, -1) == [b"%d" % number]
