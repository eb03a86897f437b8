"""The server: connects engine, store, admin and doors, serves, and stops in good order.

An immediate stop (SIGTERM, SIGINT) closes everything. A graceful stop (SIGUSR1, or a client's `shutdown graceful`)
closes the listening sockets, lets running jobs finish, and then stops.
"""

import asyncio
import contextlib
import functools
import logging
import os
import platform
import pwd
import signal
from collections.abc import Callable, Sequence
from typing import Final

import geartrain
from geartrain import audit, compiled, rights
from geartrain.address import Address
from geartrain.admin.control import ControlWorker
from geartrain.admin.service import Admin
from geartrain.admin.views import ReloadView
from geartrain.cluster.cluster import Cluster
from geartrain.cluster.rescue import LostJobs
from geartrain.doors.gearman.cluster_status import OtherServersStatus
from geartrain.doors.peer import mirrors
from geartrain.doors.peer.door import PeerDoor
from geartrain.engine.engine import Engine
from geartrain.engine.idle_functions import IdleFunctions
from geartrain.engine.interfaces import Journal
from geartrain.errors import GeartrainError, SettingsError, StartError, StoreError
from geartrain.rights import Identity
from geartrain.runtime import memory, work_thread
from geartrain.runtime.clock import Clock
from geartrain.runtime.committer import Committer
from geartrain.runtime.dead_jobs import DeadJobLimits
from geartrain.runtime.memory_journal import MemoryJournal
from geartrain.runtime.payload_reader import StorePayloads
from geartrain.runtime.records import RecordChanges, StoreArchive
from geartrain.runtime.tick import TickLoop
from geartrain.server import options, restore
from geartrain.server.access import ServerAccess
from geartrain.server.audit_log import AuditLog
from geartrain.server.cluster_events import EventRelay
from geartrain.server.cluster_info import RunningCluster
from geartrain.server.cluster_links import LinkedAdmins
from geartrain.server.cluster_status import StatusGossip
from geartrain.server.config import settings as table
from geartrain.server.config.settings import Settings
from geartrain.server.info import RunningServer
from geartrain.server.listeners import DoorContext, Doors, default_addresses
from geartrain.server.other_servers import LinkedDistantServers
from geartrain.server.peers import LinkedServers
from geartrain.server.process import pid_file, privileges, signals
from geartrain.server.process.log import Log
from geartrain.server.process.systemd import Notifier
from geartrain.server.queue_lengths import QueueLengths
from geartrain.server.stored_locks import StoredLocks
from geartrain.server.tls import ServerTls
from geartrain.server.users import UserSources
from geartrain.store import url
from geartrain.store.memory import MemoryStore
from geartrain.store.payload_store import as_payload_store
from geartrain.store.shared import FencedError, as_shared
from geartrain.store.sqlite import SqliteStore

# How long a stop waits for peers to read the last bytes that were sent to them.
FLUSH_SECONDS: Final = 1.0
# How long a stop waits for a shared store that does not answer.
STORE_SECONDS: Final = 5.0
# How long a server that was fenced waits before it tries again to start.
START_SECONDS: Final = 1.0

Ready = Callable[[Sequence[Address]], None]

_log = logging.getLogger("geartrain.server")


