"""Workflows: many background jobs that are submitted at once, all of them or none, and may wait for each other.

    workflow = await client.submit_workflow("import", [
        WorkflowJob("fetch", "north.csv"),
        WorkflowJob("fetch", "south.csv"),
        WorkflowJob("merge", after=[0, 1]),
    ])
    assert await workflow.wait() == "done"

At the server a workflow is a job itself, which ends when all its members have ended.
"""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from geartrain.client import arguments
from geartrain.client.arguments import Duration, Lifetime, Moment, OnFailure, Text
from geartrain.client.async_job import AsyncJob
from geartrain.client.order import Order
from geartrain.errors import JobFailedError
from geartrain.model import Priority

if TYPE_CHECKING:
    from geartrain.client.submissions import Submissions

FUNCTION: Final = b"geartrain.workflow"  # of the job that stands for a workflow


@dataclasses.dataclass(frozen=True, slots=True)
class WorkflowJob:
    """A job of a workflow that is to be submitted. `after` has the places, from 0, of others in the list of jobs."""

    function: Text
    payload: Text = b""
    after: Sequence[int] = ()
    on_failure: OnFailure = "cancel"  # this one, if one that it waits for fails; or `run` it
    priority: Priority | str = Priority.NORMAL
    at: Moment | None = None
    delay: Duration | None = None
    timeout: Duration | None = None
    expires: Lifetime | None = None
    keep_for: Duration | None = None
    partition: Text = b""


class MemberOrder(NamedTuple):
    """The order of a job of a workflow, and the places of those that it waits for."""

    order: Order
    after: Sequence[int] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class WorkflowProgress:
    """What a server says of a workflow."""

    name: str
    state: str  # running, done, failed or cancelled
    reason: str  # why it failed
    count: int  # of its members
    states: Mapping[str, int]  # how many of them are done, running, blocked and so on

    @classmethod
    def of_view(cls, view: dict[str, Any]) -> "WorkflowProgress":
        return cls(view["name"], view["state"], view["reason"] or "", view["count"], view["states"])


class AsyncWorkflow:
    """A workflow that `AsyncClient.submit_workflow` submitted, or that `AsyncClient.workflow` found."""

    __slots__ = ("_submissions", "job", "jobs")

    def __init__(self, submissions: "Submissions", job: AsyncJob, jobs: Sequence[AsyncJob] = ()) -> None:
        self._submissions = submissions
        self.job = job  # stands for the workflow, and ends when all members have ended
        self.jobs = jobs  # the members, in the order of their submission; empty if another program submitted them

    def __repr__(self) -> str:
        return f"<AsyncWorkflow {self.handle}>"

    @property
    def handle(self) -> str:
        """The server's name for the workflow."""
        return self.job.handle

    async def wait(self, timeout: float | None = None) -> str:
        """Wait until all members have ended: done, failed or cancelled. A JobTimeoutError after `timeout` seconds."""
        try:
            await self.job.result(timeout)
        except JobFailedError:
            return (await self.job.status()).state
        return "done"

    async def progress(self) -> WorkflowProgress:
        """Ask the server for the workflow's state, and the states of its members."""
        return WorkflowProgress.of_view(await self._submissions.workflow(self.job))

    async def cancel(self) -> bool:
        """Cancel every member that has not ended; false if all have."""
        return await self.job.cancel()

    async def retry(self) -> bool:
        """Run again what failed, and what was cancelled because of it; false if the workflow has not failed."""
        return await self.job.retry()


def member(job: WorkflowJob) -> MemberOrder:
    """The member that a program describes."""
    order = Order(
        arguments.encoded(job.function),
        arguments.encoded(job.payload),
        background=True,
        priority=arguments.priority(job.priority),
        run_at=arguments.run_at(job.at, job.delay),
        timeout=arguments.seconds(job.timeout) if job.timeout is not None else 0.0,
        keep_for=arguments.keep_seconds(job.keep_for),
        partition=arguments.partition(job.partition),
        runs_anyway=arguments.runs_anyway(job.on_failure),
    )
    order.expires_at = arguments.expires_at(job.expires, order.run_at, time.time())
    return MemberOrder(order, tuple(job.after))


def request(name: str, members: Sequence[MemberOrder]) -> dict[str, Any]:
    """What is sent to submit a workflow."""
    from geartrain.client import order_fields

    jobs = [
        {
            **order_fields.fields(member.order),
            "after": list(member.after),
            "on_failure": order_fields.on_failure(member.order),
        }
        for member in members
    ]
    return {"name": name, "jobs": jobs}
