"""GearMonkey for Python: clients and workers on any real Redis, or on a Geartrain server without one.

    from geartrain.client import gearmonkey

    client = gearmonkey.Client("gearmonkey://127.0.0.1:6379/0")
    number = client.run("reverse", b"hello", options=gearmonkey.OPT_BLOCKING, timeout=10)
    print(client.get("reverse", number).output)

    worker = gearmonkey.Worker("gearmonkey://127.0.0.1:6379/0", lambda payload: payload[::-1])
    worker.accept("reverse")
    worker.run()

`AsyncClient` and `AsyncWorker` are the same for asyncio. `geartrain.Client("gearmonkey://...")`, the general library,
runs the same flows.
"""

from typing import TYPE_CHECKING, Any

from geartrain.client.redis.job import Job, Options

if TYPE_CHECKING:
    from geartrain.client.redis.asynchronous import AsyncClient, AsyncWorker
    from geartrain.client.redis.sync import Client, Worker

OPT_BLOCKING = Options.BLOCKING
OPT_ROLLCALL = Options.ROLLCALL

__all__ = ["OPT_BLOCKING", "OPT_ROLLCALL", "AsyncClient", "AsyncWorker", "Client", "Job", "Options", "Worker"]


def __getattr__(name: str) -> Any:
    """Import clients and workers when they are first used."""
    if name in ("AsyncClient", "AsyncWorker"):
        from geartrain.client.redis import asynchronous

        return getattr(asynchronous, name)
    if name in ("Client", "Worker"):
        from geartrain.client.redis import sync

        return getattr(sync, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
