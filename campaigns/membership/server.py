"""One server of the simulation: the real engine, tick loop, committer, schedules and cluster, without doors.

It starts, joins, serves and stops in the order of `server/server.py`. Clients and workers are calls of the engine.
"""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from campaigns.membership.audit import Audit
from campaigns.membership.database import Database, Row
from campaigns.membership.store import Network, SimulatedMembershipThread, SimulatedStore, SimulatedThread
from campaigns.membership.world import Machine, SimulatedLoop
from geartrain.admin.schedule import Schedule
from geartrain.admin.schedules import Schedules
from geartrain.cluster.cluster import Cluster, ClusterOptions
from geartrain.cluster.membership import Environment
from geartrain.cluster.rescue import LostJobs
from geartrain.engine.engine import Engine, PollingWorker
from geartrain.engine.interfaces import Journal, KeyWaiter
from geartrain.engine.job import LiveJob
from geartrain.errors import StoreError
from geartrain.model import JobState
from geartrain.runtime.clock import Clock
from geartrain.runtime.committer import Committer
from geartrain.runtime.tick import TickLoop
from geartrain.store.contract import Quota, Retention
from geartrain.store.shared import Node

FUNCTION: Final = b"work"
SCHEDULED: Final = b"scheduled"
_RETENTION: Final = Retention(Quota(60.0, 1000), Quota(60.0, 1000))
_STOP_PATIENCE: Final = 10.0  # `server.STORE_SECONDS`


class ServerOptions(NamedTuple):
    """What the servers of one schedule have in common."""

    lease: float
    patience: float
    cluster: type[Cluster] = Cluster  # a mutant, where a test wants the simulation to fail


class SimulatedServer:
    """From the moment at which it has become a node to its end."""

    def __init__(
        self,
        node: Node,
        machine: Machine,
        database: Database,
        network: Network,
        audit: Audit,
        options: ServerOptions,
        refuses: Callable[[Node, str], bool],
        on_end: Callable[[], None],
        unwritten: LostJobs,
    ) -> None:
        self.node = node
        self.machine = machine
        self.audit = audit
        self.options = options
        self.is_serving = False
        self.is_fenced = False
        self.listens = False
        self._database = database
        self._on_end = on_end
        self._running: list[LiveJob] = []
        self._unwritten = unwritten
        self.loop = SimulatedLoop(machine)
        self.store = SimulatedStore(database, machine, network, audit, node, options.patience)
        thread = SimulatedThread(machine)
        thread.store = self.store
        self.clock = Clock(machine.wall, machine.monotonic)
        self.committer = Committer(self.store, _RETENTION, thread=thread)
        self.engine = Engine(None, self.store.handle_prefix, self.store.open(), self.committer)
        self.tick_loop = TickLoop(self.loop.as_loop, self.engine, self.clock)
        self.clock.on_step = self.engine.clock_moved
        self.cluster = options.cluster(
            self.store,
            self.committer,
            self.tick_loop,
            ClusterOptions(node.name, node.machine, options.lease, 2_000_000),
            partial(self.stop, True),
            Environment(machine.monotonic, refuses),
            partial(SimulatedMembershipThread, machine, database, self.store),
        )
        self.committer.on_fenced = self._stop_fenced
        self._schedules = Schedules(self.tick_loop, self.store.saved_values())
        self.engine.timers.append(self._schedules)
        self._worker = PollingWorker("sim")
        self.engine.register(self._worker, FUNCTION)
        self.engine.register(self._worker, SCHEDULED)
        self._stopped = asyncio.Event()

    def start(self) -> None:
        """Begin to commit and to join; a StoreError if the database cannot be reached."""
        self.loop.run(self._start)

    def _start(self) -> None:
        self.committer.start(self.tick_loop)
        self.loop.create_task(self._run())

    async def _run(self) -> None:
        with contextlib.suppress(
            StoreError
        ):  # the real server ends with this error; its service manager starts it again
            await self.cluster.join(self._stopped)
            await self.cluster.rescue(self._unwritten, self._stopped)
            if not self._stopped.is_set():
                self.listens = True
                await self.cluster.serve(self.node.name)
                self.is_serving = True
                await self._stopped.wait()
        await self._close()

    async def _close(self) -> None:
        self.listens = self.is_serving = False
        await self.cluster.stop()
        self.engine.journal = Journal()
        self.engine.timers.clear()
        self.tick_loop.close()
        self.store.patience = min(self.store.patience, _STOP_PATIENCE)
        await self.committer.stop()
        self.store.close(self.engine.next_id)
        self._on_end()

    def stop(self, graceful: bool) -> None:
        """Stop, and if it is graceful assign nothing while the rest is written."""
        if graceful and self.is_serving:
            self.listens = False
            self.cluster.stop_assigning()
        self.is_serving = False
        self._stopped.set()

    def _stop_fenced(self) -> None:
        self.is_fenced = True
        self.is_serving = False
        self._stopped.set()

    @property
    def unwritten(self) -> list[tuple[object, ...]]:
        """Rows of jobs that the next start in this process takes along, if this one was fenced."""
        return [*self._unwritten.left, *self.committer.unwritten]

    def knows(self, row: Row) -> bool:
        """Whether it has a job, as its home or to submit it again."""
        id, handle = row[:2]
        job = self.engine.jobs.get(id) or self.engine.dead.get(id)
        return (job is not None and job.background) or any(left[1] == handle for left in self.unwritten)

    @property
    def could_assign(self) -> bool:
        """Whether it would assign a background job, if it went on at this moment."""
        return self.is_serving and not self.engine.lapsed and self.clock() < self.engine.lapse_at

    @property
    def is_excused(self) -> bool:
        """Whether its machine was suspended, and no commit that it has begun since then has succeeded."""
        return self.store.renewed_at < self.machine.resumed_at

    # Clients, workers and operators

    def add_schedule(self, expression: str) -> None:
        self.loop.run(lambda: self._add_schedule(expression))

    def _add_schedule(self, expression: str) -> None:
        self.tick_loop.begin_tick()
        self._schedules.set(Schedule("schedule", expression, SCHEDULED))

    def submit(self, unique: bytes) -> None:
        self.loop.run(lambda: self._submit(unique))

    def _submit(self, unique: bytes) -> None:
        job = self.tick_loop.begin_tick().submit(FUNCTION, unique, b"", background=True)
        waiter = _Submission(self.audit, job)
        if job.state is JobState.RESERVING:
            self.engine.wait_for_key(job, waiter)
        self.tick_loop.durability.call_when_durable(waiter.end)

    def claim(self) -> None:
        self.loop.run(self._claim)

    def _claim(self) -> None:
        job = self.tick_loop.begin_tick().claim(self._worker)
        if job is not None:
            self.audit.assigned(self, job)
            self._running.append(job)

    def complete(self) -> None:
        if self._running:
            self.loop.run(self._complete)

    def _complete(self) -> None:
        job = self._running.pop(0)
        self.audit.completed(job)
        self.tick_loop.begin_tick().complete(self._worker, job, b"")


class _Submission(KeyWaiter):
    """Waits for the acknowledgement of a job."""

    def __init__(self, audit: Audit, job: LiveJob) -> None:
        self._audit = audit
        self._id, self._handle = job.id, job.handle
        self._is_ceded = False

    def key_taken(self, handle: bytes) -> None:
        self._is_ceded = True

    def end(self, failed: bool) -> None:
        if not failed and not self._is_ceded:
            self._audit.acknowledged(self._id, self._handle)
