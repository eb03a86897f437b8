"""The rules of a cluster, checked whenever something happens that could break one.

- When a node is fenced, its server would assign no background job any more, whatever it does next.
- A job is assigned by its home alone, and a key that a job of another server has is not run a second time.
- Only the home of a job changes or ends it, and a job ends once.
- What was acknowledged is in the database until it has ended.
- One server leads, and each run of a schedule is submitted once, by the leader.

A database that goes back in time breaks the first three and the last until its servers have noticed. From then on only
this is asked for: what was acknowledged and has not ended is there in the end, unless every process that knew it when
the database lost it has ended since then; a row is removed only if its job has ended; and one server leads.

A virtual machine that was suspended does not know it. It may break the first two until its first commit is answered.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from campaigns.membership.database import Database, Row
from campaigns.membership.world import World
from geartrain.admin.schedule import ScheduleRun
from geartrain.engine.job import LiveJob
from geartrain.store.contract import Batch, CommitOutcome, whole_row

if TYPE_CHECKING:
    from campaigns.membership.server import SimulatedServer

_FUNCTION: Final = 2  # columns of a job's row
_UNIQUE: Final = 3
_DOOR: Final = 13
_RUNS: Final = "cron-run"


class Audit:
    """Knows everything, unlike any server."""

    def __init__(self, world: World, database: Database) -> None:
        self._fail = world.fail
        self.database = database
        database.on_fenced = self.fenced
        database.on_deleted = self.deleted
        self.servers: dict[int, SimulatedServer] = {}  # that live, by node
        self.acknowledged_jobs: dict[int, bytes] = {}  # handles
        self.finished_jobs: set[int] = set()
        self.completed_jobs: set[int] = set()  # by a worker
        self.completed_handles: set[bytes] = set()
        self.has_gone_back = False  # the database, at least once
        self.lost: dict[bytes, set[object]] = {}  # by handle: the processes that know a job which the database has lost
        self.excused_losses: set[bytes] = set()
        self.repeated = 0  # ends of jobs that had ended before
        self.assigned_jobs: set[int] = set()
        self.runs = 0  # of schedules
        self.excused = 0  # assignments of machines that were suspended
        self._next_run = 0.0

    def fenced(self, node: int) -> None:
        """A node was fenced."""
        server = self.servers.get(node)
        is_excused = self.has_gone_back or (server is not None and server.is_excused)
        if server is not None and server.machine.is_up and not is_excused and server.could_assign:
            self._fail(f"node {node} was fenced, and could still assign jobs")

    def assigned(self, server: "SimulatedServer", job: LiveJob) -> None:
        """A server gave a job to a worker."""
        self.assigned_jobs.add(job.id)
        database, node = self.database, server.node.id
        problem = ""
        if not database.is_living(node):
            problem = "is fenced"
        elif database.home_of(job.id) != node:
            problem = "is not its home"
        elif job.unique:
            holder = database.keys.get((job.function, job.unique), job.id)
            if holder != job.id and database.home_of(holder) != node:
                problem = f"knows that job {holder} has its key"
        if problem and (server.is_excused or self.has_gone_back):
            self.excused += 1
        elif problem:
            self._fail(f"node {node} assigned job {job.id}, and {problem}")

    def acknowledged(self, id: int, handle: bytes) -> None:
        """A client was told that its job is accepted."""
        is_ended = id in (self.completed_jobs if self.has_gone_back else self.finished_jobs)
        if id not in self.database.jobs and not is_ended and handle not in self.lost:
            self._fail(f"job {id} was acknowledged, and is not in the database")
        self.acknowledged_jobs[id] = handle

    def completed(self, job: LiveJob) -> None:
        """A worker has ended a job. Whether the server stores that does not matter to it."""
        self.completed_jobs.add(job.id)
        self.completed_handles.add(job.handle)

    def went_back(self, before: Iterable[Row], processes: Mapping[int, object], carried: Mapping[object, Any]) -> None:
        """The database has lost commits. `before` is what it had; `carried` is what processes that start anew have."""
        self.has_gone_back = True
        present = self.database.has([row[1] for row in before])
        for row in before:
            handle = row[1]
            if handle not in present and handle not in self.completed_handles:
                known = {processes[node] for node, server in self.servers.items() if server.knows(row)}
                known |= {process for process, rows in carried.items() if any(other[1] == handle for other in rows)}
                self.lost[handle] = known
                self._excuse(handle)

    def process_ended(self, process: object) -> None:
        """What it alone knew is lost with it, unless it was written before."""
        touched = [handle for handle, known in self.lost.items() if process in known]
        present = self.database.has(touched)
        for handle in touched:
            self.lost[handle].discard(process)
            if handle not in present:
                self._excuse(handle)

    def _excuse(self, handle: bytes) -> None:
        if not self.lost[handle]:
            self.excused_losses.add(handle)

    def deleted(self, ids: set[int]) -> None:
        """A server that has written all its jobs has removed others of its ranges."""
        for id in ids:
            if id in self.acknowledged_jobs and id not in self.completed_jobs:
                self._fail(f"job {id} was acknowledged, and a server has removed it that had not restored it")

    def writing(self, node: int, batch: Batch, undone: list[int], is_repeated: bool) -> None:
        """A batch is about to be committed."""
        database = self.database
        for record in batch.finished:
            is_twice = record.id in self.finished_jobs and not is_repeated
            if self.has_gone_back:
                self.repeated += is_twice
            elif database.home_of(record.id) != node:
                self._fail(f"node {node} ended job {record.id}, whose home is {database.home_of(record.id)}")
            elif is_twice:
                self._fail(f"job {record.id} ended twice")
            self.finished_jobs.add(record.id)
        for row in () if self.has_gone_back else (*batch.accepted, *batch.changed):
            if database.home_of(row[0]) != node:  # type: ignore[arg-type]
                self._fail(f"node {node} wrote job {row[0]}, whose home is {database.home_of(row[0])}")  # type: ignore[arg-type]
        for id in (*batch.removed_jobs, *undone):
            if id in self.acknowledged_jobs and id not in self.finished_jobs:
                self._fail(f"node {node} removed job {id}, which was acknowledged")
        self._check_runs(node, batch, undone)

    def wrote(self, node: int, outcome: CommitOutcome) -> None:
        """A batch was committed."""
        for id, twin in outcome.twins.items():
            if id in self.assigned_jobs and not self.has_gone_back:
                self._fail(f"node {node} assigned job {id}, and job {twin.id} had its key")
        if len(self.database.leaders) > 1:
            self._fail("two nodes lead")

    def _check_runs(self, node: int, batch: Batch, undone: list[int]) -> None:
        runs = [row for row in map(whole_row, batch.accepted) if row[_DOOR] == "cron"]
        values = [value for name, value in batch.saved_values.items() if name.startswith(_RUNS)]
        if not values:
            return
        if self.has_gone_back:
            self.runs += len(runs)
            return
        if not self.database.nodes[node].leader:
            self._fail(f"node {node} ran a schedule, and does not lead")
        next_run = max(msgspec.json.decode(value, type=ScheduleRun).next_at or 0.0 for value in values)
        jobs = self.database.jobs
        is_repeated = any(id in jobs and jobs[id][_DOOR] == "cron" for id in undone)
        if runs and next_run <= self._next_run and not is_repeated:
            self._fail(f"node {node} repeated a run of the schedule")
        self.runs += len(runs)
        self._next_run = max(self._next_run, next_run)

    def unsettled(self) -> str:
        """What is still to be done when no more faults happen; empty: nothing."""
        database = self.database
        if database.orphans:
            return f"{len(database.orphans)} ranges have no home"
        if len(database.leaders) != 1:
            return "nobody leads"
        owed = {
            handle for handle in self.acknowledged_jobs.values() if handle not in self.completed_handles
        } - self.excused_losses
        missing = owed - database.has(owed)
        if missing and self.has_gone_back:
            return f"{len(missing)} jobs were acknowledged and are not there, such as {min(missing)!r}"
        for handle in missing:
            self._fail(f"job {handle!r} was acknowledged, and is lost")
        for id, row in database.jobs.items():
            home = database.home_of(id)
            server = self.servers.get(home)
            is_there = server is not None and id in server.engine.jobs
            if not is_there and not (self.has_gone_back and row[1] in self.completed_handles):
                return f"its home {home} does not have job {id}"
        return ""
