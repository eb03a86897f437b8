"""The client for programs without asyncio: the async client, run by an event loop in a thread.

    with Client("gearman://127.0.0.1:4730") as client:
        print(client.run("reverse", "hello"))
        job = client.submit("report", "monday", background=True)

Threads may share a client and its connection.
"""

import ssl
import weakref
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Literal, Self, overload

from geartrain.client.arguments import Duration, Lifetime, Moment, OnFailure, Text, Waitable
from geartrain.client.async_client import DEFAULT_PATIENCE, AsyncClient
from geartrain.client.async_job import AsyncJob
from geartrain.client.job_events import Event
from geartrain.client.loop_thread import LoopThread
from geartrain.client.order import Capabilities, Order, Status
from geartrain.client.workflow import AsyncWorkflow, WorkflowJob, WorkflowProgress
from geartrain.model import Priority


class SyncJob:
    """A job that `Client.submit` submitted: an `AsyncJob` without await.

    job = client.submit("resize", image)
    thumbnail = job.result(timeout=60)
    """

    __slots__ = ("_job", "_loop")

    def __init__(self, job: AsyncJob, loop: LoopThread) -> None:
        self._job = job
        self._loop = loop

    def __repr__(self) -> str:
        return repr(self._job).replace("AsyncJob", "SyncJob")

    @property
    def handle(self) -> str:
        """The server's name for the job; empty where the protocol has no handles."""
        return self._job.handle

    @property
    def function(self) -> str:
        return self._job.function

    @property
    def unique(self) -> str:
        return self._job.unique

    @property
    def background(self) -> bool:
        return self._job.background

    @property
    def server(self) -> str:
        """The URL of the server that has the job."""
        return self._job.server

    @property
    def done(self) -> bool:
        """Whether the job's last event has arrived."""
        return self._job.done

    def result(self, timeout: float | None = None) -> bytes:
        """Wait for the result, at most `timeout` seconds. See `AsyncJob.result` for the errors."""
        return self._loop.call(self._job.result(timeout))

    def events(self) -> Iterator[Event]:
        """Iterate over the job's events since its submission: each once, Completed or Failed last."""
        return self._loop.iterate(self._job.events())

    def log(self) -> bytes:
        """The log that a worker has kept with a background job, at a Geartrain server; empty if there is none."""
        return self._loop.call(self._job.log())

    def status(self) -> Status:
        """Ask the server for the job's status."""
        return self._loop.call(self._job.status())

    def cancel(self) -> bool:
        """Cancel the job; false if there was none to cancel."""
        return self._loop.call(self._job.cancel())

    def retry(self) -> bool:
        """Run a dead or failed background job again, at a Geartrain server; false if it has not failed."""
        return self._loop.call(self._job.retry())

    def forget(self) -> None:
        """Stop waiting for the job. A foreground job that no client waits for may never run."""
        self._loop.call(_forget(self._job))


class SyncWorkflow:
    """A workflow that `Client.submit_workflow` submitted: an `AsyncWorkflow` without await."""

    __slots__ = ("_loop", "_workflow", "job", "jobs")

    def __init__(self, workflow: AsyncWorkflow, loop: LoopThread) -> None:
        self._workflow = workflow
        self._loop = loop
        self.job = SyncJob(workflow.job, loop)  # stands for the workflow, and ends when all members have ended
        self.jobs = [SyncJob(job, loop) for job in workflow.jobs]  # the members, in the order of their submission

    def __repr__(self) -> str:
        return repr(self._workflow).replace("AsyncWorkflow", "SyncWorkflow")

    @property
    def handle(self) -> str:
        """The server's name for the workflow."""
        return self._workflow.handle

    def wait(self, timeout: float | None = None) -> str:
        """Wait until all members have ended: done, failed or cancelled. A JobTimeoutError after `timeout` seconds."""
        return self._loop.call(self._workflow.wait(timeout))

    def progress(self) -> WorkflowProgress:
        """Ask the server for the workflow's state, and the states of its members."""
        return self._loop.call(self._workflow.progress())

    def cancel(self) -> bool:
        """Cancel every member that has not ended; false if all have."""
        return self._loop.call(self._workflow.cancel())

    def retry(self) -> bool:
        """Run again what failed, and what was cancelled because of it; false if the workflow has not failed."""
        return self._loop.call(self._workflow.retry())


