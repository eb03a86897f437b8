"""Jobs that wait for other jobs, their *parents*.

A job that was submitted after others is *blocked*: it is in no queue until all of them have ended. If one of them does
not end as done, it is cancelled, or it runs nevertheless, as its submitter said. A parent that is dead may be retried,
so it is waited for until that, or until it is deleted.

The edges are stored with the job that waits (`model.pack_parents`). Parents know the ids of their children in memory
only, and how many parents a job still waits for is not stored either: it is counted when the jobs are restored. So the
end of a parent writes nothing about its children, and one callback of 100,000 jobs costs each of them one subtraction.

After a restart, a parent that is not there has ended, and with a good end: a bad one would have cancelled the job in
the same commit. Jobs are restored in the order of their times, parents after children too, so all of them are counted
at the end (`settle`). In a cluster, jobs of a server that died may come to several servers: then parents may be at
another server, where nobody tells of their ends, and the store is asked for them again and again.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from geartrain.engine.failed_jobs import FailedJobs
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import BLOCKED, CANCELLED, DONE, ENDED, QUEUED, SCHEDULED, enter
from geartrain.engine.names import WORKFLOW
from geartrain.errors import ParentError
from geartrain.model import JobState, Parents, runs_anyway, unpack_parents

_NO_PARENTS: Final = Parents((), False)
_BAD_ENDS: Final = ENDED - {DONE}


class BlockedJobs(FailedJobs):
    """The moves of jobs that wait for others."""

    def _checked_parents(self, after: bytes) -> Parents:
        """The jobs to be waited for; raise ParentError if one of them is not there, or does not outlive this server."""
        if self.is_joining:  # members wait for each other, and are counted when all of them are there
            return _NO_PARENTS
        parents = unpack_parents(after)
        for id in parents.ids:
            parent = self._parent(id)
            if parent is None:
                raise ParentError(f"there is no unfinished job with the id {id} to wait for")
            if not parent.background:
                shown = parent.handle.decode("utf-8", "backslashreplace")
                raise ParentError(f"job {shown} runs in the foreground; jobs can wait for background jobs only")
        return parents

    def _block(self, function: Function, job: LiveJob, parents: Parents) -> None:
        """The first place of a job that waits for others, or is a member of a workflow."""
        if self.is_joining:
            self._restore_blocked(function, job)
            return
        self._count_parents(job, parents)
        if job.unique and self.reserves_keys:
            self._reserve(function, job)
        else:
            self._wait_for_parents(function, job)

    def _restore_blocked(self, function: Function, job: LiveJob) -> None:
        """The place of a job from the store until all jobs are restored."""
        job.state = BLOCKED
        function.blocked += 1
        self.blocked += 1
        self.unsettled[job.id] = job

    def settle(self, elsewhere: Mapping[int, JobState] | None = None) -> None:
        """All jobs are restored: count the parents of those that wait.

        Some may be at another server, or have ended there; `elsewhere` has their states. A job that has a parent there
        is asked about again (`distant_parents`).
        """
        unsettled, self.unsettled = self.unsettled, {}
        states = elsewhere or {}
        settled = []
        for job in unsettled.values():
            if self.jobs.get(job.id) is not job or job.state is not BLOCKED:
                continue
            parents = unpack_parents(job.after)
            ended = [id for id in parents.ids if id in states and states[id] in _BAD_ENDS and self._parent(id) is None]
            if ended and job.function == WORKFLOW:
                self._note_bad_end(job, f"with the id {ended[0]}", states[ended[0]])
            if ended and not parents.runs_anyway:
                self._fail(job, CANCELLED, _because_of(f"with the id {ended[0]}", states[ended[0]]))
            elif any(id in states and states[id] not in ENDED and self._parent(id) is None for id in parents.ids):
                self.unsettled[job.id] = job
            else:
                settled.append(job)
        self._settle(settled)

    def _settle(self, jobs: Sequence[LiveJob]) -> None:
        """Let these jobs wait for those of their parents that are there; release those that wait for nothing.

        All are counted before one is released: a worker may run it at once.
        """
        for job in jobs:
            if len(job.after) > 1:  # a member of a workflow that waits for nothing has a byte
                self._count_parents(job, unpack_parents(job.after))
        for job in jobs:
            if job.state is BLOCKED and not job.parents_left and self.jobs.get(job.id) is job:
                self._release(job)

    def distant_parents(self) -> list[int]:
        """The ids of parents of restored jobs that this server does not have."""
        ids = {id for job in self.unsettled.values() for id in unpack_parents(job.after).ids}
        return sorted(id for id in ids if self._parent(id) is None)

    def _parent(self, id: int) -> LiveJob | None:
        return self.jobs.get(id) or self.dead.get(id)

    def _count_parents(self, job: LiveJob, parents: Parents) -> None:
        """Let the parents that have not ended know that the job waits for them."""
        job.parents_left = 0
        for id in parents.ids:
            parent = self._parent(id)
            if parent is None:
                continue
            if parent.children is None:
                parent.children = [job.id]
            else:
                parent.children.append(job.id)
            job.parents_left += 1

    def _wait_for_parents(self, function: Function, job: LiveJob) -> None:
        """Give a job its place among the blocked ones, unless all that it waits for has ended."""
        if not job.parents_left:
            self._schedule_or_enqueue(function, job)
            return
        job.state = BLOCKED
        function.blocked += 1
        self.blocked += 1

    def _end_parent(self, parent: LiveJob) -> None:
        """A job has ended: count that for those that wait for it.

        Children that are cancelled are parents themselves. They stand in line here, as a chain may be very long.
        """
        self._ended_parents.append(parent)
        if self._is_following:
            return
        self._is_following = True
        try:
            while self._ended_parents:
                ended = self._ended_parents.popleft()
                children, ended.children = ended.children, None
                for id in children or ():
                    child = self.jobs.get(id)
                    if child is not None and child.parents_left:
                        self._parent_ended(child, ended)
        finally:
            self._is_following = False

    def _parent_ended(self, job: LiveJob, parent: LiveJob) -> None:
        job.parents_left -= 1
        if parent.state is not DONE and job.function == WORKFLOW:
            self._note_bad_end(job, parent.handle.decode("utf-8", "backslashreplace"), parent.state)
        if parent.state is not DONE and not runs_anyway(job.after):
            job.parents_left = 0
            self._fail(job, CANCELLED, _because_of(parent.handle.decode("utf-8", "backslashreplace"), parent.state))
        elif not job.parents_left and job.state is BLOCKED:
            self._release(job)

    def _note_bad_end(self, workflow: LiveJob, member: str, state: JobState) -> None:
        """A workflow will have failed when all its members have ended."""
        raise NotImplementedError

    def _end_workflow(self, workflow: LiveJob) -> None:
        """All members of a workflow have ended."""
        raise NotImplementedError

    def _release(self, job: LiveJob) -> None:
        """All that a job waited for has ended."""
        if job.function == WORKFLOW:
            self._end_workflow(job)
            return
        function = self.functions[job.function]
        function.blocked -= 1
        self.blocked -= 1
        if job.run_at > self.now:
            enter(job, SCHEDULED)
            self._add_scheduled(function, job)
        else:
            enter(job, QUEUED)
            job.run_at = self.now  # since then it could run
            self._enqueue(function, job)


def _because_of(parent: str, state: JobState) -> str:
    return f"job {parent}, which it waited for, ended as {state.name.lower()}"
