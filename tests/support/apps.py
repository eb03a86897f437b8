"""Running a worker of an app for a block, and asking its server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from geartrain.app import App
from geartrain.app.server_transport import ServerTransport
from geartrain.app.worker import AppWorker
from geartrain.app.worker_options import WorkerOptions
from geartrain.client import control

SECONDS = 30  # no answer takes so long


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
