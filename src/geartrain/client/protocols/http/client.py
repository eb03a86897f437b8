"""A client of the HTTP API.

A foreground job is one request, which the server answers when the job has ended, so there are no events before. The
server waits for five minutes; a job that takes longer is better submitted in the background. Background jobs that are
submitted in the same turn of the event loop share a request.
"""

import asyncio
import functools
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from geartrain import jsonbytes
from geartrain.address import Address
from geartrain.client import job_events, order_fields
from geartrain.client.job_events import Completed, Event, Failed
from geartrain.client.order import Acceptance, Capabilities, Order, Status
from geartrain.client.protocols.base import ClientProtocol, JobListener, Lost
from geartrain.client.protocols.http.connections import API, HttpAnswer, HttpClientPool, quoted
from geartrain.errors import ClientError, ResultGoneError, ServerGoneError
from geartrain.wire.event_stream import EventStream

CLIENT: Final = Capabilities(
    background=True, priority=True, unique=True, run_at=True, timeout=True, expires=True, keep_for=True, partition=True,
    after=True, status=True, cancel=True, result_later=True, failure=True,
)  # fmt: skip

_LONGEST_WAIT: Final = 300  # seconds; the server allows no more
_NOT_THERE: Final = (404, 409)
# Of one request for many jobs. The server takes a thousand; with more bytes, others would wait for it to be read.
_BATCH_JOBS: Final = 500
_BATCH_BYTES: Final = 1024 * 1024
_NO_BATCHES: Final = (404, 405, 413)  # an older server, or one that takes only smaller requests

Submit = Callable[[], Awaitable[None]]
Orders = dict[JobListener, Order]


