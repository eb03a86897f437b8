"""The jobs that a worker runs or has fetched ahead: begin them, revoke them, send their outcomes.

Coroutine functions run as tasks of the event loop, plain ones in threads, in processes, or on the loop.
"""

import asyncio
import functools
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from geartrain.client import execution
from geartrain.client.execution import JobOutcome
from geartrain.client.job import Function, Job, JobDetails
from geartrain.client.processes import InProcess
from geartrain.client.protocols.base import Assignment
from geartrain.client.thread_pool import Executor, InThread, ThreadPool
from geartrain.client.worker_connection import WorkerConnection

# The executors of modes that use threads.
_POOLS: Final[dict[str, Callable[[], Executor]]] = {"thread": InThread, "process": InProcess}

_log = logging.getLogger("geartrain.worker")


class RegisteredFunction(NamedTuple):
    """A function that a worker runs."""

    call: Function
    timeout: float  # seconds a job may take; 0: no limit
    mode: str  # "coroutine" or one of `async_worker.MODES`
    max_share: float = 0.0  # of the worker's slots; 0: all of them


class RunningJob:
    """A job that runs, and the connection that it came from."""

    __slots__ = ("assignment", "connection", "job", "pool", "task")

    def __init__(self, connection: WorkerConnection, assignment: Assignment, pool: ThreadPool | None) -> None:
        self.connection = connection
        self.assignment = assignment
        self.pool = pool  # that runs it, of a plain function
        # A report from another thread must neither overtake the job's end nor be overtaken by it.
        report = functools.partial(pool.call_on_loop, self._report) if pool is not None else self._report
        self.job = Job(
            JobDetails(
                assignment.payload,
                assignment.function,
                assignment.handle,
                assignment.unique,
                connection.no_reschedule,
                assignment.attempt,
            ),
            report,
        )
        self.task: asyncio.Task[None] | None = None  # of a coroutine function

    def _report(self, kind: str, *values: Any) -> None:
        self.connection.report(self.assignment, kind, *values)


