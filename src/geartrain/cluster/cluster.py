"""A server as a member of a cluster: what it learns of the others, and what it does about it. Runs in the event loop.

- While another server may have a job with the same unique key, jobs with a key wait for the store.
- The lease: each commit renews it, counted from the moment at which the commit began.
- Jobs of a server that is gone are taken over in pieces, while this one serves.
- Values that others have saved (pauses, limits, schedules) are applied. The leader runs schedules and prunes records.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from geartrain.cluster import liveness
from geartrain.cluster.membership import REAL, Environment, Membership, Sight
from geartrain.cluster.membership_thread import MembershipLoop, MembershipThread
from geartrain.cluster.peers import Peers
from geartrain.cluster.rescue import LostJobs
from geartrain.engine.job import LiveJob
from geartrain.errors import StoreError
from geartrain.runtime.committer import Committer
from geartrain.runtime.tick import TickLoop
from geartrain.store.shared import JOINING, NODE_BITS, SERVING, ClusterView, IdRange, Node, SharedStore

_PIECE: Final = 20_000  # jobs that are taken over at a time
_JOBS_PER_STEP: Final = 500  # that are restored before others have their turn
_JOIN_POLL: Final = 0.05  # seconds between the first looks of a server that joins
_JOIN_POLL_GROWTH: Final = 1.25  # each look of a large cluster is as expensive as the cluster is large

_log = logging.getLogger("geartrain.cluster")


class ClusterOptions(NamedTuple):
    """Settings of a member."""

    name: str
    machine: str
    lease: float
    takeover_jobs: int  # restored from other servers at most
    unique_scope: str = "cluster"  # or `server`


class Cluster:
    """The cluster, as one of its servers sees it."""

    def __init__(
        self,
        store: SharedStore,
        committer: Committer,
        tick_loop: TickLoop,
        options: ClusterOptions,
        drain: Callable[[], None],
        environment: Environment = REAL,
        looks: Callable[[Membership], MembershipLoop] = MembershipThread,
    ) -> None:
        self._store = store
        self._monotonic = environment.monotonic
        self._committer = committer
        self._tick_loop = tick_loop
        self._engine = tick_loop.engine
        self._options = options
        self._drain = drain
        self._looks = looks(Membership(store, options.lease, options.machine, self._tell, environment))
        self.peers: Peers | None = None  # set when the peer door is open
        self._taking: asyncio.Task[None] | None = None
        self._is_taking = False  # until a takeover has ended without an error
        self._unread: IdRange | None = None  # what was taken, and is not restored yet
        self._taken: list[IdRange] = []  # ranges of other servers
        self._looked = asyncio.Event()  # set by every look
        self._looked_at = self._monotonic()
        self._link: str | None = None  # where it can be reached, once the others were told
        self._serving_again: asyncio.Task[None] | None = None
        self._is_leaving = False  # it assigns no more background jobs
        self.view = ClusterView([], 0, 0, {})
        self.leads = False
        self.xmin_age: float | None = None  # of the oldest transaction in the database, while this server leads
        self.takeovers = 0  # ranges that were taken over
        self.taken_jobs = 0
        self.fenced = 0  # servers that this one has fenced
        committer.beat_seconds = liveness.beat_seconds(options.lease)
        committer.on_renewed = self._renew
        committer.prunes = False
        tick_loop.values.is_shared = True
        tick_loop.values.leads = False
        self._engine.reserves_keys = options.unique_scope == "cluster"
        self._renew()

    async def drain(self, name: str) -> bool:
        """Ask the server of that name to stop when its running jobs are done; whether there is one."""
        found = await self._call(self._store.ask_to_drain, name)
        self._looks.hurry()
        return found

    async def fence(self, name: str) -> bool:
        """Fence the server of that name, alive or not; whether there is one."""
        found = await self._call(self._store.fence_named, name)
        if found:
            self.fenced += 1
            _log.warning("server fenced by an operator", extra={"fields": {"server": name}})
            self._looks.hurry()
        return found

    async def look(self) -> None:
        """Look at the store, and apply what others have saved until now."""
        for _ in range(2):  # a look that is under way may have begun before
            self._looked.clear()
            self._looks.hurry()
            await self._looked.wait()

    def owns(self, id: int) -> bool:
        """Whether ids like this one belong to this server."""
        return id >> NODE_BITS == self._store.node or any(taken.low <= id < taken.high for taken in self._taken)

    def stop_assigning(self) -> None:
        """Assign no more background jobs: this server is about to leave, and others will take them."""
        self._is_leaving = True
        self._tick_loop.begin_tick().lapse()

    @staticmethod
    async def _call(function: Callable[[str], bool], name: str) -> bool:
        return await asyncio.get_running_loop().run_in_executor(None, function, name)

    @property
    def view_age(self) -> float:
        """Seconds since the last look at the store."""
        return self._monotonic() - self._looked_at

    @property
    def lease_left(self) -> float:
        """Seconds until others may take this server for dead."""
        return self._store.renewed_at + self._options.lease - self._monotonic()

    @property
    def resynced_jobs(self) -> int:
        """Jobs that were written again, after the database had gone back in time."""
        return self._store.resynced

    @property
    def in_doubt(self) -> dict[str, int]:
        """How often the answer to a commit was lost, by what had become of it."""
        return dict(self._store.in_doubt)

    @property
    def own(self) -> Node | None:
        """This server, as the store has it."""
        return next((node for node in self.view.nodes if node.id == self._store.node), None)

    async def join(self, stopped: asyncio.Event) -> None:
        """Wait until every server that serves knows of this one: from then on they let jobs with keys wait."""
        self._looks.start()
        waits_logged = False
        poll = _JOIN_POLL
        while not stopped.is_set():
            self._looked.clear()
            await self._looked.wait()
            waiting = [node.name for node in self.view.nodes if node.state == SERVING and not self._is_known_to(node)]
            if not waiting:
                return
            if not waits_logged:
                waits_logged = True
                fields = {"servers": ", ".join(waiting)}
                _log.info("joining: waiting until the other servers know this one", extra={"fields": fields})
            if poll < self._looks.pause:  # later, the ordinary looks are frequent enough
                await asyncio.sleep(poll)
                self._looks.hurry()
                poll *= _JOIN_POLL_GROWTH

    async def rescue(self, jobs: LostJobs, stopped: asyncio.Event) -> None:
        """Submit those of these jobs again that the database has lost; after `join`."""
        await jobs.submit_again(self._store, self._committer, self._tick_loop, stopped)
        if not stopped.is_set():
            await self._settle()

    async def serve(self, link: str) -> None:
        """Tell the others that this server can be reached there."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._store.serve, link)
        self._link = link
        fields = {"name": self._options.name, "node": self._store.node, "servers": len(self.servers)}
        _log.info("joined the cluster", extra={"fields": fields})
        self._looks.hurry()

    @property
    def servers(self) -> list[Node]:
        """The servers that live."""
        return [node for node in self.view.nodes if node.state in (SERVING, JOINING)]

    async def stop(self) -> None:
        """Take over nothing more, and look no more."""
        if self._taking is not None:
            self._taking.cancel()
        await asyncio.get_running_loop().run_in_executor(None, self._looks.stop)

    def _is_known_to(self, node: Node) -> bool:
        return node.id == self._store.node or node.seen >= self._store.node

    def _renew(self) -> None:
        """The last commit succeeded. The time that it took counts: others have seen it begin."""
        if self._is_leaving:
            return
        age = self._monotonic() - self._store.renewed_at
        self._engine.renew(self._engine.now - age + self._options.lease * liveness.LAPSE_SHARE)

    def _tell(self, sight: Sight) -> None:
        """Hand on what was seen. Runs in the thread of the membership."""
        self._tick_loop.loop.call_soon_threadsafe(self._see, sight)

    def _see(self, sight: Sight) -> None:
        view = sight.view
        self.view = view
        self.xmin_age = sight.xmin_age
        self._looked_at = self._monotonic()
        self.fenced += sight.fenced
        self._tick_loop.begin_tick()
        newest = max([node.id for node in view.nodes], default=0)
        me = self._store.node
        others = any(node.id != me and node.state in (SERVING, JOINING) for node in view.nodes)
        if self._options.unique_scope == "cluster":
            self._engine.reserves_keys = others or view.orphans > 0 or self._is_taking
        # After `reserves_keys`: the batch that gathers now is the first that says so, and has every key before it.
        self._committer.known_node = max(self._committer.known_node, newest)
        values = {name: value for name, value in view.values.items() if self._committer.is_older(name, view.version)}
        if values:
            self._tick_loop.values.publish(values)
        if self.peers is not None:
            self.peers.see([node for node in self.servers if node.id != self._store.node])
        if sight.leads != self.leads:
            self._lead(sight.leads)
        own = self.own
        if own is not None and own.draining:
            self._drain()
        if own is not None and self._link is not None and (own.state == JOINING or own.link != self._link):
            self._serve_again(self._link)
        may_take = own is not None and own.state == SERVING and not self._is_leaving
        has_to_take = view.orphans or sight.fenced or self._is_taking or self._engine.unsettled
        if has_to_take and self._taking is None and may_take:
            self._taking = asyncio.ensure_future(self._take_over())
        self._looked.set()

    def _serve_again(self, link: str) -> None:
        """The database has gone back to when this server was joining, and nobody could take over or lead: tell it."""

        async def serve() -> None:
            with contextlib.suppress(StoreError):  # then the next look finds the same
                await asyncio.get_running_loop().run_in_executor(None, self._store.serve, link)
            self._serving_again = None

        if self._serving_again is None:
            self._serving_again = asyncio.ensure_future(serve())

    def _lead(self, leads: bool) -> None:
        self.leads = self._committer.prunes = leads
        if leads:
            _log.info("leading the cluster", extra={"fields": {"name": self._options.name}})
        self._tick_loop.values.lead(leads)

    async def _take_over(self) -> None:
        """Take pieces of ranges that nobody has until there are none, or this server has enough."""
        self._is_taking = True
        began, before = self._monotonic(), self.taken_jobs
        try:
            while self._unread is not None or self.taken_jobs < self._options.takeover_jobs:
                if self._unread is None:
                    self._unread = await self._committer.call(lambda: self._store.take(_PIECE))
                    if self._unread is None:
                        break
                    self.takeovers += 1
                    earlier = [part for taken in self._taken for part in taken.parts_outside([self._unread])]
                    self._taken = [*earlier, self._unread]
                    self._note_restored()
                await self._restore(self._unread)
                self._unread = None
                self._note_restored()
            await self._settle()
            self._is_taking = False
        except StoreError as error:
            _log.warning("taking over jobs failed, trying again", extra={"fields": {"why": str(error)}})
        finally:
            self._taking = None
        if self.taken_jobs > before:
            fields = {"jobs": self.taken_jobs - before, "seconds": f"{self._monotonic() - began:.1f}"}
            _log.info("took over jobs", extra={"fields": fields})

    async def _settle(self) -> None:
        """Find out what restored jobs wait for. Another server may have taken over some of it: the store is asked."""
        engine = self._engine
        if engine.unsettled:
            ids = engine.distant_parents()
            states = await self._committer.call(lambda: self._store.states(ids)) if ids else {}
            self._tick_loop.begin_tick().settle(states)

    async def _restore(self, ids: IdRange) -> None:
        """Restore the jobs of a range. If the store fails meanwhile, `_unread` is the rest."""
        loop = asyncio.get_running_loop()
        parts: Iterator[list[LiveJob]] = self._store.jobs_of(ids, LiveJob)
        low = ids.low
        if self.peers is not None:
            await self.peers.find_loans(ids)
        while True:
            jobs = await loop.run_in_executor(None, next, parts, None)
            if jobs is None:
                return
            low = max((job.id + 1 for job in jobs), default=low)
            jobs.sort(key=_run_at)
            for start in range(0, len(jobs), _JOBS_PER_STEP):
                engine = self._tick_loop.begin_tick()
                step = [job for job in jobs[start : start + _JOBS_PER_STEP] if not self._has(job)]
                if self.peers is not None:
                    self.peers.restore(step)
                else:
                    for job in step:
                        engine.restore(job)
                self.taken_jobs += len(step)
                await asyncio.sleep(0)
            self._unread = IdRange(low, ids.high)
            self._note_restored()

    def _has(self, job: LiveJob) -> bool:
        """Whether this server is the home of a job already: it took its range in commits that the database has lost."""
        engine = self._engine
        return job.id in engine.dead or (job.id in engine.jobs and job.id not in engine.borrowed)

    def _note_restored(self) -> None:
        """What of the ranges that were taken is restored: if the database goes back in time, the rest stays there."""
        done = list(self._taken)
        if self._unread is not None:
            done[-1] = IdRange(done[-1].low, self._unread.low)
        self._committer.restored = done


def _run_at(job: LiveJob) -> float:
    return job.run_at
