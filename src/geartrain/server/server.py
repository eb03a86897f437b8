"""The server: builds the rooms from the settings, opens the doors, and stops in good order.

Stopping at once (SIGTERM, SIGINT) closes everything. Stopping gracefully (SIGUSR1, or a client's `shutdown
graceful`) closes the listening sockets, lets running jobs finish, and then does the same.
"""

import asyncio
import logging
import os
import platform
import pwd
import signal
from collections.abc import Callable, Sequence

import geartrain
from geartrain.address import Address
from geartrain.admin.control import ControlWorker
from geartrain.admin.service import Admin
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Journal
from geartrain.runtime import memory
from geartrain.runtime.clock import Clock
from geartrain.runtime.committer import Committer
from geartrain.runtime.records import MemoryJournal, StoreArchive
from geartrain.runtime.tick import TickLoop
from geartrain.server import options, restore
from geartrain.server.config import settings as table
from geartrain.server.config.settings import Settings
from geartrain.server.info import RunningServer
from geartrain.server.listeners import DoorContext, Doors
from geartrain.server.process import pid_file, privileges, signals
from geartrain.server.process.log import Log
from geartrain.server.process.systemd import Notifier
from geartrain.store.memory import MemoryStore

# How long a stop waits for peers to take the last bytes that were sent to them.
FAREWELL_SECONDS = 1.0

Ready = Callable[[Sequence[Address]], None]

_log = logging.getLogger("geartrain.server")