class Client(ClientProtocol):
    """A client that sends a request for each foreground job, and one for the background jobs of a turn of the loop."""

    capabilities = CLIENT
    has_states = has_workflows = is_geartrain = True

    def __init__(self, address: Address, lost: Lost) -> None:
        super().__init__(address, lost)
        self._http = HttpClientPool(address)
        self._submissions: dict[JobListener, asyncio.Task[None]] = {}
        self._gathered: Orders = {}  # of this turn of the event loop
        self._over = False

    @classmethod
    def unsupported_reason(cls, order: Order) -> str:
        """The server refuses an empty name."""
        return "" if order.function else "the name of a function of http is not empty"

    async def open(self) -> None:
        """Check that there is a Geartrain server."""
        try:
            await self._http.open(self.tls, self.token)
        except BaseException:
            await self._http.close()
            raise

    def submit(self, order: Order, listener: JobListener) -> None:
        """POST /jobs. A foreground job is answered at its end only, so it is accepted at once."""
        if order.background:
            if not self._gathered:
                asyncio.get_running_loop().call_soon(self._submit_gathered)
            self._gathered[listener] = order
        else:
            listener.accepted(Acceptance(b"", order.function, order.unique))
            self._start(functools.partial(self._foreground, order, listener), [listener])

    async def status(self, acceptance: Acceptance) -> Status:
        """GET /jobs/{handle}."""
        answer = await self._http.ask("GET", _path(acceptance))
        if answer.status == 404:
            return Status(False)
        return Status.of_view(answer.checked().json())

    async def cancel(self, acceptance: Acceptance) -> bool:
        """POST /jobs/{handle}/cancel."""
        answer = await self._http.ask("POST", f"{_path(acceptance)}/cancel")
        return answer.status not in _NOT_THERE and bool(answer.checked())

    async def submit_workflow(self, request: dict[str, Any]) -> dict[str, Any]:
        """POST /workflows."""
        answer: dict[str, Any] = (await self._http.ask("POST", f"{API}/workflows", request)).checked().json()
        return answer

    async def result(self, acceptance: Acceptance) -> Event:
        """GET /jobs/{handle}/events, whose last event says how the job ended; then GET the result, if it was kept."""
        while True:
            events = await self._http.ask("GET", f"{_path(acceptance)}/events")
            if events.status == 404:
                raise ResultGoneError(events.problem())
            events.checked()
            job = _last_job(events.body)
            if job is not None:
                break
        if job["state"] != "done":
            return _ending(job)
        return Completed((await self._http.ask("GET", f"{_path(acceptance)}/result")).checked().body)

    def can_follow(self, acceptance: Acceptance) -> bool:
        """The server has a stream of events for each job."""
        return True

    async def events(self, acceptance: Acceptance) -> AsyncIterator[Event]:
        """GET /jobs/{handle}/events, on a connection of its own."""
        stream = EventStream()
        async for part in self._http.stream(f"{_path(acceptance)}/events"):
            for event in stream.feed(part):
                values: dict[str, Any] = msgspec.json.decode(event.data) if event.data else {}
                if event.name == "done":
                    yield Completed((await self._http.ask("GET", f"{_path(acceptance)}/result")).checked().body)
                elif event.name in job_events.REPORTS:
                    yield job_events.of_report(event.name, values)
                elif event.name == "failed":
                    yield _ending(values)

    async def job_events(
        self, function: str = "", what: Sequence[str] = (), local: bool = False
    ) -> AsyncIterator[dict[str, Any]]:
        """GET /events: the server's job events, `{"missed": n}` where some were dropped; ends when the server stops."""
        fields = {"jobs": 1, "function": function, "what": ",".join(what), **({"local": "true"} if local else {})}
        query = urllib.parse.urlencode(fields, errors="surrogateescape")
        events = EventStream()
        async for part in self._http.stream(f"{API}/events?{query}"):
            for event in events.feed(part):
                if event.name in ("job", "missed"):
                    yield msgspec.json.decode(event.data)

    def forget(self, listener: JobListener) -> None:
        """Close the connection of this request, which tells the server that the client no longer waits."""
        if self._gathered.pop(listener, None) is not None:
            return
        submission = self._submissions.pop(listener, None)
        if submission is not None and submission not in self._submissions.values():
            submission.cancel()

    async def close(self) -> None:
        """Close every connection."""
        self._over = True
        submissions = list(self._submissions.values())
        self._submissions.clear()
        self._gathered.clear()
        for submission in submissions:
            submission.cancel()
        await asyncio.gather(*submissions, return_exceptions=True)
        await self._http.close()

    def _submit_gathered(self) -> None:
        gathered, self._gathered = self._gathered, {}
        for orders in _batches(gathered):
            [first, *others] = orders.items()
            submit = functools.partial(self._batch, orders) if others else functools.partial(self._single, *first)
            self._start(submit, orders)

    def _start(self, submit: Submit, listeners: Iterable[JobListener]) -> None:
        listeners = tuple(listeners)
        task = asyncio.get_running_loop().create_task(self._run(submit, listeners))
        self._submissions.update(dict.fromkeys(listeners, task))

    async def _run(self, submit: Submit, listeners: Iterable[JobListener]) -> None:
        try:
            await submit()
        except ServerGoneError as error:
            self._broken(error)
        finally:
            for listener in listeners:
                self._submissions.pop(listener, None)

    async def _single(self, listener: JobListener, order: Order) -> None:
        answer = await self._http.ask("POST", f"{API}/jobs", order_fields.fields(order))
        if answer.status == 201:
            self._accepted(listener, order, answer.json()["handle"])
        else:
            listener.refused(answer.error())

    async def _batch(self, orders: Orders) -> None:
        answer = await self._http.ask(
            "POST", f"{API}/jobs/batch", {"jobs": list(map(order_fields.fields, orders.values()))}
        )
        if answer.status in _NO_BATCHES:
            await asyncio.gather(*(self._single(listener, order) for listener, order in orders.items()))
            return
        items = answer.json()["items"] if answer.status == 200 else [None] * len(orders)
        for (listener, order), item in zip(orders.items(), items, strict=True):
            if listener not in self._submissions:  # its client does not wait any more
                continue
            if item is None:
                listener.refused(answer.error())
            elif item["problem"] is None:
                self._accepted(listener, order, item["handle"])
            else:
                listener.refused(HttpAnswer(item["problem"]["status"], msgspec.json.encode(item["problem"])).error())

    @staticmethod
    def _accepted(listener: JobListener, order: Order, handle: Any) -> None:
        listener.accepted(Acceptance(jsonbytes.decode(handle), order.function, order.unique))

    async def _foreground(self, order: Order, listener: JobListener) -> None:
        submission = {**order_fields.fields(order), "background": False, "wait": _LONGEST_WAIT}
        answer = await self._http.ask("POST", f"{API}/jobs", submission)
        listener.event(_ending(answer.json()) if answer.status == 200 else Failed(answer.problem()))

    def _broken(self, error: Exception) -> None:
        if self._over:
            return
        self._over = True
        self._http.abandon()
        gathered, self._gathered = self._gathered, {}
        submissions, self._submissions = self._submissions, {}
        this = asyncio.current_task()
        for listener, submission in submissions.items():
            if submission is not this:
                submission.cancel()
            listener.gone(error)
        for listener in gathered:
            listener.gone(error)
        self.lost(error)


def _batches(gathered: Orders) -> Iterator[Orders]:
    """Parts of these orders that fit into a request each."""
    batch: Orders = {}
    size = 0
    for listener, order in gathered.items():
        if batch and (len(batch) >= _BATCH_JOBS or size + len(order.payload) > _BATCH_BYTES):
            yield batch
            batch, size = {}, 0
        batch[listener] = order
        size += len(order.payload)
    if batch:
        yield batch


def _ending(job: dict[str, Any]) -> Event:
    """The last event of a job that has ended."""
    if job["state"] == "done":
        return Completed(jsonbytes.decode(job["result"] or ""))
    return Failed(job["reason"], job["code"] or 1, jsonbytes.decode(job["result"] or ""), job["state"])


def _last_job(events: bytes) -> dict[str, Any] | None:
    """The job in the last of these events; None if the server stopped before there was one."""
    for event in reversed(EventStream().feed(events)):
        if event.name in ("done", "failed"):
            job: dict[str, Any] = msgspec.json.decode(event.data)
            return job
    return None


def _path(acceptance: Acceptance) -> str:
    if not acceptance.handle:
        raise ClientError("over http a foreground job has no handle; submit it with background=True")
    return f"{API}/jobs/{quoted(acceptance.handle)}"
