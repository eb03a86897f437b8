"""Workers that open a connection for each command: redis-cli in a shell script, and PHP's extension."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from geartrain.client import gearmonkey
from tests.acceptance.gearmonkey.conftest import Place
from tests.support import process, redis_server

HERE = Path(__file__).parent


def shell(port: int, function: str) -> Sequence[str]:
    script = str(HERE / "connection_per_command.sh")
    return ["sh", script, redis_server.program("redis-cli"), str(port), function]


def php(port: int, function: str) -> Sequence[str]:
    return ["php", str(HERE / "connection_per_command.php"), str(port), function]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(shell, marks=pytest.mark.peer("redis-server")),
        pytest.param(php, marks=pytest.mark.peer("php-redis")),
    ],
)
def test_worker_finishes_its_jobs(place: Place, function: str, raw: Any, tmp_path: Path, command: Any) -> None:
    with gearmonkey.Client(place.url) as client:
        for payload in (b"first", b"second"):
            number = client.run(function, payload)
            worker = process.Process(command(place.port, function), tmp_path)
            client.wait(function, number, process.PATIENCE)
            assert worker.wait() == 0, worker.account()
            assert client.get(function, number)[:3] == ("success", payload, payload.upper())
    assert raw.get(f"count:{function}") in (b"0", None)
    assert not raw.exists(f"queue:{function}:normal")