class Server:
    """One server, from its start to its stop; use it once. It is what doors know as `control`."""

    def __init__(self, settings: Settings, log: Log, account: pwd.struct_passwd | None = None) -> None:
        self._settings = settings
        self._store = restore.make(settings.store, settings.result_limit)
        self._log_target = log
        self._account = account  # as whom it will run, if not as whom it was started
        self._notifier = Notifier()
        self._stopped = asyncio.Event()
        self._committer: Committer | None = None  # of a durable store
        self._draining = False
        self._serving = False

    @property
    def log_level_name(self) -> str:
        """gearmand's word for the log level."""
        return self._settings.log_level.upper()

    async def run(self, ready: Ready) -> None:
        """Serve until told to stop. `ready` is called once, with every address, when all doors are open."""
        self._loop = asyncio.get_running_loop()
        with signals.handled(self._loop, self._signal_handlers()):
            with privileges.acting_as(self._account):  # so that the store's files belong to who will use them
                first_id = self._store.open()
            try:
                await self._build(first_id)
                if not self._stopped.is_set():
                    await self._serve(ready)
            finally:
                self._store.close(self._engine.next_id)
        self._say_goodbye()

    async def _build(self, first_id: int) -> None:
        """Make the engine, and give it back the jobs that the store has kept."""
        settings, clock = self._settings, Clock()
        journal: MemoryJournal | Committer
        if isinstance(self._store, MemoryStore):
            journal = MemoryJournal(self._store, settings.keep_records, settings.result_limit)
        else:
            journal = self._committer = Committer(self._store, options.keep(settings))
        self._engine = Engine(options.policy(settings), table.handle_prefix(settings), first_id, journal)
        if isinstance(journal, MemoryJournal):
            journal.engine = self._engine
        self._tick_loop = TickLoop(self._loop, self._engine, clock)
        kept, archive = self._store.kept(), StoreArchive(self._store, journal)
        site = RunningServer(
            self._tick_loop, self._store, settings.store or restore.default_url(os.environ), self._committer
        )
        admin = Admin(self._tick_loop, site, archive, kept)
        self._control = ControlWorker(self._tick_loop, admin) if settings.control else None
        context = DoorContext(self._tick_loop, settings, self, archive, kept, admin)
        self._doors = site.doors = Doors(context, options.sockets(settings))
        with memory.at_rest():
            await restore.restore_jobs(self._store, self._engine, self._stopped)

    async def _serve(self, ready: Ready) -> None:
        if self._committer is not None:
            self._committer.start(self._tick_loop)
        self._tick_loop.schedule_tick()  # what was to be done at a time may be due
        try:
            self._serving = True
            await self._doors.open(self._settings.listen)
            with pid_file.written(self._settings.pid_file):
                self._announce(ready)
                await self._stopped.wait()
                self._notifier.stopping("stopping")
        finally:
            await self._close()

    def shutdown(self, graceful: bool) -> None:
        """Stop, at once or when the running jobs are done. A second call may only make it sooner."""
        if not graceful or not self._serving:
            self._stopped.set()
        elif not self._draining:
            self._drain()

    def not_ready(self) -> str:
        """Why no jobs should be sent here at the moment."""
        if self._draining or self._stopped.is_set():
            return "the server is stopping"
        if self._committer is not None and self._committer.failing:
            return "jobs cannot be made durable; the log says why"
        return ""

    def reload(self) -> None:
        """Reopen the log file, for log rotation."""
        self._notifier.reloading()
        self._log_target.reopen()
        if self._serving:
            self._notifier.ready(self._status())

    def _signal_handlers(self) -> signals.Handlers:
        def stop() -> None:
            self.shutdown(graceful=False)

        return {
            signal.SIGTERM: stop,
            signal.SIGINT: stop,
            signal.SIGUSR1: lambda: self.shutdown(graceful=True),
            signal.SIGHUP: self.reload,
        }

    def _announce(self, ready: Ready) -> None:
        fields = {
            "version": geartrain.__version__,
            "python": platform.python_version(),
            "loop": type(self._loop).__module__.partition(".")[0],
            "store": self._settings.store or restore.default_url(os.environ),
            "pid": os.getpid(),
        }
        _log.info("started", extra={"fields": fields})
        for address in self._doors.addresses:
            _log.info("open", extra={"fields": {"door": address.scheme, "address": address}})
        memory.settle()
        ready(self._doors.addresses)
        self._notifier.ready(self._status())

    def _status(self) -> str:
        return "serving " + " ".join(map(str, self._doors.addresses))

    def _drain(self) -> None:
        self._draining = True
        self._doors.stop_listening()
        if self._control is not None:
            self._control.rest()
        self._notifier.stopping("waiting for running jobs")
        _log.info("stopping when the running jobs are done", extra={"fields": {"jobs": self._engine.running}})
        if self._settings.drain_timeout:
            self._loop.call_later(self._settings.drain_timeout, self._give_up)
        self._tick_loop.after.append(self._stop_when_drained)
        self._tick_loop.schedule_tick()

    def _stop_when_drained(self) -> None:
        if not self._engine.running:
            self._stopped.set()

    def _give_up(self) -> None:
        if not self._stopped.is_set():
            fields = {"jobs": self._engine.running, "seconds": self._settings.drain_timeout}
            _log.warning("not waiting any longer for running jobs", extra={"fields": fields})
            self._stopped.set()

    async def _close(self) -> None:
        self._doors.stop_listening()
        # From here on workers are lost because we go, not because a job is bad. The store must not hear of that:
        # it gives the jobs back at the next start as they were before.
        self._engine.journal = Journal()
        self._engine.timers.clear()
        if self._control is not None:
            await self._control.close()
        self._doors.close()
        deadline = self._loop.time() + FAREWELL_SECONDS
        while self._doors.connections and self._loop.time() < deadline:
            await asyncio.sleep(0.005)
        self._tick_loop.close()
        if self._committer is not None:
            await self._committer.stop()

    def _say_goodbye(self) -> None:
        """Say so if jobs are lost by this stop."""
        left = sum(not (job.background and self._store.durable) for job in self._engine.jobs.values())
        if left:
            _log.warning("jobs that were not done are forgotten", extra={"fields": {"jobs": left}})
        _log.info("stopped")
