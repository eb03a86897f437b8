"""A client of the HTTP API.

A job that is waited for is one request that is answered when it is over: it is heard of then, and not before. A server
waits five minutes for it; a job that takes longer is better submitted in the background.
"""

import asyncio
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec

from geartrain import jsonbytes
from geartrain.address import Address
from geartrain.client.job_events import Completed, Event, Failed
from geartrain.client.order import Acceptance, Capabilities, Order, Status
from geartrain.client.protocols.base import ClientProtocol, JobListener, Lost
from geartrain.client.protocols.http.exchange import API, Exchange, quoted
from geartrain.errors import ClientError, RefusedError, ServerGoneError
from geartrain.wire.event_stream import EventStream

CLIENT: Final = Capabilities(
    background=True, priority=True, unique=True, run_at=True, timeout=True, status=True, cancel=True,
    result_later=True, failure=True,
)  # fmt: skip

_LONGEST_WAIT: Final = 300  # seconds, as the server has it
_ALIVE: Final = frozenset({"scheduled", "queued", "running"})
_NOT_THERE: Final = (404, 409)

Errand = Callable[[Order, JobListener], Awaitable[None]]


class Client(ClientProtocol):
    """A request for each job."""

    capabilities = CLIENT

    def __init__(self, address: Address, lost: Lost) -> None:
        super().__init__(address, lost)
        self._exchange = Exchange(address)
        self._errands: dict[JobListener, asyncio.Task[None]] = {}
        self._over = False

    @classmethod
    def unsupported_reason(cls, order: Order) -> str:
        """What the server would refuse."""
        return "" if order.function else "a function of http has a name"

    async def open(self) -> None:
        """See that there is a server."""
        self._exchange.tls = self.tls
        try:
            await self._exchange.greet()
        except BaseException:
            await self._exchange.close()
            raise

    def submit(self, order: Order, listener: JobListener) -> None:
        """POST /jobs. What is waited for is acknowledged with its end only, and counts as accepted."""
        if not order.background:
            listener.accepted(Acceptance(b"", order.function, order.unique))
        errand = self._background if order.background else self._foreground
        self._errands[listener] = asyncio.get_running_loop().create_task(self._carry_out(errand, order, listener))

    async def status(self, acceptance: Acceptance) -> Status:
        """GET /jobs/{handle}."""
        answer = await self._exchange.ask("GET", _path(acceptance))
        if answer.status == 404:
            return Status(False)
        job = answer.checked().json()
        numerator, denominator = job["numerator"] or 0, job["denominator"] or 0
        return Status(job["state"] in _ALIVE, job["state"] == "running", numerator, denominator)

    async def cancel(self, acceptance: Acceptance) -> bool:
        """POST /jobs/{handle}/cancel."""
        answer = await self._exchange.ask("POST", f"{_path(acceptance)}/cancel")
        return answer.status not in _NOT_THERE and bool(answer.checked())

    async def result(self, acceptance: Acceptance) -> Event:
        """GET /jobs/{handle}/events, whose last tells how it ended, and then the result, as much as is kept of it."""
        while True:
            events = (await self._exchange.ask("GET", f"{_path(acceptance)}/events")).checked()
            job = _last_job(events.body)
            if job is not None:
                break
        if job["state"] != "done":
            return _ending(job)
        return Completed((await self._exchange.ask("GET", f"{_path(acceptance)}/result")).checked().body)

    async def job_events(self, function: str = "", what: Sequence[str] = ()) -> AsyncIterator[dict[str, Any]]:
        """GET /events: what happens to jobs, `{"missed": n}` where events were left out; ends when the server stops."""
        fields = {"jobs": 1, "function": function, "what": ",".join(what)}
        query = urllib.parse.urlencode(fields, errors="surrogateescape")
        events = EventStream()
        async for part in self._exchange.stream(f"{API}/events?{query}"):
            for event in events.feed(part):
                if event.name in ("job", "missed"):
                    yield msgspec.json.decode(event.data)

    def forget(self, listener: JobListener) -> None:
        """Hang up, which tells the server that nobody waits."""
        errand = self._errands.pop(listener, None)
        if errand is not None:
            errand.cancel()

    async def close(self) -> None:
        """Hang up everywhere."""
        self._over = True
        errands = list(self._errands.values())
        self._errands.clear()
        for errand in errands:
            errand.cancel()
        await asyncio.gather(*errands, return_exceptions=True)
        await self._exchange.close()

    async def _carry_out(self, errand: Errand, order: Order, listener: JobListener) -> None:
        try:
            await errand(order, listener)
        except ServerGoneError as error:
            self._broken(error)
        finally:
            self._errands.pop(listener, None)

    async def _background(self, order: Order, listener: JobListener) -> None:
        answer = await self._exchange.ask("POST", f"{API}/jobs", _submission(order))
        if answer.status == 201:
            listener.accepted(Acceptance(jsonbytes.decode(answer.json()["handle"]), order.function, order.unique))
        else:
            listener.refused(RefusedError(answer.problem()))

    async def _foreground(self, order: Order, listener: JobListener) -> None:
        submission = {**_submission(order), "background": False, "wait": _LONGEST_WAIT}
        answer = await self._exchange.ask("POST", f"{API}/jobs", submission)
        listener.event(_ending(answer.json()) if answer.status == 200 else Failed(answer.problem()))

    def _broken(self, error: Exception) -> None:
        if self._over:
            return
        self._over = True
        self._exchange.hang_up()
        errands, self._errands = self._errands, {}
        this = asyncio.current_task()
        for listener, errand in errands.items():
            if errand is not this:
                errand.cancel()
            listener.gone(error)
        self.lost(error)


def _submission(order: Order) -> dict[str, Any]:
    wishes: dict[str, Any] = {
        "function": jsonbytes.encode(order.function),
        "payload": jsonbytes.encode(order.payload),
    }
    if order.unique:
        wishes["unique"] = jsonbytes.encode(order.unique)
    if order.run_at:
        wishes["run_at"] = order.run_at
    return {**wishes, "priority": order.priority.name.lower(), "timeout": order.timeout}


def _ending(job: dict[str, Any]) -> Event:
    """How a job ended that is over."""
    if job["state"] == "done":
        return Completed(jsonbytes.decode(job["result"] or ""))
    return Failed(job["reason"], job["code"] or 1, jsonbytes.decode(job["result"] or ""))


def _last_job(events: bytes) -> dict[str, Any] | None:
    """The job in the last of these events; None if the server stopped before there was one."""
    for event in reversed(EventStream().feed(events)):
        if event.name in ("done", "failed"):
            job: dict[str, Any] = msgspec.json.decode(event.data)
            return job
    return None


def _path(acceptance: Acceptance) -> str:
    if not acceptance.handle:
        raise ClientError("http does not say the handle of a job that is waited for; submit it with background=True")
    return f"{API}/jobs/{quoted(acceptance.handle)}"
