"""The verbs for workflows: submit one, and look at it. Cancel and retry it as any job, by its handle."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from geartrain import jsonbytes, number_ranges
from geartrain.admin import views, workflow_graph
from geartrain.admin.authorization import caller
from geartrain.admin.base import AdminBase, page_limit, printable
from geartrain.admin.jobs import DOOR
from geartrain.admin.loop_break import LoopBreak, convert
from geartrain.admin.verbs import READ, SUBMIT, WORK
from geartrain.admin.workflow_graph import Graph
from geartrain.admin.workflow_views import (
    MemberResult,
    MemberResults,
    WorkflowGroupView,
    WorkflowJobView,
    WorkflowMember,
    WorkflowSubmitted,
    WorkflowView,
)
from geartrain.engine.job import LiveJob
from geartrain.engine.names import WORKFLOW
from geartrain.engine.workflow_verbs import MemberJob
from geartrain.errors import AdminError, QueueFullError, WorkflowError
from geartrain.job_query import JobQuery
from geartrain.jsonbytes import JsonBytes
from geartrain.model import JobState, Record, unpack_parents

_GROUPS_SHOWN: Final = 500
_LONGEST_NAME: Final = 200  # characters
_LARGEST_TIME: Final = 1e12
_READ_AT_ONCE: Final = 1000  # results
_ANSWER_BYTES: Final = 8 * 1024 * 1024  # of results, about
_NOT_KEPT: Final = "ended"  # the state of a member whose record was removed


class WorkflowAdmin(AdminBase):
    """Submit workflows, and show them."""

    async def submit_workflow(self, jobs: Sequence[WorkflowMember], name: str = "") -> WorkflowSubmitted:
        """Submit many background jobs that may wait for each other, all of them or none."""
        if len(name) > _LONGEST_NAME:
            raise AdminError("bad-request", f"name has at most {_LONGEST_NAME} characters, not {len(name)}")
        members = await convert(enumerate(jobs), _member)
        graph = workflow_graph.encode(workflow_graph.draw(name, members))
        self._begin_change()
        engine = self._engine
        engine.actor = caller.get()  # whose rights and quotas apply
        try:
            workflow = engine.submit_workflow(members, graph, DOOR)  # in one step, so that one commit has all of it
        except WorkflowError as error:
            raise AdminError("bad-request", str(error)) from None
        except QueueFullError as error:
            raise AdminError("queue-full", str(error)) from None
        finally:
            engine.actor = None
        first = workflow.id + 1
        handles = await convert(range(first, first + len(members)), self._handle)
        return WorkflowSubmitted(jsonbytes.encode(workflow.handle), handles)

    async def workflow(self, handle: bytes, state: str = "", limit: int = 100, after: str = "") -> WorkflowView:
        """A workflow with the states of its members, and a page of them, or of those in one state."""
        if after and not (after.isdecimal() and len(after) < 16):
            raise AdminError("bad-request", "after must be `after` of the previous page")
        found = self._engine.find(handle) or await self._archive.find(handle)
        graph = await self._graph(found) if found is not None and found.function == WORKFLOW else None
        if found is None or graph is None:
            raise AdminError("not-found", f"no workflow {printable(handle)}; records are kept for a while")
        states = await self._member_states(found.id, graph.count)
        own_state: Any = "running" if isinstance(found, LiveJob) else JobState(found.state).name.lower()
        listed = (place for place in range(int(after or "0"), graph.count) if not state or states[place] == state)
        places = list(islice(listed, page_limit(limit) + 1))
        next_place = places.pop() if len(places) > page_limit(limit) else None
        return WorkflowView(
            handle=jsonbytes.encode(handle),
            name=graph.name,
            state=own_state,
            reason=found.reason,
            submitted_at=found.submitted_at,
            finished_at=None if isinstance(found, LiveJob) else found.finished_at,
            count=graph.count,
            states=dict(Counter(states)),
            groups=self._groups(found.id, graph, states),
            jobs=self._members(found.id, graph, states, places),
            after="" if next_place is None else str(next_place),
        )

    async def _graph(self, found: LiveJob | Record) -> Graph | None:
        """The picture of a workflow; None: it is none, but somebody has submitted a job of the same function."""
        text = found.payload if isinstance(found, LiveJob) else await self._archive.result(found)
        graph = workflow_graph.decode(text)
        if graph is None:  # the store has removed a part of it
            return Graph(workflow_graph.beginning(text)[0], 0, []) if isinstance(found, Record) else None
        count = sum(group.count for group in graph.groups)
        most = self._engine.policy.max_workflow_jobs
        if isinstance(found, LiveJob):
            most = len(unpack_parents(found.after).ids)
        is_consistent = graph.count == count <= most and all(group.count > 0 for group in graph.groups)
        return graph if is_consistent else None

    async def results(self, handle: bytes, ids: str) -> MemberResults:
        """The results of jobs by their ids, for the worker of another job that needs them."""
        found: list[MemberResult] = []
        size = 0
        try:
            wanted = number_ranges.parse(ids)
        except ValueError as error:
            raise AdminError("bad-request", f"ids: {error}") from None
        most = self._engine.policy.max_workflow_jobs
        if sum(last - first + 1 for first, last in wanted) > most:
            raise AdminError("bad-request", f"ids: a workflow has at most {most:,} jobs (max_workflow_jobs)")
        while wanted and size < _ANSWER_BYTES:
            first, last = wanted.pop()
            begin = max(first, last - _READ_AT_ONCE + 1)
            if begin > first:
                wanted.append((first, begin - 1))
            for record in await self._archive.newest(JobQuery(below=last + 1, least=begin), last - begin + 1):
                if size >= _ANSWER_BYTES:
                    wanted.append((begin, record.id))  # records come with the highest id first
                    break
                _require_reading(record.function)
                result = await self._archive.result(record)
                is_whole = record.keeps_result and len(result) == record.full_size
                size += len(result)
                found.append(
                    MemberResult(
                        record.id,
                        jsonbytes.encode(record.function),
                        views.STATES[record.state],
                        record.code,
                        record.reason,
                        jsonbytes.encode(result) if is_whole else None,
                    )
                )
        return MemberResults(found, number_ranges.write(wanted))

    async def _member_states(self, id: int, count: int) -> list[str]:
        """The state of every member, in their order."""
        # The archive comes last: jobs that end meanwhile are found in it.
        states: list[str] = []
        missing = False
        loop_break = LoopBreak()
        for member in range(id + 1, id + 1 + count):
            await loop_break.take()
            job = self._engine.jobs.get(member) or self._engine.dead.get(member)
            states.append(job.state.name.lower() if job is not None else "")
            missing = missing or job is None
        if missing:
            ends = await self._archive.ends(id + 1, id + count)
            for place, state in enumerate(states):
                if not state:
                    end = ends.get(id + 1 + place)
                    states[place] = end.name.lower() if end is not None else _NOT_KEPT
        return states

    def _members(self, id: int, graph: Graph, states: list[str], places: list[int]) -> list[WorkflowJobView]:
        members = []
        starts = _starts(graph)
        for place in places:
            group = graph.groups[bisect_right(starts, place) - 1]
            handle = self._handle(id + 1 + place)
            members.append(WorkflowJobView(place, handle, group.function, states[place], group.after, group.on_failure))
        return members

    def _groups(self, id: int, graph: Graph, states: list[str]) -> list[WorkflowGroupView]:
        """The first groups, with the groups that each of them waits for."""
        starts = _starts(graph)
        shown = []
        for group, start in list(zip(graph.groups, starts, strict=True))[:_GROUPS_SHOWN]:
            parents = {
                number
                for first, last in group.after
                for number in range(bisect_right(starts, first) - 1, bisect_right(starts, last))
            }
            shown.append(
                WorkflowGroupView(
                    function=group.function,
                    first=start,
                    handle=self._handle(id + 1 + start),
                    count=group.count,
                    parents=sorted(parents),
                    on_failure=group.on_failure,
                    states=dict(Counter(states[start : start + group.count])),
                )
            )
        return shown

    def _handle(self, id: int) -> JsonBytes:
        """The handle of a member."""
        job = self._engine.jobs.get(id) or self._engine.dead.get(id)
        return jsonbytes.encode(job.handle if job is not None else self._engine.handle_prefix + b"%d" % id)


def _require_reading(function: bytes) -> None:
    identity = caller.get()
    if identity is not None and not any(identity.rights.allow(scope, function) for scope in (READ, SUBMIT, WORK)):
        raise AdminError("forbidden", f"{identity.name} has no right to results of the function {printable(function)}")


def _member(numbered: tuple[int, WorkflowMember]) -> MemberJob:
    place, job = numbered
    for name in ("run_at", "timeout", "keep_for", "expires_at"):
        value = getattr(job, name)
        if not 0 <= value <= _LARGEST_TIME:
            raise AdminError("bad-request", f"{name} of job {place} must be 0 to {_LARGEST_TIME:g}, not {value:g}")
    if job.expires_at and job.expires_at <= job.run_at:
        raise AdminError("bad-request", f"job {place} would expire before it may run")
    return MemberJob(
        jsonbytes.decode(job.function), jsonbytes.decode(job.payload), tuple(job.after), job.on_failure == "run",
        views.PRIORITIES.index(job.priority), job.run_at, job.timeout, job.keep_for, job.expires_at,
        jsonbytes.decode(job.partition),
    )  # fmt: skip


def _starts(graph: Graph) -> list[int]:
    """The place of the first member of each group."""
    starts = [0]
    for group in graph.groups:
        starts.append(starts[-1] + group.count)
    return starts[:-1]
