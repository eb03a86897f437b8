"""A pool of processes that run the tasks of an App: `geartrain work --processes 4 shop:app`.

Each place of the pool has one process. A process that dies is replaced; the server gives its jobs to others. One that
reaches a limit finishes its running tasks while another one takes its place. SIGTERM and SIGINT stop all processes when
their running tasks are finished, a second signal stops them at once. With `reload`, a changed file replaces all.

The first process is started alone: if the App cannot be imported, or no server is there, that is said once.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from typing import Final

from geartrain import backoff
from geartrain.backoff import ReconnectDelay
from geartrain.cli.pool_process import PoolProcess
from geartrain.cli.source_files import SourceFiles
from geartrain.cli.worker_process import AppSummary, WorkSettings
from geartrain.client import stop_signals

_KILL_SECONDS: Final = 5.0  # after which a process that should have ended is killed

_log = logging.getLogger("geartrain.pool")


class Supervisor:
    """Starts and replaces the processes of a pool."""

    def __init__(
        self, settings: WorkSettings, processes: int, reload: bool, announce: Callable[[AppSummary], None]
    ) -> None:
        """`announce` is called with what the first process knows of the App."""
        self._settings = settings
        self._size = processes
        self._announce = announce
        self._files = SourceFiles(os.getcwd()) if reload else None
        self._announced = False
        self._running: set[PoolProcess] = set()
        self._following: set[asyncio.Task[None]] = set()
        self._connected = asyncio.Event()  # one of the processes was
        self._changed = asyncio.Event()  # a file has changed
        self._stop_requests = 0
        self._stopping = asyncio.Event()
        self._exit_code = 0

    async def run(self) -> int:
        """Run the pool until it is stopped, or ends by itself after a burst; return the exit code."""
        with stop_signals.handled(self.stop):
            watching = asyncio.create_task(self._watch_files()) if self._files is not None else None
            try:
                await self._run_places()
                await asyncio.gather(*self._following)
            finally:
                if watching is not None:
                    watching.cancel()
        return self._exit_code

    # Places

    async def _run_places(self) -> None:
        first = await self._start()
        await first.connected.wait()
        if first.has_ended and not first.was_connected and first.exit_code > 0 and self._files is None:
            self._exit_code = first.exit_code  # it has said why; another one would say the same
            return
        others = asyncio.create_task(self._other_places())
        await self._keep(first)
        if not self._connected.is_set():
            others.cancel()
        await asyncio.gather(others, return_exceptions=True)

    async def _other_places(self) -> None:
        await self._connected.wait()
        await asyncio.gather(*(self._keep(None) for _ in range(self._size - 1)))

    async def _keep(self, process: PoolProcess | None) -> None:
        """Keep one place of the pool occupied."""
        delay = ReconnectDelay()
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            started_at = loop.time()
            process = process or await self._start()
            await process.replaceable.wait()
            if not self._is_replaced(process):
                return
            if loop.time() - started_at > backoff.GOOD_CONNECTION:
                delay.reset()
            if not (process.limit or process.restarting):
                await self._pause(process, delay.next())
            process = None

    def _is_replaced(self, process: PoolProcess) -> bool:
        """Log why a process leaves its place; return whether another one follows."""
        if self._stopping.is_set():
            return False
        if process.limit:
            _log.info("replacing worker process: %d, limit reached: %s", process.pid, process.limit)
        elif process.restarting:
            pass
        elif self._settings.options.burst and process.exit_code >= 0:
            self._exit_code = self._exit_code or process.exit_code
            return False
        elif self._waits_for_change(process):
            _log.warning("the app cannot be loaded, waiting for a change of its files")
        else:
            _log.warning("worker process died, replacing it: %d, %s", process.pid, process.ending)
        return True

    def _waits_for_change(self, process: PoolProcess) -> bool:
        return self._files is not None and process.summary is None and process.exit_code > 0

    async def _pause(self, process: PoolProcess, seconds: float) -> None:
        """Wait before a process that died is replaced; an App that cannot be imported, until a file changes."""
        waiting = [asyncio.create_task(self._stopping.wait()), asyncio.create_task(self._changed.wait())]
        timeout = None if self._waits_for_change(process) else seconds
        await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()

    async def _start(self) -> PoolProcess:
        process = await PoolProcess.start(self._settings)
        self._running.add(process)
        _log.debug("started worker process: %d", process.pid)
        following = asyncio.create_task(self._follow(process))
        self._following.add(following)
        following.add_done_callback(self._following.discard)
        if self._stopping.is_set():
            process.send_signal(signal.SIGTERM)
        return process

    async def _follow(self, process: PoolProcess) -> None:
        """From the start of a process to its end."""
        await process.loaded.wait()
        if process.summary is not None and not self._announced:
            self._announced = True
            self._announce(process.summary)
        await process.connected.wait()
        if process.was_connected:
            self._connected.set()
        await process.close()
        self._running.discard(process)

    # Stopping and restarting

    def stop(self) -> None:
        """Stop when the running tasks are finished; the second call stops at once."""
        self._stop_requests += 1
        if self._stop_requests == 1:
            _log.info("stopping %d worker processes", len(self._running))
        self._stopping.set()
        self._end_processes()
        if self._stop_requests > 1:
            self._kill_later(_KILL_SECONDS)

    def _end_processes(self) -> None:
        for process in self._running:
            process.send_signal(signal.SIGTERM)
        if self._settings.options.stop_timeout:
            self._kill_later(self._settings.options.stop_timeout + _KILL_SECONDS)

    def _kill_later(self, seconds: float) -> None:
        """Kill the processes that run now, if they still do by then."""
        asyncio.get_running_loop().call_later(seconds, self._kill, set(self._running))

    def _kill(self, processes: set[PoolProcess]) -> None:
        for process in processes & self._running:
            _log.warning("worker process does not end, killing it: %d", process.pid)
            process.send_signal(signal.SIGKILL)

    async def _watch_files(self) -> None:
        assert self._files is not None
        while True:
            path = await self._files.change()
            _log.info("file changed, restarting: %s", path)
            for process in self._running:
                process.restarting = True
            self._end_processes()
            self._changed.set()
            self._changed.clear()
