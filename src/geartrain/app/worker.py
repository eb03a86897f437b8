"""A worker for all tasks of an app: one connection to each server, and the app's schedules registered there."""

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from geartrain.app import failure, schedules
from geartrain.app.runner import AttemptResult, TaskRunner
from geartrain.app.server_control import ServerControl
from geartrain.app.task import Task
from geartrain.app.threads import DaemonThreads
from geartrain.app.worker_job import WorkerJob
from geartrain.client.async_worker import AsyncWorker
from geartrain.client.job import Job
from geartrain.client.slots import Slots

if TYPE_CHECKING:
    from geartrain.app.app import App

# The server's timeout of a job is this many seconds longer than the task's, so that the worker, which can retry the
# task, notices first.
_GRACE: Final = 10.0
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class AppWorker:
    """Runs an app's tasks; `concurrency` is the limit over all servers. A first stop waits for running tasks."""

    def __init__(self, app: "App", *, concurrency: int = 10, name: str = "") -> None:
        for task in app.tasks.values():
            _ = task.parameters.types  # raises for types that cannot be decoded, before the first job
        self._app = app
        self._concurrency = concurrency
        self._name = name
        self._workers: list[AsyncWorker] = []
        self._controls: list[ServerControl] = []
        self._registrations: list[asyncio.Task[None]] = []
        self._threads = DaemonThreads(f"{app.name}-task")
        self._runner = TaskRunner(app.around_runs, self._threads)

    async def serve(self, signals: bool = True) -> None:
        """Work until `stop`, SIGTERM or SIGINT."""
        loop = asyncio.get_running_loop()
        handled = _SIGNALS if signals and threading.current_thread() is threading.main_thread() else ()
        for number in handled:
            loop.add_signal_handler(number, self.stop)
        try:
            await self.start()
            await asyncio.gather(*(worker.close(ask=False) for worker in self._workers))
        finally:
            for number in handled:
                loop.remove_signal_handler(number)
            await self.close()

    async def start(self) -> None:
        """Start to work; `ready` waits until all servers are connected."""
        app = self._app
        slots = Slots(self._concurrency)
        for url in app.urls:
            control = ServerControl(url, app.tls, app.token)
            worker = AsyncWorker(url, concurrency=self._concurrency, name=self._name, tls=app.tls, token=app.token)
            worker.slots = slots  # shared, so that the limit is over all servers
            for task in app.tasks.values():
                timeout = task.timeout + _GRACE if task.timeout else 0.0
                worker.register(task.function_name, self._job_function(task, control), timeout=timeout)
            self._controls.append(control)
            self._workers.append(worker)
            await worker.start()
            self._registrations.append(asyncio.create_task(schedules.register(app, control, url)))

    async def ready(self) -> None:
        """Wait until all servers are connected and have the schedules."""
        for worker in self._workers:
            await worker.ready()
        await asyncio.gather(*self._registrations)

    def stop(self) -> None:
        """Stop when the running tasks are finished; the second call stops at once."""
        for worker in self._workers:
            worker.stop()

    async def close(self) -> None:
        """Stop, and wait for the end."""
        for registration in self._registrations:
            registration.cancel()
        await asyncio.gather(*self._registrations, return_exceptions=True)
        await asyncio.gather(*(worker.close() for worker in self._workers))
        for control in self._controls:
            await control.close()
        self._threads.close()
        await self._app.close()
        self._workers, self._controls, self._registrations = [], [], []

    def _job_function(self, task: Task[Any, Any], control: ServerControl) -> Callable[[Job], Awaitable[bytes | None]]:
        loop, loop_thread = asyncio.get_running_loop(), threading.get_ident()

        async def run(job: Job) -> bytes | None:
            worker_job = WorkerJob(job, control, loop, loop_thread)
            attempt = await self._runner.run(task, worker_job)
            return attempt.result if attempt.error is None else await self._after_failure(task, worker_job, attempt)

        return run

    async def _after_failure(self, task: Task[Any, Any], job: WorkerJob, failed: AttemptResult) -> bytes | None:
        """Retry in this worker where the server cannot do it; None: this worker has no answer to give."""
        decision = await failure.handle_failure(task, job, failed, attempt=0)
        while decision is not None:
            await asyncio.sleep(decision.delay)
            attempt = await self._runner.run(task, job)
            if attempt.error is None:
                return attempt.result
            decision = await failure.handle_failure(task, job, attempt, decision.attempt)
        return None
