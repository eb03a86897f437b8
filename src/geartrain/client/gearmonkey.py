"""The public name of `geartrain.client.redis`: GearMonkey on a real Redis."""

from typing import TYPE_CHECKING, Any

from geartrain.client import redis
from geartrain.client.redis import OPT_BLOCKING, OPT_ROLLCALL, Job, Options

if TYPE_CHECKING:
    from geartrain.client.redis import AsyncClient, AsyncWorker, Client, Worker

__all__ = ["OPT_BLOCKING", "OPT_ROLLCALL", "AsyncClient", "AsyncWorker", "Client", "Job", "Options", "Worker"]


def __getattr__(name: str) -> Any:
    """Import clients and workers when they are first used."""
    return getattr(redis, name)
