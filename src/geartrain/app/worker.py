"""A worker for the tasks of an app: connections to each server, where it registers the app's schedules and limits."""

import asyncio
import contextlib
import threading
import traceback
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from geartrain.app import failure, lifespan, queued_jobs, registration, run_log, task_selection
from geartrain.app.process_memory import resident_bytes
from geartrain.app.runner import AttemptResult, TaskRunner
from geartrain.app.server_control import ServerControl
from geartrain.app.task import Task
from geartrain.app.threads import DaemonThreads
from geartrain.app.worker_job import WorkerJob
from geartrain.app.worker_options import WorkerOptions
from geartrain.client import stop_signals
from geartrain.client.async_worker import AsyncWorker
from geartrain.client.job import Job
from geartrain.client.slots import Slots
from geartrain.errors import AppError

if TYPE_CHECKING:
    from geartrain.app.app import App

# The server's timeout of a job is this many seconds longer than the task's, so that the worker, which can retry the
# task, notices first.
_GRACE: Final = 10.0
_BURST_PAUSE: Final = 0.2  # seconds between two looks at queues whose jobs other workers are about to get


class AppWorker:
    """Runs tasks of an app. A first stop waits for running tasks."""

    def __init__(self, app: "App", options: WorkerOptions = WorkerOptions()) -> None:  # noqa: B008  # frozen
        self.tasks = task_selection.select(app, options.only, options.exclude)
        for task in self.tasks:
            # These raise before the first job: for types that cannot be decoded, and for impossible dependencies.
            _ = task.parameters.types, task.plan
        self.limit_reached: Callable[[str], None] = lambda why: None  # called once, before the worker stops for it
        self._app = app
        self._options = options
        self._lifespan = contextlib.AsyncExitStack()
        self._workers: list[AsyncWorker] = []
        self._controls: list[ServerControl] = []
        self._background: list[asyncio.Task[None]] = []  # registrations with servers, and the end of a burst
        self._threads = DaemonThreads(f"{app.name}-task")
        self._runner = TaskRunner(app.around_runs, self._threads)
        self._running = 0  # tasks
        self._ended = 0  # tasks so far
        self._idle = asyncio.Event()
        self._started = asyncio.Event()
        self._stop_timer: asyncio.TimerHandle | None = None
        self._stopping = False

    async def serve(self, signals: bool = True) -> None:
        """Work until `stop`, SIGTERM or SIGINT; with `burst`, until no job is left."""
        burst: asyncio.Task[None] | None = None
        try:
            with stop_signals.handled(self.stop) if signals else contextlib.nullcontext():
                await self.start()
                if self._options.burst:
                    burst = asyncio.create_task(self._stop_when_idle())
                await asyncio.gather(*(worker.close(ask=False) for worker in self._workers))
                if burst is not None and burst.done():
                    burst.result()
        finally:
            if burst is not None:
                burst.cancel()
            await self.close()

    async def start(self) -> None:
        """Run the app's startup and start to work; `ready` waits until all servers are connected."""
        app, options = self._app, self._options
        await self._start_app()
        slots = Slots(options.concurrency)
        for url in app.urls:
            control = ServerControl(url, app.tls, app.token)
            worker = AsyncWorker(url, concurrency=options.concurrency, name=options.name, tls=app.tls, token=app.token)
            worker.slots = slots  # shared, so that the limit is over all servers
            for task in self.tasks:
                timeout = task.timeout + _GRACE if task.timeout else 0.0
                share = options.max_share if task.max_share is None else task.max_share
                run = self._job_function(task, control)
                worker.register(task.function_name, run, timeout=timeout, max_share=share)
            self._controls.append(control)
            self._workers.append(worker)
            await worker.start()
            self._background.append(asyncio.create_task(self._register(worker, control, url)))
        self._started.set()
        if self._stopping:  # a signal arrived during the startup
            for worker in self._workers:
                worker.stop()

    async def ready(self) -> None:
        """Wait until all servers are connected and have the schedules and limits."""
        for worker in self._workers:
            await worker.ready()
        await asyncio.gather(*self._background)

    async def connected(self) -> None:
        """Wait until one of the servers is connected."""
        await self._started.wait()
        waiting = [asyncio.create_task(worker.ready()) for worker in self._workers]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    def stop(self) -> None:
        """Stop when the running tasks are finished, or `stop_timeout` is over; the second call stops at once."""
        if not self._stopping and self._options.stop_timeout:
            loop = asyncio.get_running_loop()
            self._stop_timer = loop.call_later(self._options.stop_timeout, self.stop)
        self._stopping = True
        for worker in self._workers:
            worker.stop()

    async def close(self) -> None:
        """Stop, wait for the end, and run the app's shutdown."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await asyncio.gather(*(worker.close() for worker in self._workers))
        if self._stop_timer is not None:
            self._stop_timer.cancel()
        for control in self._controls:
            await control.close()
        self._threads.close()
        await self._lifespan.aclose()
        await self._app.close()
        self._workers, self._controls, self._background = [], [], []

    async def _start_app(self) -> None:
        try:
            await self._lifespan.enter_async_context(lifespan.running(self._app))
        except Exception as error:
            trace = "".join(traceback.format_exception(error)).rstrip()
            raise AppError(f"the startup of app {self._app.name!r} failed:\n{trace}") from error

    async def _register(self, worker: AsyncWorker, control: ServerControl, url: str) -> None:
        await worker.ready()  # which logs it if the server cannot be reached
        await registration.register(self._app, self.tasks, control, url)

    # Tasks

    def _job_function(self, task: Task[Any, Any], control: ServerControl) -> Callable[[Job], Awaitable[bytes | None]]:
        loop, loop_thread = asyncio.get_running_loop(), threading.get_ident()

        async def run(job: Job) -> bytes | None:
            worker_job = WorkerJob(job, control, loop, loop_thread)
            self._running += 1
            self._idle.clear()
            try:
                if task.retry_policy.retries:
                    await worker_job.find_attempt()
                attempt = await self._attempt(task, worker_job)
                return attempt.result if attempt.error is None else await self._after_failure(task, worker_job, attempt)
            finally:
                self._task_ended()

        return run

    async def _attempt(self, task: Task[Any, Any], job: WorkerJob) -> AttemptResult:
        run_log.started(task, job)
        attempt = await self._runner.run(task, job)
        if attempt.log:
            await job.keep_log(attempt.log)  # before the job ends: then nothing can be added to it
        if attempt.error is None:
            run_log.done(task, job, attempt)
        return attempt

    async def _after_failure(self, task: Task[Any, Any], job: WorkerJob, failed: AttemptResult) -> bytes | None:
        """Retry in this worker where the server cannot do it; None: this worker has no answer to give."""
        decision = await failure.handle_failure(task, job, failed, attempt=0)
        while decision is not None:
            await asyncio.sleep(decision.delay)
            job.attempt += 1
            attempt = await self._attempt(task, job)
            if attempt.error is None:
                return attempt.result
            decision = await failure.handle_failure(task, job, attempt, decision.attempt)
        return None

    def _task_ended(self) -> None:
        self._running -= 1
        self._ended += 1
        if not self._running:
            self._idle.set()
        if self._stopping:
            return
        why = self._exceeded_limit()
        if why:
            self.limit_reached(why)
            self.stop()

    # Limits, and the end of a burst

    def _exceeded_limit(self) -> str:
        options = self._options
        if options.max_tasks and self._ended >= options.max_tasks:
            return f"{self._ended} tasks"
        if options.max_memory and (memory := resident_bytes()) > options.max_memory:
            return f"{memory / 2**20:.0f} MiB of memory"
        return ""

    async def _stop_when_idle(self) -> None:
        """Stop when no job is left. A job that arrives after the last look is still run before the end."""
        try:
            await self.ready()
            while self._running or await self._count_queued():
                if self._running:
                    await self._idle.wait()
                else:
                    await asyncio.sleep(_BURST_PAUSE)
        finally:
            self.stop()

    async def _count_queued(self) -> int:
        servers = zip(self._controls, self._app.urls, strict=True)
        return sum([await queued_jobs.count(control, url, self.tasks) for control, url in servers])