class Client:
    """A client of one server, or of several that speak the same protocol. See `AsyncClient`.

    with Client("gearman://127.0.0.1:4730") as client:
        print(client.run("reverse", "hello"))
    """

    def __init__(
        self,
        *urls: str,
        patience: float = DEFAULT_PATIENCE,
        cluster: bool = False,
        tls: ssl.SSLContext | None = None,
        token: str | None = None,
    ) -> None:
        self._client = AsyncClient(*urls, patience=patience, cluster=cluster, tls=tls, token=token)
        self._loop = LoopThread()
        # Closes a client that is garbage-collected without having been closed.
        self._finalizer = weakref.finalize(self, _close, self._client, self._loop)

    @property
    def capabilities(self) -> Capabilities:
        """What the protocol supports."""
        return self._client.capabilities

    @property
    def protocol(self) -> str:
        return self._client.protocol

    def submit(
        self,
        function: Text,
        payload: Text = b"",
        *,
        background: bool = False,
        priority: Priority | str = Priority.NORMAL,
        unique: Text = b"",
        at: Moment | None = None,
        delay: Duration | None = None,
        timeout: Duration | None = None,
        expires: Lifetime | None = None,
        keep_for: Duration | None = None,
        partition: Text = b"",
        after: Iterable[Waitable] = (),
        on_failure: OnFailure = "cancel",
        resubmit: bool = False,
    ) -> SyncJob:
        """Submit a job; returns when the server has acknowledged it. See `AsyncClient.submit`."""
        order = self._client.order(
            function, payload, background=background, priority=priority, unique=unique, at=at, delay=delay,
            timeout=timeout, expires=expires, keep_for=keep_for, partition=partition, after=after,
            on_failure=on_failure,
        )  # fmt: skip
        return SyncJob(self._loop.call(self._client.submit_order(order, resubmit)), self._loop)

    def run(
        self,
        function: Text,
        payload: Text = b"",
        *,
        wait: float | None = None,
        priority: Priority | str = Priority.NORMAL,
        unique: Text = b"",
        timeout: Duration | None = None,
        partition: Text = b"",
        resubmit: bool = False,
    ) -> bytes:
        """Submit a foreground job and wait for its result, at most `wait` seconds."""
        return self._loop.call(
            self._client.run(
                function,
                payload,
                wait=wait,
                priority=priority,
                unique=unique,
                timeout=timeout,
                partition=partition,
                resubmit=resubmit,
            )
        )

    def submit_workflow(self, name: str, jobs: Iterable[WorkflowJob]) -> SyncWorkflow:
        """Submit many background jobs at once, all of them or none. See `AsyncClient.submit_workflow`."""
        return SyncWorkflow(self._loop.call(self._client.submit_workflow(name, jobs)), self._loop)

    @overload
    def submit_many(
        self, orders: Iterable[Order], *, resubmit: bool = False, return_exceptions: Literal[False] = False
    ) -> list[SyncJob]: ...

    @overload
    def submit_many(
        self, orders: Iterable[Order], *, resubmit: bool = False, return_exceptions: Literal[True]
    ) -> list[SyncJob | Exception]: ...

    def submit_many(
        self, orders: Iterable[Order], *, resubmit: bool = False, return_exceptions: bool = False
    ) -> list[SyncJob] | list[SyncJob | Exception]:
        """Submit many orders as fast as the server takes them. See `AsyncClient.submit_many`."""
        jobs = self._loop.call(self._client.submit_many(orders, resubmit=resubmit, return_exceptions=True))
        if not return_exceptions:
            for job in jobs:
                if isinstance(job, Exception):
                    raise job
        return [job if isinstance(job, Exception) else SyncJob(job, self._loop) for job in jobs]

    def order(
        self,
        function: Text,
        payload: Text = b"",
        *,
        background: bool = False,
        priority: Priority | str = Priority.NORMAL,
        unique: Text = b"",
        at: Moment | None = None,
        delay: Duration | None = None,
        timeout: Duration | None = None,
        expires: Lifetime | None = None,
        keep_for: Duration | None = None,
        partition: Text = b"",
        after: Iterable[Waitable] = (),
        on_failure: OnFailure = "cancel",
    ) -> Order:
        """Make an order for `submit_many`; an UnsupportedError if the protocol cannot express it."""
        return self._client.order(
            function, payload, background=background, priority=priority, unique=unique, at=at, delay=delay,
            timeout=timeout, expires=expires, keep_for=keep_for, partition=partition, after=after,
            on_failure=on_failure,
        )  # fmt: skip

    def job(self, handle: Text, function: Text = b"", unique: Text = b"", server: str = "") -> SyncJob:
        """A background job that was submitted earlier, perhaps by another program. See `AsyncClient.job`."""
        return SyncJob(self._client.job(handle, function, unique, server), self._loop)

    def workflow(self, handle: Text, server: str = "") -> SyncWorkflow:
        """A workflow that was submitted earlier, perhaps by another program, by its handle."""
        return SyncWorkflow(self._client.workflow(handle, server), self._loop)

    def connect(self) -> None:
        """Connect now instead of at the first submission; a ServerGoneError if no server can be reached."""
        self._loop.call(self._client.connect())

    def close(self) -> None:
        """Close every connection. Threads that still wait for a job get a ClientError. A second call does nothing."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def _forget(job: AsyncJob) -> None:
    job.forget()


def _close(client: AsyncClient, loop: LoopThread) -> None:
    loop.end(client.close())