class RunningJobs:
    """All jobs of one worker, at most `concurrency` of which run at once."""

    def __init__(self, functions: Mapping[bytes, RegisteredFunction], concurrency: int, tracebacks: bool) -> None:
        self._functions = functions
        self._concurrency = concurrency
        self._tracebacks = tracebacks  # clients receive them
        self._running: dict[Assignment, RunningJob] = {}
        # Fetched ahead, or by protocols that do not use the slots.
        self._backlog: deque[tuple[WorkerConnection, Assignment]] = deque()
        self._pools: dict[str, ThreadPool] = {}  # by mode
        self._giving_up = False  # jobs that still run are left to other workers
        self._idle: asyncio.Event | None = None  # while `finished` waits

    def __len__(self) -> int:
        return len(self._running)

    def assigned(self, connection: WorkerConnection, assignment: Assignment) -> None:
        """Run a job, now or when another has ended."""
        if len(self._running) < self._concurrency or self._may_wait_in_pool(assignment):
            self._begin(connection, assignment)
        else:
            self._backlog.append((connection, assignment))

    def revoked(self, assignment: Assignment) -> None:
        """A server took a job back: a coroutine is cancelled, a process is ended, a thread can see `job.revoked`."""
        running = self._running.get(assignment)
        if running is not None:
            running.job.revoked = True
            _log.info("job %s of %s was taken back by its server", running.job.handle, running.job.function)
            if running.task is not None:
                running.task.cancel()
            elif running.pool is not None:
                running.pool.stop(running.job)
            return
        for entry in list(self._backlog):
            connection, waiting = entry
            if waiting is assignment:
                self._backlog.remove(entry)
                connection.job_ended(assignment)
                connection.protocol.release(assignment)

    async def finished(self) -> None:
        """Wait until no job runs."""
        while self._running:
            self._idle = asyncio.Event()
            await self._idle.wait()

    def give_up(self) -> list[asyncio.Task[None]]:
        """Leave jobs that still run to other workers; return the tasks of those that are coroutines, cancelled."""
        self._giving_up = True
        tasks = [running.task for running in self._running.values() if running.task is not None]
        for task in tasks:
            task.cancel()
        return tasks

    async def close(self, aborted: bool) -> None:
        """End threads and processes; `aborted`: without waiting for their functions."""
        for pool in self._pools.values():
            if aborted:
                pool.abandon()
            else:
                await pool.close()
        self._pools.clear()
        self._running.clear()
        self._giving_up = False

    def _may_wait_in_pool(self, assignment: Assignment) -> bool:
        """Whether a job that was fetched ahead may wait in the thread pool, which saves a wake-up of the loop.

        As long as all jobs are the pool's, no more of them run than there are threads.
        """
        function = self._functions.get(assignment.function)
        pool = self._pools.get(function.mode) if function is not None else None
        return pool is not None and not self._backlog and pool.busy == len(self._running)

    def _begin(self, connection: WorkerConnection, assignment: Assignment) -> None:
        function = self._functions.get(assignment.function)
        pool = self._pool(function.mode) if function is not None and function.mode in _POOLS else None
        running = RunningJob(connection, assignment, pool)
        self._running[assignment] = running
        if function is None:
            self._ended(running, JobOutcome(failure="this worker does not run the function any more"))
        elif pool is not None:
            pool.run(function.call, running.job, functools.partial(self._ended, running))
        elif function.mode == "coroutine":
            running.task = asyncio.create_task(self._run_coroutine(running, function))
        else:
            self._ended(running, execution.execute(function.call, running.job))

    def _pool(self, mode: str) -> ThreadPool:
        pool = self._pools.get(mode)
        if pool is None:
            pool = self._pools[mode] = ThreadPool(self._concurrency, _POOLS[mode])
        return pool

    async def _run_coroutine(self, running: RunningJob, function: RegisteredFunction) -> None:
        call: Any = function.call
        try:
            if function.timeout:
                outcome = await _run_within(function.timeout, call, running.job)
            else:
                outcome = execution.succeeded(running.job, await call(running.job))
        except Exception as error:
            outcome = execution.failed(error)
        except asyncio.CancelledError:
            # By a revocation or a stop, after which the job is another worker's; or by the function itself.
            running.job.revoked = running.job.revoked or self._giving_up
            outcome = JobOutcome(failure="the function was cancelled")
        except BaseException:  # the whole program ends: the server gives the job to another worker
            running.job.revoked = True
            self._ended(running, JobOutcome())
            raise
        self._ended(running, outcome)

    def _ended(self, running: RunningJob, outcome: JobOutcome) -> None:
        """Send the outcome to the server that assigned the job, and begin the next job."""
        job, assignment, protocol = running.job, running.assignment, running.connection.protocol
        self._running.pop(assignment, None)
        running.connection.job_ended(assignment)
        if not running.connection.is_open or job.revoked:
            protocol.release(assignment)
        elif outcome.failure is not None:
            _log.info("job %s of %s failed: %s", job.handle, job.function, outcome.traceback or outcome.failure)
            reason = outcome.traceback if self._tracebacks and outcome.traceback else outcome.failure
            protocol.fail(assignment, reason, outcome.data, outcome.code)
        elif outcome.delay is not None:
            protocol.reschedule(assignment, outcome.delay)
        else:
            protocol.complete(assignment, outcome.result)
        if self._backlog and len(self._running) < self._concurrency:
            self._begin(*self._backlog.popleft())
        if not self._running and self._idle is not None:
            self._idle.set()


async def _run_within(seconds: float, call: Any, job: Job) -> JobOutcome:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return execution.succeeded(job, await call(job))
    except TimeoutError:
        if not limit.expired():
            raise  # by the function itself
        return JobOutcome(failure=f"it did not finish within {seconds:g} seconds")
