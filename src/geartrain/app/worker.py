"""A worker for all tasks of an app: one connection to each of its servers, and their schedules kept up to date."""

import asyncio
import logging
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from geartrain.app import failure, schedules
from geartrain.app.runner import Ending, Runner
from geartrain.app.server_control import ServerControl
from geartrain.app.task import Task
from geartrain.app.threads import Threads
from geartrain.app.worker_job import WorkerJob
from geartrain.client.async_worker import AsyncWorker
from geartrain.client.job import Job
from geartrain.client.slots import Slots

if TYPE_CHECKING:
    from geartrain.app.app import App

# The server's own limit for a job is so much longer than the task's: the worker, which knows what to do then,
# shall be first to notice.
_GRACE: Final = 10.0
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_log = logging.getLogger("geartrain.app")


class AppWorker:
    """Runs an app's tasks. `concurrency` is over all servers; a stop lets what runs finish, a second does not."""

    def __init__(self, app: "App", *, concurrency: int = 10, name: str = "") -> None:
        for task in app.tasks.values():
            _ = task.parameters.kinds  # what cannot be read is said now, not by the first job
        self._app = app
        self._concurrency = concurrency
        self._name = name
        self._workers: list[AsyncWorker] = []
        self._steering: list[ServerControl] = []
        self._keeping: list[asyncio.Task[None]] = []
        self._threads = Threads(f"{app.name}-task")
        self._runner = Runner(app.around_runs, self._threads)

    async def serve(self, signals: bool = True) -> None:
        """Work until `stop`, SIGTERM or SIGINT."""
        loop = asyncio.get_running_loop()
        heeded = _SIGNALS if signals and threading.current_thread() is threading.main_thread() else ()
        for number in heeded:
            loop.add_signal_handler(number, self.stop)
        try:
            await self.start()
            await asyncio.gather(*(worker.close(ask=False) for worker in self._workers))
        finally:
            for number in heeded:
                loop.remove_signal_handler(number)
            await self.close()

    async def start(self) -> None:
        """Begin to work; `ready` tells when all servers are reached."""
        app = self._app
        slots = Slots(self._concurrency)
        for url in app.urls:
            steering = ServerControl(url)
            worker = AsyncWorker(url, concurrency=self._concurrency, name=self._name)
            worker.slots = slots  # all of them together run no more
            for task in app.tasks.values():
                limit = task.terms.timeout + _GRACE if task.terms.timeout else 0.0
                worker.register(task.function_name, self._hand(task, steering), timeout=limit)
            self._steering.append(steering)
            self._workers.append(worker)
            await worker.start()
            self._keeping.append(asyncio.create_task(schedules.keep(app, steering, url)))

    async def ready(self) -> None:
        """Wait until it works for all its servers, and they know the schedules."""
        for worker in self._workers:
            await worker.ready()
        await asyncio.gather(*self._keeping)

    def stop(self) -> None:
        """Finish what runs and end; the second time, end at once."""
        for worker in self._workers:
            worker.stop()

    async def close(self) -> None:
        """Stop, and wait for the end."""
        for task in self._keeping:
            task.cancel()
        await asyncio.gather(*self._keeping, return_exceptions=True)
        await asyncio.gather(*(worker.close() for worker in self._workers))
        for steering in self._steering:
            await steering.close()
        self._threads.close()
        await self._app.close()
        self._workers, self._steering, self._keeping = [], [], []

    def _hand(self, task: Task[Any, Any], steering: ServerControl) -> Callable[[Job], Awaitable[bytes | None]]:
        loop, home = asyncio.get_running_loop(), threading.get_ident()

        async def hand(job: Job) -> bytes | None:
            assigned = WorkerJob(job, steering, loop, home)
            ending = await self._runner.run(task, assigned)
            return ending.result if ending.error is None else await self._again(task, assigned, ending)

        return hand

    async def _again(self, task: Task[Any, Any], job: WorkerJob, ending: Ending) -> bytes | None:
        """An attempt failed."""
        verdict = await failure.judge(task, job, ending, attempt=0)
        while verdict is not failure.SETTLED:
            await asyncio.sleep(verdict.delay)
            ending = await self._runner.run(task, job)
            if ending.error is None:
                return ending.result
            verdict = await failure.judge(task, job, ending, verdict.attempt)
        return None
