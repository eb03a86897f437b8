"""Running a worker of an app for a block, and asking its server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from geartrain.app import App
from geartrain.app.server_transport import ServerTransport
from geartrain.app.worker import AppWorker
from geartrain.app.worker_options import WorkerOptions
from geartrain.client import control
from tests.support import serving

SECONDS = 60  # no answer takes so long


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Run a scenario, which fails when it takes too long."""

    async def bounded() -> None:
        async with asyncio.timeout(3 * SECONDS):
            await scenario

    asyncio.run(bounded())


def url_of(server: serving.ServerProcess, scheme: str) -> str:
    """The URL of a server for a protocol."""
    return next(url for url in server.urls if url.startswith(f"{scheme}:"))


@contextlib.asynccontextmanager
async def working(app: App, concurrency: int = 10) -> AsyncIterator[AppWorker]:
    """The app, with a worker for its tasks."""
    worker = AppWorker(app, WorkerOptions(concurrency=concurrency))
    async with app, asyncio.timeout(SECONDS):
        await worker.start()
        try:
            await worker.ready()
            yield worker
        finally:
            await worker.close()


async def ask(app: App, verb: str, **arguments: Any) -> Any:
    """The answer of the app's server to a control verb."""
    transport = app.transport()
    assert isinstance(transport, ServerTransport)
    return await control.ask(transport.client, verb, **arguments)
