"""A worker of the HTTP API: one claim waits for each job that may still begin, and reports of a job keep their order.

The server knows a worker by an id, whose lease has to be renewed. While jobs run, the renewal waits at the server, and
is answered at once when the server takes a job back. The functions are part of the registration: when they change, the
worker registers again, and unregisters its old id when the last job that was claimed with it has ended.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from geartrain import jsonbytes
from geartrain.address import Address
from geartrain.client.order import Capabilities
from geartrain.client.protocols.base import Assignment, JobRunner, Lost, WorkerProtocol, whole_numbers
from geartrain.client.protocols.heartbeat import HEARTBEATS_PER_LEASE
from geartrain.client.protocols.http.connections import API, HttpClientPool, quoted
from geartrain.errors import ClientError, ServerGoneError

WORKER: Final = Capabilities(progress=True, data=True, failure=True, reschedule=True)

_CLAIM_SECONDS: Final = 30  # how long a claim waits for a job
_RENEWAL_PAUSE: Final = 0.05  # so that a server that does not let renewals wait is not asked all the time
_CLOSE_SECONDS: Final = 5.0  # for the last reports
_LAST_CODE: Final = 255


class Report(NamedTuple):
    """A report of a job that is to be sent."""

    verb: str
    body: Any = None
    raw: bytes | None = None
    last: bool = False


_RELEASED: Final = Report("", last=True)  # sends nothing


class ClaimedAssignment(Assignment):
    """A job, the id that it was claimed with, and its reports that are not sent yet."""

    __slots__ = ("reports", "revoked", "worker")

    def __init__(self, worker: str, view: dict[str, Any]) -> None:
        names = (jsonbytes.decode(view["handle"]), jsonbytes.decode(view["unique"]))
        super().__init__(jsonbytes.decode(view["function"]), jsonbytes.decode(view["payload"]), *names)
        self.attempt = view["attempts"]
        self.worker = worker
        self.revoked = False  # the server took it back
        self.reports: asyncio.Queue[Report] = asyncio.Queue()


class Worker(WorkerProtocol):
    """A worker with one task for each job that may run at once."""

    capabilities = WORKER

    def __init__(self, address: Address, lost: Lost, runner: JobRunner, name: bytes, concurrency: int) -> None:
        super().__init__(address, lost, runner, name, concurrency)
        self._http = HttpClientPool(address)
        self._functions: set[bytes] = set()
        self._id = ""  # empty: not registered
        self._lease = 0.0
        self._held: dict[str, set[ClaimedAssignment]] = {}  # running jobs, by the id that they were claimed with
        self._claimed = asyncio.Event()  # a job runs
        self._claims: set[asyncio.Task[Any]] = set()  # that wait for a job
        self._registering = asyncio.Lock()
        self._changed = asyncio.Event()  # the id has changed, or fetching has stopped
        self._stopped_fetching = False
        self._over = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: list[asyncio.Task[None]] = []

    @classmethod
    def unsupported_reason(cls, function: bytes) -> str:
        """The server refuses an empty name."""
        return "" if function else "the name of a function of http is not empty"

    async def open(self, functions: dict[bytes, float]) -> None:
        """Register, and claim jobs."""
        self.check_names(*functions)
        self._functions = set(functions)
        try:
            await self._http.open(self.tls, self.token)
            await self._register()
        except BaseException:
            await self._http.close()
            raise
        self._connections = [self._start(self._claim_jobs) for _ in range(self.concurrency)]
        self._start(self._renew)

    def register(self, function: bytes, timeout: float) -> None:
        """Register again with the changed functions."""
        self.check_names(function)
        if function not in self._functions:
            self._functions.add(function)
            self._start(self._register)

    def unregister(self, function: bytes) -> None:
        """Register again with the changed functions."""
        if function in self._functions:
            self._functions.discard(function)
            self._start(self._register)

    def stop_fetching(self) -> None:
        """End waiting claims: by unregistering, or while jobs run by closing their connections."""
        self._stopped_fetching = True
        self._changed.set()
        if any(self._held.values()):
            self._cancel_claims()
        else:
            self._start(self._leave)

    async def fetching_stopped(self) -> None:
        """Return when no claim waits."""
        while self._claims:
            await asyncio.wait(self._claims)

    def progress(self, job: Assignment, numerator: float, denominator: float) -> None:
        """POST progress."""
        whole, of = whole_numbers(numerator, denominator)
        self._report(job, Report("progress", {"numerator": whole, "denominator": of}))

    def data(self, job: Assignment, data: bytes) -> None:
        """POST data."""
        self._report(job, Report("data", raw=data))

    def warn(self, job: Assignment, data: bytes) -> None:
        """POST warning."""
        self._report(job, Report("warning", raw=data))

    def complete(self, job: Assignment, result: bytes) -> None:
        """POST complete."""
        self._report(job, Report("complete", raw=result, last=True))

    def fail(self, job: Assignment, reason: str, data: bytes = b"", code: int = 1) -> None:
        """POST fail."""
        body = {"reason": reason, "code": min(max(code, 1), _LAST_CODE)}
        if data or reason:
            body["data"] = jsonbytes.encode(data or reason.encode())
        self._report(job, Report("fail", body, last=True))

    def reschedule(self, job: Assignment, delay: float) -> None:
        """POST reschedule."""
        self._report(job, Report("reschedule", {"delay": delay}, last=True))

    def release(self, job: Assignment) -> None:
        """Send nothing, and claim the next job."""
        self._report(job, _RELEASED)

    async def close(self) -> None:
        """Send the last reports, unregister, and close every connection."""
        self._stopped_fetching = True
        self._changed.set()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                for job in [job for jobs in self._held.values() for job in jobs]:
                    if job.reports.empty():
                        continue
                    await job.reports.join()
                await self._leave()
        except (ClientError, TimeoutError):
            pass  # the server notices when the lease expires
        await self._end()

    # Tasks

    async def _claim_jobs(self) -> None:
        """Claim and run one job after the other."""
        while not self._stopped_fetching:
            if not self._id:
                self._changed.clear()
                await self._changed.wait()
                continue
            job = await self._claim(self._id)
            if job is not None:
                self._held.setdefault(job.worker, set()).add(job)
                self._claimed.set()
                self.runner.assigned(job)
                await self._send_reports(job)

    async def _claim(self, id: str) -> ClaimedAssignment | None:
        claim = asyncio.ensure_future(self._http.ask("POST", f"{API}/workers/{id}/claim?wait={_CLAIM_SECONDS}"))
        self._claims.add(claim)
        try:
            await asyncio.wait({claim})
        except asyncio.CancelledError:
            claim.cancel()
            raise
        finally:
            self._claims.discard(claim)
        if claim.cancelled():
            return None  # by `_cancel_claims`
        answer = claim.result()
        if answer.status == 404:
            if id == self._id and not self._stopped_fetching:
                raise ServerGoneError("the server does not know this worker any more")
            return None
        return ClaimedAssignment(id, answer.json()) if answer.checked().status == 200 else None

    async def _send_reports(self, job: ClaimedAssignment) -> None:
        while True:
            report = await job.reports.get()
            if report.verb and not job.revoked:
                path = f"{API}/workers/{job.worker}/jobs/{quoted(job.handle)}/{report.verb}"
                answer = await self._http.ask("POST", path, report.body, report.raw)
                if answer.status in (404, 409):
                    self._revoke(job, tell=not report.last)
            job.reports.task_done()
            if report.last:
                break
        held = self._held[job.worker]
        held.discard(job)
        if not held and job.worker != self._id:
            del self._held[job.worker]
            await self._unregister(job.worker)

    async def _register(self) -> None:
        """Register the current functions under a new id, and let all claims use it; one change at a time."""
        async with self._registering:
            await self._replace_id()

    async def _replace_id(self) -> None:
        old, self._id = self._id, ""
        if self._functions and not self._stopped_fetching:
            functions = [jsonbytes.encode(function) for function in self._functions]
            body = {"functions": functions, "name": jsonbytes.encode(self.name)}
            answer = (await self._http.ask("POST", f"{API}/workers", body)).checked().json()
            self._id, self._lease = answer["id"], answer["lease"]
        if old:
            self._cancel_claims()
            if not self._held.get(old):
                self._held.pop(old, None)
                await self._unregister(old)
        self._changed.set()

    async def _renew(self) -> None:
        """Renew the worker's leases: now and then, and while jobs run with a request that waits for revoked jobs."""
        while True:
            pause = (self._lease or 60.0) / HEARTBEATS_PER_LEASE
            if not any(self._held.values()):
                self._claimed.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._claimed.wait()
            wait = f"?wait={pause:g}" if any(self._held.values()) else ""
            ids = {*self._held, self._id} - {""}
            await asyncio.gather(*(self._renew_lease(id, wait) for id in ids))
            await asyncio.sleep(_RENEWAL_PAUSE)

    async def _renew_lease(self, id: str, wait: str) -> None:
        answer = await self._http.ask("POST", f"{API}/workers/{id}/renew{wait}")
        if answer.status != 200:
            return
        for handle in map(jsonbytes.decode, answer.json().get("revoked", ())):
            for job in [job for job in self._held.get(id, ()) if job.handle == handle]:
                self._revoke(job)

    def _revoke(self, job: ClaimedAssignment, tell: bool = True) -> None:
        """The server took a job back; its function has ended already if it is not to be told."""
        if not job.revoked:
            job.revoked = True
            if tell:
                self.runner.revoked(job)

    async def _leave(self) -> None:
        ids, self._id = {*self._held, self._id} - {""}, ""
        for id in ids:
            await self._unregister(id)

    async def _unregister(self, id: str) -> None:
        await self._http.ask("DELETE", f"{API}/workers/{id}")

    def _cancel_claims(self) -> None:
        for claim in list(self._claims):
            claim.cancel()

    def _report(self, job: Assignment, report: Report) -> None:
        assert isinstance(job, ClaimedAssignment)
        if not self._over:
            job.reports.put_nowait(report)

    def _start(self, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except ClientError as error:
            if not self._over:
                self._over = True
                self._start(self._end)
                self.lost(error)

    async def _end(self) -> None:
        self._over = True
        this = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not this]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._http.close()
