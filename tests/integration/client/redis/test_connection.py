"""Commands that were never sent are repeated; a server that stays away is an error of the library."""

import asyncio
import socket

import pytest

from geartrain.client.redis import connection, flow
from geartrain.client.redis.connection import RedisConnection
from geartrain.errors import AddressError, ServerGoneError


@pytest.mark.parametrize("request_class", [flow.once, flow.repeatable])
def test_a_server_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch, request_class: object) -> None:
    monkeypatch.setattr(connection, "FIRST_PAUSE", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]

    def push() -> flow.Flow[int]:
        return (yield request_class("LPUSH", "queue", 1))  # type: ignore[operator]

    async def scenario() -> None:
        redis = RedisConnection(f"gearmonkey://127.0.0.1:{port}/0")
        with pytest.raises(ServerGoneError, match=f"{port}.* does not answer"):
            await redis.run(push())
        assert redis.breaks == connection.ATTEMPTS
        await redis.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("url", ["gearman://127.0.0.1:4730", "gearmonkey://127.0.0.1/jobs"])
def test_addresses_that_are_not_gearmonkeys(url: str) -> None:
    with pytest.raises(AddressError):
        RedisConnection(url)
