"""Workflows: many jobs that are submitted at once, all of them or none, and that wait for each other.

A workflow is a job itself, of a function of its own that no worker runs: it waits for its members, the jobs that were
submitted with it, and ends when all of them have. It is done if all of them are, and failed otherwise. So what is true
of jobs is true of workflows: they have a handle and a record, survive a crash, move to another server of a cluster, can
be watched and waited for. A dead member may be retried, so it has not ended.

Its payload describes it, for people; whatever becomes of it, that is its result as well, so that its record has it.

The members of a workflow have the ids that follow its own, in the order in which they were submitted.

A member that ends badly is kept whole, and so is every member that is cancelled because of it: when the workflow has
failed, it can be retried from there. Members that were done stay done.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from geartrain.engine import names
from geartrain.engine.client_verbs import ClientVerbs
from geartrain.engine.failed_jobs import GENERAL_FAILURE
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import BLOCKED, CANCELLED, DONE, FAILED
from geartrain.engine.names import WORKFLOW
from geartrain.engine.policy import JOB_BYTES
from geartrain.errors import LimitError, QueueFullError, WorkflowError
from geartrain.model import FailureAction, JobState, Priority, pack_parents, unpack_parents
from geartrain.rights import SUBMIT

_NORMAL: Final = int(Priority.NORMAL)
_NO_PARENTS: Final = b"\0"  # what a member has as `after` that waits for nothing: it gets its place with the others
KEPT_FOR_RETRY: Final = 7 * 86_400.0  # seconds; failed jobs are kept as long as the settings say


class MemberJob(NamedTuple):
    """A member before it is submitted. `after` has places of others in the list of nodes."""

    function: bytes
    payload: bytes = b""
    after: tuple[int, ...] = ()
    runs_anyway: bool = False  # although one of these failed; otherwise it is cancelled
    priority: int = _NORMAL
    run_at: float = 0.0
    timeout: float = 0.0
    keep_for: float = 0.0
    expires_at: float = 0.0
    partition: bytes = b""


class WorkflowVerbs(ClientVerbs):
    """The engine's verbs for workflows."""

    def submit_workflow(self, nodes: Sequence[MemberJob], payload: bytes = b"", door: str = "") -> LiveJob:
        """Submit the members of a workflow, all or none of them, and return the job that stands for it.

        Raise a RequestError that says what is wrong with which of them.
        """
        self._check_workflow(nodes, payload)
        keep_for = max(node.keep_for for node in nodes)
        id = self.next_id
        self.next_id = id + 1 + len(nodes)
        joined = []
        self.is_joining = True
        try:
            for number, node in enumerate(nodes, start=id + 1):
                after = _NO_PARENTS
                if node.after:
                    after = pack_parents([id + 1 + place for place in node.after], node.runs_anyway)
                job = self.submit(
                    node.function, payload=node.payload, priority=node.priority, background=True,
                    run_at=node.run_at if node.run_at > self.now else 0.0, door=door, timeout=node.timeout,
                    reserved_id=number, keep_for=node.keep_for, expires_at=node.expires_at, partition=node.partition,
                    after=after,
                )  # fmt: skip
                joined.append(job)
            members = pack_parents(range(id + 1, self.next_id), runs_anyway=True)
            workflow = self.submit(
                WORKFLOW, payload=payload, background=True, door=door, reserved_id=id, keep_for=keep_for, after=members
            )
        finally:
            self.is_joining = False
        self._settle_members([*joined, workflow])
        return workflow

    def _settle_members(self, jobs: Sequence[LiveJob]) -> None:
        for job in jobs:
            del self.unsettled[job.id]
        self._settle(jobs)

    def retry_workflow(self, workflow: LiveJob, members: Sequence[LiveJob]) -> None:
        """Run those members of a failed workflow again that have ended badly, and were kept whole by the journal.

        Raise QueueFullError if the payloads of all jobs would exceed their limit.
        """
        jobs = [*members, workflow]
        size = sum(job.payload_size + JOB_BYTES for job in jobs)
        self._check_bytes(WORKFLOW, self.free_bytes - size)
        for job in jobs:
            self._remember_handle(job)
            self._readmit(job, BLOCKED)
            self._restore_blocked(self.functions[job.function], job)
            self.journal.retried(job)
            if self.observer is not None:
                self.observer.requeued(job, "retried")
        self._settle_members(jobs)

    def cancel(self, job: LiveJob, reason: str = "cancelled") -> None:
        """End a job in any state, and every member of a workflow with it."""
        if job.function != WORKFLOW or job.state is not BLOCKED:
            super().cancel(job, reason)
            return
        job.reason, job.code = reason, GENERAL_FAILURE
        for watcher in self._finish(job, CANCELLED, job.payload) or ():
            watcher.fail(job, reason)
        members = unpack_parents(job.after).ids
        together = set(members)
        for id in members:
            member = self._parent(id)
            if member is None:
                continue
            # Nobody retries a workflow that was cancelled, so its members need not be kept for that.
            others = [child for child in member.children or () if child not in together and child != job.id]
            member.children = others or None
            super().cancel(member, "its workflow was cancelled")

    def _note_bad_end(self, workflow: LiveJob, member: str, state: JobState) -> None:
        if not workflow.reason:
            workflow.reason = f"job {member} ended as {state.name.lower()}"
            self.journal.changed(workflow)

    def _end_workflow(self, workflow: LiveJob) -> None:
        if workflow.reason:
            workflow.code = GENERAL_FAILURE
            for watcher in self._finish(workflow, FAILED, workflow.payload, None, True) or ():
                watcher.fail(workflow, workflow.reason)
        else:
            for watcher in self._finish(workflow, DONE, workflow.payload) or ():
                watcher.complete(workflow, workflow.payload)

    def _is_kept_for_retry(self, job: LiveJob) -> bool:
        children = [self.jobs.get(id) for id in job.children or ()]
        if not any(child is not None and child.function == WORKFLOW for child in children):
            return False
        if self._failure_action(job.function) is FailureAction.FORGET:
            return False
        if job.state is not FAILED and job.keep_for < KEPT_FOR_RETRY:
            job.keep_for = KEPT_FOR_RETRY
        return True

    def _check_workflow(self, nodes: Sequence[MemberJob], payload: bytes) -> None:
        """Raise a RequestError unless all of these jobs can be submitted."""
        most = self.policy.max_workflow_jobs
        if not 0 < len(nodes) <= most:
            raise WorkflowError(f"a workflow has 1 to {most:,} jobs (max_workflow_jobs), not {len(nodes):,}")
        for place, node in enumerate(nodes):
            if not node.function:
                raise WorkflowError(f"job {place} has no function")
            if node.function == WORKFLOW or node.function in self.builtin_workers:
                raise WorkflowError(f"job {place} cannot be a job of the server itself")
            if node.partition:
                names.check_partition(node.partition)
            for parent in node.after:
                if not 0 <= parent < len(nodes):
                    raise WorkflowError(f"job {place} waits for job {parent}; the jobs are 0 to {len(nodes) - 1}")
        _check_order(nodes)
        counts = Counter(node.function for node in nodes)
        self.require(SUBMIT, WORKFLOW)
        for function in counts:
            self.require(SUBMIT, function)
        size = sum(len(node.payload) + JOB_BYTES for node in nodes) + len(payload) + JOB_BYTES
        usage = self._usage_for(WORKFLOW)
        if usage is not None:
            usage.check(len(nodes) + 1, size)
        self._check_bytes(WORKFLOW, self.free_bytes - size)
        self._check_functions([WORKFLOW, *counts])
        for function, count in counts.items():
            self._check_room(function, count, nodes)

    def _check_functions(self, wanted: Sequence[bytes]) -> None:
        """Raise a RequestError unless these functions exist or can be created, all of them."""
        for name in wanted:
            self.check_function(name)
        missing = sum(name not in self.functions for name in wanted)
        most = self.policy.max_functions
        if len(self.functions) + missing > most:
            self._make_room()
            missing = sum(name not in self.functions for name in wanted)
        if len(self.functions) + missing > most:
            raise LimitError(
                f"there are {len(self.functions)} functions; max_functions ({most}) does not allow {missing} more"
            )

    def _check_room(self, name: bytes, count: int, nodes: Sequence[MemberJob]) -> None:
        """Raise QueueFullError if the function may not have so many more jobs."""
        function = self.functions.get(name)
        if function is None or not function.has_limits:
            return
        for priority in {node.priority for node in nodes if node.function == name}:
            limit = function.limits[priority]
            if limit and function.total + function.elsewhere + count > limit:
                shown = name.decode("utf-8", "replace")
                raise QueueFullError(f"the queue of {shown!r} has no room for {count} jobs more ({limit} jobs)")


def _check_order(nodes: Sequence[MemberJob]) -> None:
    """Raise WorkflowError if jobs wait for each other in a circle."""
    waits = [0] * len(nodes)
    children: dict[int, list[int]] = {}
    for place, node in enumerate(nodes):
        if node.after:
            parents = set(node.after)
            waits[place] = len(parents)
            for parent in parents:
                children.setdefault(parent, []).append(place)
    ready = [place for place, count in enumerate(waits) if not count]
    for place in ready:  # grows
        for child in children.get(place, ()):
            waits[child] -= 1
            if not waits[child]:
                ready.append(child)
    if len(ready) < len(nodes):
        stuck = next(place for place, count in enumerate(waits) if count)
        raise WorkflowError(f"job {stuck} waits for itself, by way of the jobs that it waits for")
