"""The rules of a cluster, checked whenever something happens that could break one.

- When a node is fenced, its server would assign no background job any more, whatever it does next.
- A job is assigned by its home alone, and a key that a job of another server has is not run a second time.
- Only the home of a job changes or ends it, and a job ends once.
- What was acknowledged is in the database until it has ended.
- One server leads, and each run of a schedule is submitted once, by the leader.

A virtual machine that was suspended does not know it. It may break the first two until its first commit is answered.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from campaigns.membership.database import Database
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
        self.servers: dict[int, SimulatedServer] = {}  # that live, by node
        self.acknowledged_jobs: set[int] = set()
        self.finished_jobs: set[int] = set()
        self.assigned_jobs: set[int] = set()
        self.runs = 0  # of schedules
        self.excused = 0  # assignments of machines that were suspended
        self._next_run = 0.0

    def fenced(self, node: int) -> None:
        """A node was fenced."""
        server = self.servers.get(node)
        if server is not None and server.machine.is_up and not server.is_excused and server.could_assign:
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
        if problem and server.is_excused:
            self.excused += 1
        elif problem:
            self._fail(f"node {node} assigned job {job.id}, and {problem}")

    def acknowledged(self, id: int) -> None:
        """A client was told that its job is accepted."""
        if id not in self.database.jobs and id not in self.finished_jobs:
            self._fail(f"job {id} was acknowledged, and is not in the database")
        self.acknowledged_jobs.add(id)

    def writing(self, node: int, batch: Batch, undone: list[int], is_repeated: bool) -> None:
        """A batch is about to be committed."""
        database = self.database
        for record in batch.finished:
            if database.home_of(record.id) != node:
                self._fail(f"node {node} ended job {record.id}, whose home is {database.home_of(record.id)}")
            if record.id in self.finished_jobs and not is_repeated:
                self._fail(f"job {record.id} ended twice")
            self.finished_jobs.add(record.id)
        for row in (*batch.accepted, *batch.changed):
            if database.home_of(row[0]) != node:  # type: ignore[arg-type]
                self._fail(f"node {node} wrote job {row[0]}, whose home is {database.home_of(row[0])}")  # type: ignore[arg-type]
        for id in (*batch.removed_jobs, *undone):
            if id in self.acknowledged_jobs and id not in self.finished_jobs:
                self._fail(f"node {node} removed job {id}, which was acknowledged")
        self._check_runs(node, batch, undone)

    def wrote(self, node: int, outcome: CommitOutcome) -> None:
        """A batch was committed."""
        for id, twin in outcome.twins.items():
            if id in self.assigned_jobs:
                self._fail(f"node {node} assigned job {id}, and job {twin.id} had its key")
        if len(self.database.leaders) > 1:
            self._fail("two nodes lead")

    def _check_runs(self, node: int, batch: Batch, undone: list[int]) -> None:
        runs = [row for row in map(whole_row, batch.accepted) if row[_DOOR] == "cron"]
        values = [value for name, value in batch.saved_values.items() if name.startswith(_RUNS)]
        if not values:
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
        for id in self.acknowledged_jobs - self.finished_jobs:
            if id not in database.jobs:
                self._fail(f"job {id} was acknowledged, and is lost")
        for id in database.jobs:
            home = database.home_of(id)
            server = self.servers.get(home)
            if server is None or id not in server.engine.jobs:
                return f"its home {home} does not have job {id}"
        return ""