class Server:
    """One server from start to stop; use it once. It is the doors' `ProcessControl`."""

    def __init__(
        self,
        settings: Settings,
        log: Log,
        user: pwd.struct_passwd | None = None,
        unwritten: Sequence[tuple[object, ...]] = (),
    ) -> None:
        self._settings = settings
        self._unwritten = LostJobs(unwritten)  # of the server that was here before and was fenced
        store_url = settings.store or url.default_url(os.environ)
        self._store_url = url.shown(store_url)
        self._store = url.create_store(store_url, options.result_limits(settings), options.member(settings))
        self._log_output = log
        self._user = user  # that the process switches to once it is ready; None: it stays the same
        self._notifier = Notifier()
        self._stopped = asyncio.Event()
        self._committer: Committer | None = None  # of a durable store
        self._payloads: StorePayloads | None = None  # of a store that need not have all payloads in memory
        self._cluster: Cluster | None = None  # of a store that several servers share
        self._gossip: list[StatusGossip | QueueLengths] = []  # with other servers
        self.is_fenced = False  # others have taken this server for dead
        self.starts_anew = False  # after that, because nobody wants it to stop
        sources = UserSources(settings.users_file, settings.settings_file)
        self._access = ServerAccess(sources, settings.trust_network)
        self._tls = ServerTls(settings, settings.listen or default_addresses(tls=bool(settings.tls_certificate)))
        self._draining = False
        self._serving = False

    @property
    def unwritten(self) -> Sequence[tuple[object, ...]]:
        """Rows of jobs that the store may have lost, of a server that was fenced before it could write them again."""
        return [*self._unwritten.left, *(self._committer.unwritten if self._committer is not None else ())]

    @property
    def is_stopping(self) -> bool:
        """Whether it has been told to stop, or has stopped."""
        return self._draining or self._stopped.is_set()

    @property
    def log_level_name(self) -> str:
        """The log level as gearmand writes it."""
        return self._settings.log_level.upper()

    async def run(self, ready: Ready) -> None:
        """Serve until stopped. `ready` is called once, with every address, when all doors listen."""
        self._loop = asyncio.get_running_loop()
        with signals.handled(self._loop, self._signal_handlers()):
            with privileges.acting_as(self._user):  # so that the file belongs to its later user
                self._audit = AuditLog(self._settings.audit_file)
            try:
                first_id = await self._open_store()
            except GeartrainError:
                self._audit.close()
                raise
            try:
                await self._build(first_id)
                if not self._stopped.is_set():
                    await self._run_as_member(ready)
            finally:
                if self._payloads is not None:
                    self._payloads.stop()
                self._store.close(self._engine.next_id)
                self._audit.record(audit.STOP)
                self._audit.close()
        self._log_stop()

    async def _open_store(self) -> int:
        """Open the store; again and again if this process has jobs that the store may have lost."""
        while True:
            try:
                with privileges.acting_as(self._user):
                    return self._store.open()
            except StoreError as error:
                if not self._unwritten.left:
                    raise
                fields = {"jobs": len(self._unwritten.left), "why": str(error)}
                _log.error("cannot start with jobs that the database may lack, trying again", extra={"fields": fields})
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopped.wait(), START_SECONDS)
                if self._stopped.is_set():
                    raise

    async def _build(self, first_id: int) -> None:
        """Make the engine and all that stands on it, and restore the store's jobs."""
        settings, clock = self._settings, Clock()
        journal: MemoryJournal | Committer
        if isinstance(self._store, MemoryStore):
            journal = MemoryJournal(self._store, options.retention(settings))
        else:
            journal = self._committer = Committer(
                self._store, options.retention(settings), options.result_limits(settings)
            )
            if isinstance(self._store, SqliteStore):
                self._store.checkpoints.in_background = True
        shared = as_shared(self._store)
        prefix = shared.handle_prefix if shared is not None else table.handle_prefix(settings)
        self._engine = Engine(options.policy(settings), prefix, first_id, journal)
        self._engine.audit = self._audit
        self._engine.usages = self._access.usages
        if isinstance(journal, MemoryJournal):
            journal.engine = self._engine
        self._tick_loop = TickLoop(self._loop, self._engine, clock)
        clock.on_step = self._engine.clock_moved
        self._engine.timers.append(IdleFunctions(self._engine))
        dead_quota = options.dead_quota(settings)
        if dead_quota is not None:
            self._engine.timers.append(DeadJobLimits(self._engine, dead_quota))
        saved_values = self._store.saved_values()
        uncommitted = self._committer.uncommitted if self._committer is not None else RecordChanges()
        if shared is not None and self._committer is not None:
            self._cluster = Cluster(
                shared,
                self._committer,
                self._tick_loop,
                options.cluster(settings),
                lambda: self.shutdown(graceful=True),
            )
            self._committer.on_fenced = self._stop_fenced
        self._cluster_info = RunningCluster(self._cluster) if self._cluster is not None else None
        archive = StoreArchive(self._store, uncommitted)
        kept_seconds = options.kept_seconds(settings, isinstance(self._store, MemoryStore))
        info = RunningServer(
            self._tick_loop,
            self._store,
            self._store_url,
            self._committer,
            reload=self.reload,
            kept_seconds=kept_seconds,
            access=self._access,
            archive=archive,
            cluster=self._cluster_info,
        )
        admin = self._admin = Admin(self._tick_loop, info, archive, saved_values)
        self._control = ControlWorker(self._tick_loop, admin) if settings.control else None
        context = DoorContext(
            tick_loop=self._tick_loop,
            settings=settings,
            control=self,
            archive=archive,
            saved_values=saved_values,
            admin=admin,
            access=self._access,
            peer=options.peer(settings, shared) if shared is not None else None,
            lock_store=StoredLocks(shared) if shared is not None else None,
        )
        self._doors = info.doors = Doors(context, options.sockets(settings), self._tls)
        payload_store = as_payload_store(self._store)
        if payload_store is not None and settings.payload_memory:
            self._payloads = StorePayloads(payload_store, self._tick_loop)
            self._payloads.start(settings.payload_memory)
        if self._cluster is None:  # else jobs are taken over while it serves
            with memory.collector_paused():
                await restore.restore_jobs(self._store, self._engine, self._stopped)

    async def _run_as_member(self, ready: Ready) -> None:
        """Begin to commit, and serve. In a cluster, wait before until the other servers know of this one."""
        if self._committer is not None:
            self._committer.start(self._tick_loop)
        try:
            if self._cluster is not None:
                await self._cluster.join(self._stopped)
                await self._cluster.rescue(self._unwritten, self._stopped)
            if not self._stopped.is_set():
                await self._serve(ready)
        finally:
            await self._close()

    async def _serve(self, ready: Ready) -> None:
        await restore.end_expired(self._tick_loop)
        self._tick_loop.schedule_tick()  # restored jobs and schedules may be due
        self._serving = True
        await self._doors.open(self._settings.listen)
        if self._cluster is not None:
            peer_door = self._doors.peer_door
            if peer_door is not None:
                self._cluster.peers = LinkedServers(peer_door)
                if self._committer is not None:
                    self._committer.on_twin = mirrors.handler(peer_door.mirrors, peer_door.key_holders)
                self._link_others(peer_door)
                self._link_admin(self._cluster, peer_door)
            with contextlib.suppress(FencedError):  # the next commit finds out, and what has to be brought along
                await self._cluster.serve(options.link(self._settings, self._doors.addresses))
        self._tls.watch(self._loop, lambda: self._doors.end(frozenset()))
        with pid_file.written(self._settings.pid_file):
            self._announce(ready)
            await self._stopped.wait()
            self._notifier.stopping("stopping")

    def _link_others(self, door: PeerDoor) -> None:
        """Let the doors ask the other servers of the cluster."""
        shared = as_shared(self._store)
        if shared is not None:
            self._tick_loop.others = LinkedDistantServers(door, shared, self._tick_loop.others)
        locks = self._doors.shared_locks
        if locks is not None:
            locks.on_released = functools.partial(door.tell, "unlocked")
            door.hearers["unlocked"] = lambda link, name: locks.retry(name)

    def _link_admin(self, cluster: Cluster, door: PeerDoor) -> None:
        """Let operators see and do at this server what concerns others."""
        linked = self._admin.others = LinkedAdmins(door, cluster, self._admin)
        if self._cluster_info is not None:
            self._cluster_info.links = linked.counts
        EventRelay(door, self._admin.events)
        others = OtherServersStatus(linked.names)
        gearman = self._doors.gearman_door
        self._gossip = [StatusGossip(door, gearman, others), QueueLengths(door)]
        if gearman is not None and self._settings.cluster_status == "cluster":
            gearman.others = others

    def shutdown(self, graceful: bool) -> None:
        """Stop at once, or when the running jobs are finished. A second call can only make it sooner."""
        if not graceful or not self._serving:
            self._stopped.set()
        elif not self._draining:
            self._drain()

    def not_ready(self) -> str:
        """Why this server should get no new jobs; empty if it should."""
        if self.is_stopping:
            return "the server is stopping"
        if self._committer is not None and self._committer.failing:
            return "the store cannot be written; see the server's log"
        if self._payloads is not None and self._payloads.failing:
            return "the store cannot be read; see the server's log"
        if self._cluster is not None and self._engine.lapsed:
            return "the store does not answer, so background jobs wait"
        return ""

    def reload(self, caller: Identity | None = None) -> ReloadView:
        """Reopen the log file, for log rotation, and read users, tokens and TLS certificates again.

        They are replaced together: a SettingsError says why nothing was. If the caller is no longer valid, its
        connections are closed when it has the answer.
        """
        self._notifier.reloading()
        self._log_output.reopen()
        if self._serving:
            self._audit.reopen()
        try:
            return self._replace_credentials(caller)
        finally:
            if self._serving:
                self._notifier.ready(self._status())

    def _replace_credentials(self, caller: Identity | None) -> ReloadView:
        errors: list[str] = []
        try:
            identities = self._access.read()
        except SettingsError as error:
            _log.error("users not reloaded", extra={"fields": {"why": str(error)}})
            errors.append(str(error))
        try:
            tokens = options.http_tokens(self._settings)
            self._doors.check_http_tokens(tokens)
        except StartError as error:
            _log.error("tokens not reloaded", extra={"fields": {"why": str(error)}})
            errors.append(str(error))
        try:
            tls_contexts = self._tls.load()
        except StartError as error:
            errors.append(str(error))
        if errors:
            raise SettingsError(f"nothing was changed: {'; '.join(errors)}")
        self._tls.use(tls_contexts)
        ended = self._access.use(identities)
        if self._serving:
            ended |= self._doors.use_http_tokens(tokens)
        if caller in ended and caller is not None:
            caller.rights = rights.parse([])  # until its connections are closed
        return ReloadView(
            users=self._access.user_count,
            certificates=self._tls.certificates,
            closed_connections=self._doors.end(ended, caller) if self._serving else 0,
        )

    def _stop_fenced(self) -> None:
        """Others have this server's jobs. It forgets all; the process starts another one, unless it was to end."""
        self.is_fenced = True
        self.starts_anew = not self.is_stopping
        if self.starts_anew:
            _log.error("fenced: other servers have taken over; starting anew")
        else:
            _log.error("fenced while stopping: other servers have taken over")
        self._stopped.set()

    def _signal_handlers(self) -> signals.Handlers:
        def stop() -> None:
            self.shutdown(graceful=False)

        def reload() -> None:
            why = ""
            try:
                self.reload()
            except SettingsError as error:  # it is in the log
                why = str(error)
            if self._serving:
                self._audit.record(audit.RELOAD, audit.FAILED if why else audit.OK, why=why)

        return {
            signal.SIGTERM: stop,
            signal.SIGINT: stop,
            signal.SIGUSR1: lambda: self.shutdown(graceful=True),
            signal.SIGHUP: reload,
        }

    def _announce(self, ready: Ready) -> None:
        fields = {
            "version": geartrain.__version__,
            "python": platform.python_version(),
            "loop": type(self._loop).__module__.partition(".")[0],
            "core": compiled.form(),
            "store": self._store_url,
            "pid": os.getpid(),
        }
        _log.info("started", extra={"fields": fields})
        if compiled.is_fallback():
            _log.warning("core is not compiled", extra={"fields": {"advice": compiled.ADVICE}})
        self._audit.record(audit.START, arguments={**fields, "listen": list(map(str, self._doors.addresses))})
        for address in self._doors.addresses:
            _log.info("listening", extra={"fields": {"door": address.url_scheme, "address": address}})
        memory.tune_collector()
        work_thread.tune_switching()
        ready(self._doors.addresses)
        self._notifier.ready(self._status())

    def _status(self) -> str:
        return "serving " + " ".join(map(str, self._doors.addresses))

    def _drain(self) -> None:
        self._draining = True
        self._doors.stop_listening()
        if self._cluster is not None:
            self._cluster.stop_assigning()
        if self._doors.peer_door is not None:
            self._doors.peer_door.offers.withdraw()
        if self._control is not None:
            self._control.rest()
        self._notifier.stopping("waiting for running jobs")
        _log.info("draining", extra={"fields": {"jobs": self._engine.running}})
        if self._settings.drain_timeout:
            self._loop.call_later(self._settings.drain_timeout, self._end_drain)
        self._tick_loop.after.append(self._stop_when_drained)
        self._tick_loop.schedule_tick()

    def _stop_when_drained(self) -> None:
        if not self._engine.running:
            self._stopped.set()

    def _end_drain(self) -> None:
        if not self._stopped.is_set():
            fields = {"jobs": self._engine.running, "seconds": self._settings.drain_timeout}
            _log.warning("drain timed out, stopping", extra={"fields": fields})
            self._stopped.set()

    async def _close(self) -> None:
        self._doors.stop_listening()
        self._tls.close()
        if self._cluster is not None:
            await self._cluster.stop()
        if self._control is not None:
            await self._control.close()
        # Workers that are lost from here on are lost because the server stops. The store must not see that as failed
        # attempts: it restores these jobs at the next start as they were. Nor may it accept any more jobs, as requests
        # might that are answered before their connections are closed: they would be acknowledged, and not stored.
        self._engine.journal = Journal()
        self._engine.stop_accepting()
        self._engine.timers.clear()
        self._tick_loop.others.close()
        for gossip in self._gossip:
            gossip.close()
        self._doors.close()
        if self.is_fenced:  # acknowledgements that wait for a commit never come, and the process goes on
            self._doors.abort()
        deadline = self._loop.time() + FLUSH_SECONDS
        while self._doors.connections and self._loop.time() < deadline:
            await asyncio.sleep(0.005)
        self._tick_loop.close()
        if self._committer is not None:
            shared = as_shared(self._store)
            if shared is not None:
                shared.patience = min(shared.patience, STORE_SECONDS)
            await self._committer.stop()

    def _log_stop(self) -> None:
        lost = sum(not (job.background and self._store.durable) for job in self._engine.jobs.values())
        if lost:
            _log.warning("unfinished jobs lost", extra={"fields": {"jobs": lost}})
        _log.info("stopped")
