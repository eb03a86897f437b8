"""Workflows of an app that runs in memory: which jobs wait for which, and what becomes of them when one ends.

The engine's rules: a job is blocked until those that it waits for have ended. If one of them was not done, it is
cancelled, or runs anyway. The workflow ends when all jobs have.
"""

import abc
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from geartrain.app.call import Call
from geartrain.app.node import WorkflowNode
from geartrain.app.transport import SubmittedJob, SubmittedWorkflow
from geartrain.client.workflow import WorkflowProgress
from geartrain.errors import ExpiredError, JobFailedError, JobTimeoutError, ResultGoneError
from geartrain.model import JobState

# Of the jobs of a workflow. They are never dead: those that wait for them would wait forever.
_ENDED: Final = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED})


class InMemoryMember(SubmittedJob):
    """What a workflow knows of a job, and does with it."""

    submission: Call[Any]
    state: JobState
    reason: str
    returned: bytes

    @abc.abstractmethod
    def end(self, state: JobState, reason: str = "") -> None:
        """End it, and tell the workflow."""

    @abc.abstractmethod
    def block(self) -> None:
        """Let it wait for others, as a new job."""

    @abc.abstractmethod
    def release(self) -> None:
        """Let it go on: all that it waited for has ended."""


class InMemoryWorkflow(SubmittedWorkflow):
    """A workflow and its jobs."""

    def __init__(self, name: str, number: int, nodes: Sequence[WorkflowNode[Any]]) -> None:
        self.name = name
        self._number = number
        self._nodes = nodes
        self._children: list[list[int]] = [[] for _ in nodes]
        for node in nodes:
            for parent in node.after:
                self._children[parent].append(node.place)
        self._members: list[InMemoryMember] = []
        self._cancelled = False
        self._reason = ""  # why it has failed, or will have

    def __repr__(self) -> str:
        return f"workflow {self.name} {self._state()}"

    def start(self, members: Sequence[InMemoryMember]) -> None:
        """Begin with these jobs, in the order of the nodes."""
        self._members = list(members)
        for member in members:
            member.block()
        self._release(range(len(members)))

    def ended(self, member: InMemoryMember) -> None:
        """One of the jobs has ended."""
        if member.state is not JobState.DONE and not self._reason:
            self._reason = f"job {_text(member.handle)} ended as {member.state.name.lower()}"
        self._release(self._children[member.submission.place or 0])

    def results(self, places: Sequence[int]) -> list[bytes | JobFailedError]:
        """The results of jobs; an error in place of that of one that failed."""
        return [_result(self._members[place]) for place in places]

    def _release(self, places: Iterable[int]) -> None:
        """Let jobs go on that wait for nothing more, and cancel those that will not run."""
        for place in places:
            member, node = self._members[place], self._nodes[place]
            if member.state is not JobState.BLOCKED:
                continue
            parents = [self._members[parent] for parent in node.after]
            failed = next((parent for parent in parents if parent.state in _ENDED - {JobState.DONE}), None)
            if failed is not None and not node.runs_anyway:
                why = f"job {_text(failed.handle)}, which it waited for, ended as {failed.state.name.lower()}"
                member.end(JobState.CANCELLED, why)
            elif all(parent.state in _ENDED for parent in parents):
                member.release()

    def _state(self) -> str:
        if self._cancelled:
            return "cancelled"
        if any(member.state not in _ENDED for member in self._members):
            return "running"
        return "failed" if self._reason else "done"

    # The submitter's side

    @property
    def handle(self) -> bytes:
        return f"memory:{self._number}".encode()

    @property
    def server(self) -> str:
        return "memory"

    @property
    def jobs(self) -> Sequence[SubmittedJob]:
        return self._members

    async def wait(self, timeout: float | None) -> str:
        state = self._state()
        if state == "running":
            raise JobTimeoutError(f"{self!r}: not finished; `await memory.drain()` runs all tasks that are due")
        return state

    async def progress(self) -> WorkflowProgress:
        states = Counter(member.state.name.lower() for member in self._members)
        state = self._state()
        reason = self._reason if state == "failed" else ""
        return WorkflowProgress(self.name, state, reason, len(self._members), dict(states))

    async def cancel(self) -> bool:
        if self._state() != "running":
            return False
        self._cancelled = True
        for member in self._members:
            if member.state not in _ENDED:
                member.end(JobState.CANCELLED, "its workflow was cancelled")
        return True

    async def retry(self) -> bool:
        if self._state() != "failed":
            return False
        self._reason = ""
        for member in self._members:
            if member.state is not JobState.DONE:
                member.block()
        self._release(range(len(self._members)))
        return True


class UnknownWorkflow(InMemoryWorkflow):
    """What a program gets for a handle that no workflow has."""

    def __init__(self, handle: bytes) -> None:
        super().__init__("", 0, ())
        self._handle = handle

    @property
    def handle(self) -> bytes:
        return self._handle

    async def wait(self, timeout: float | None) -> str:
        raise ResultGoneError(f"there is no workflow {_text(self._handle)}")

    async def progress(self) -> WorkflowProgress:
        raise ResultGoneError(f"there is no workflow {_text(self._handle)}")

    async def cancel(self) -> bool:
        return False

    async def retry(self) -> bool:
        return False


def _result(member: InMemoryMember) -> bytes | JobFailedError:
    if member.state is JobState.DONE:
        return member.returned
    kind = ExpiredError if member.state is JobState.EXPIRED else JobFailedError
    reason = member.reason or member.state.name.lower()
    return kind(f"{member!r} failed: {reason}", reason)


def _text(handle: bytes) -> str:
    return handle.decode("utf-8", "replace")
