"""What a client asks a Geartrain server about its jobs with control jobs, where the protocol has no message for it.

The server itself runs the jobs of the control function, so they work over every protocol. A control job of `watch`
ends when the job that it watches has ended, so results need not be polled for.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from geartrain.client import job_events
from geartrain.client.arguments import decoded
from geartrain.client.async_job import AsyncJob
from geartrain.client.job_events import Completed, Data, Event, Failed
from geartrain.client.order import Acceptance, Order, Status
from geartrain.client.protocols.base import RESULT_ERRORS
from geartrain.errors import AdminError, ClientError, JobFailedError, ResultGoneError, ServerGoneError, UnsupportedError

if TYPE_CHECKING:
    from geartrain.client.server_pool import PooledServer
    from geartrain.client.submissions import Submissions

FUNCTION: Final = "geartrain.control"
# A Geartrain server answers at once; one that has not answered after this many seconds has no such function.
ANSWER_SECONDS: Final = 10.0
WORKFLOW_SECONDS: Final = 60.0  # the same for a workflow, which may have 100,000 jobs
_PING_SECONDS: Final = 3.0
_STOPPING: Final = "unavailable"  # the kind of error with which a server that stops ends its control jobs
_PAUSE_SECONDS: Final = 0.2  # between two looks at whether it has stopped


class JobControl:
    """Control jobs of one client."""

    def __init__(self, submissions: "Submissions") -> None:
        self._submissions = submissions

    async def knows(self, server: "PooledServer") -> bool:
        """Whether a server is a Geartrain. The protocol may know; otherwise it is asked once per connection."""
        protocol = server.protocol
        assert protocol is not None
        if protocol.is_geartrain is None:
            try:
                async with asyncio.timeout(_PING_SECONDS):
                    answer = await self._ask(server, "ping")
                protocol.is_geartrain = isinstance(answer, dict) and answer.get("server") == "geartrain"
            except (TimeoutError, AdminError, JobFailedError):
                protocol.is_geartrain = False
            except ClientError:
                if server.protocol is not protocol:
                    raise
                protocol.is_geartrain = False  # it refuses a function that it does not know
        return protocol.is_geartrain

    async def submit(self, server: "PooledServer", order: Order) -> Acceptance:
        """Submit a background job with an option that the protocol cannot express."""
        from geartrain import jsonbytes

        if not await self.knows(server):
            raise UnsupportedError(
                f"{server.address} is no Geartrain: it has neither expires nor keep_for, partitions or after"
            )
        handle = await self._ask(
            server,
            "submit",
            function=jsonbytes.encode(order.function),
            payload=jsonbytes.encode(order.payload),
            priority=order.priority.name.lower(),
            unique=jsonbytes.encode(order.unique),
            run_at=order.run_at,
            expires_at=order.expires_at,
            keep_for=order.keep_for,
            # Servers of older versions refuse this argument.
            **({"partition": jsonbytes.encode(order.partition)} if order.partition else {}),
            **(
                {"after": " ".join(map(decoded, order.after)), "on_failure": "run" if order.runs_anyway else "cancel"}
                if order.after
                else {}
            ),
        )
        return Acceptance(jsonbytes.decode(handle), order.function, order.unique)

    async def submit_workflow(self, server: "PooledServer", request: dict[str, Any]) -> dict[str, Any]:
        """Submit jobs that belong together; returns the handle of their workflow, and their own."""
        if not await self.knows(server):
            raise UnsupportedError(f"{server.address} is no Geartrain: it has no workflows")
        answer: dict[str, Any] = await self._ask_within(WORKFLOW_SECONDS, server, "submit_workflow", **request)
        return answer

    async def workflow(self, server: "PooledServer", acceptance: Acceptance) -> dict[str, Any]:
        """The server's view of a workflow, without most of its members."""
        view: dict[str, Any] = await self._ask(server, "workflow", limit=1, **_name(server, acceptance))
        return view

    async def status(self, server: "PooledServer", acceptance: Acceptance) -> Status:
        """The status of a job, before or after its end."""
        try:
            return Status.of_view(await self._ask(server, "find", **_name(server, acceptance)))
        except AdminError as error:
            if error.kind != "not-found":
                raise
            return Status(False)

    async def log(self, server: "PooledServer", acceptance: Acceptance) -> bytes:
        """What workers have logged for a job; empty if nothing, or there is no such job."""
        from geartrain import jsonbytes

        try:
            view = await self._ask(server, "find", **_name(server, acceptance))
            return jsonbytes.decode(await self._ask(server, "log", handle=view["handle"]))
        except AdminError as error:
            if error.kind != "not-found":
                raise
            return b""

    async def cancel(self, server: "PooledServer", acceptance: Acceptance) -> bool:
        """Cancel a job; false if there was none to cancel."""
        return await self._act(server, "cancel", acceptance)

    async def retry(self, server: "PooledServer", acceptance: Acceptance) -> bool:
        """Run a dead or failed job again, or what failed of a workflow; false if there was nothing to run again."""
        return await self._act(server, "retry", acceptance)

    async def _act(self, server: "PooledServer", verb: str, acceptance: Acceptance) -> bool:
        try:
            view = await self._ask(server, "find", **_name(server, acceptance))
            await self._ask(server, verb, handle=view["handle"])
        except AdminError as error:
            if error.kind in ("not-found", "conflict"):
                return False
            raise
        return True

    async def result(self, server: "PooledServer", acceptance: Acceptance) -> Event:
        """Wait for the end of a job."""
        async for event in self.events(server, acceptance):
            if isinstance(event, Completed | Failed):
                return event
        raise ServerGoneError(f"the connection to {server.address} was lost")

    async def events(self, server: "PooledServer", acceptance: Acceptance) -> AsyncIterator[Event]:
        """The events of a job from now on; reports only where the protocol can send parts of a result."""
        import msgspec

        protocol = server.protocol
        watch = await self._submit(server, "watch", **_name(server, acceptance))
        try:
            async for event in watch.events():
                if isinstance(event, Data):
                    for line in event.data.splitlines():
                        report = msgspec.json.decode(line)
                        yield job_events.of_report(report["what"], report)
                elif isinstance(event, Completed):
                    yield _ending(answer_in(msgspec.json.decode(event.result)))
        except AdminError as error:
            if error.kind == "not-found":
                raise ResultGoneError(error.text) from None
            if error.kind != _STOPPING:
                raise
            while server.protocol is protocol:  # until the server has stopped: then its successor is asked
                await asyncio.sleep(_PAUSE_SECONDS)
                if self._submissions.cluster:  # it may be another server that does not answer, or another one may know
                    break
            raise ServerGoneError(error.text) from None
        finally:
            if not watch.done:
                watch.forget()

    async def _ask(self, server: "PooledServer", verb: str, **arguments: Any) -> Any:
        return await self._ask_within(ANSWER_SECONDS, server, verb, **arguments)

    async def _ask_within(self, seconds: float, server: "PooledServer", verb: str, /, **arguments: Any) -> Any:
        import msgspec

        job = await self._submit(server, verb, **arguments)
        try:
            return answer_in(msgspec.json.decode(await job.result(seconds)))
        finally:
            if not job.done:
                job.forget()

    async def _submit(self, server: "PooledServer", verb: str, **arguments: Any) -> AsyncJob:
        import msgspec

        payload = msgspec.json.encode({"do": verb, **arguments})
        job = AsyncJob(self._submissions, Order(FUNCTION.encode(), payload), resubmit=False)
        self._submissions.hand_over(job, server)
        try:
            await job.acknowledged()
        except asyncio.CancelledError:
            job.forget()
            raise
        return job


def _name(server: "PooledServer", acceptance: Acceptance) -> dict[str, Any]:
    from geartrain import jsonbytes

    assert server.protocol is not None
    if not acceptance.handle and not acceptance.unique:
        raise ClientError("this job has no handle: its protocol has none for foreground jobs")
    name = server.protocol.control_name(acceptance)
    return {key: jsonbytes.encode(value) if isinstance(value, bytes) else value for key, value in name.items()}


def _ending(answer: dict[str, Any]) -> Event:
    """The last event of a job, in the answer of `watch`."""
    from geartrain import jsonbytes

    job, data = answer["job"], answer["result"]
    result = jsonbytes.decode(data) if data is not None else b""
    if job["state"] == "done":
        return Completed(result)
    return Failed(job["reason"] or job["state"], job["code"] or 1, result, job["state"])


def answer_in(reply: Any) -> Any:
    """The answer in a reply; an error in it is raised, as an AdminError unless it is about a result."""
    if "error" in reply:
        kind, text = reply["error"]["kind"], reply["error"]["text"]
        raise RESULT_ERRORS[kind](text) if kind in RESULT_ERRORS else AdminError(kind, text)
    return reply["answer"]
