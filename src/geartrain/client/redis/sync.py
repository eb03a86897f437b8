"""Client and worker for programs without asyncio: the async ones, run by an event loop in a thread."""

import contextlib
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any, Self

from geartrain.client.loop_thread import LoopThread
from geartrain.client.redis import asynchronous, connection, worker_flow
from geartrain.client.redis.asynchronous import AsyncClient, AsyncWorker
from geartrain.client.redis.job import Job, Options
from geartrain.client.redis.worker_flow import TakenJob

_LONGEST_PAUSE = 5.0  # seconds between attempts to connect
_SIGNAL_CHECK = 0.2  # seconds until a signal is noticed during such a pause
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class SyncClosing:
    """Closes itself at the end of `with`."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Client(SyncClosing):
    """Submits jobs and reads their state. Threads may share it.

    with Client("gearmonkey://127.0.0.1:6379/0") as client:
        number = client.run("reverse", b"hello", options=OPT_BLOCKING, timeout=10)
        print(client.get("reverse", number).output)
    """

    def __init__(self, url: str) -> None:
        self._client = AsyncClient(url)
        self._loop = LoopThread()
        self._finalizer = weakref.finalize(self, _close, self._client, self._loop)

    def run(
        self,
        function: str,
        payload: bytes | str = b"",
        priority: str = "normal",
        options: Options = Options.NONE,
        timeout: float = 0.0,
        scheduled: float | None = None,
    ) -> int:
        """Submit a job and return its id; with OPT_BLOCKING, after it has finished.

        `timeout` is how many seconds to wait for that, 0 for no limit.
        """
        return self._loop.call(self._client.run(function, payload, priority, options, timeout, scheduled))

    def wait(self, function: str, number: int, timeout: float = 0.0) -> None:
        """Wait until a job has finished, at most `timeout` seconds; 0: without a limit."""
        self._loop.call(self._client.wait(function, number, timeout))

    def get(self, function: str, number: int) -> Job:
        """The state of a job."""
        return self._loop.call(self._client.get(function, number))

    def close(self) -> None:
        """Close all connections."""
        self._finalizer()


class Worker(SyncClosing):
    """Runs jobs, one at a time, in the thread that calls `run`. Pass a work function, or override `work`.

        worker = Worker("gearmonkey://127.0.0.1:6379/0", lambda payload: payload[::-1])
        worker.accept("reverse")
        worker.run()

    `lease` is how many seconds a dead worker's job, and the worker in the count of workers, outlive it on a real Redis.
    """

    def __init__(self, url: str, work: Callable[[bytes], Any] | None = None, lease: float = 30.0) -> None:
        self._work = work
        self._worker = AsyncWorker(url, self.work, lease)
        self._loop = LoopThread()
        self._stopping = threading.Event()
        self._signalled = False

    def accept(self, function: str) -> None:
        """Run jobs of this function as well."""
        self._loop.call(self._worker.accept(function))

    def work(self, payload: bytes) -> Any:
        """The work itself: returns the output, or raises."""
        if self._work is None:
            raise NotImplementedError("give the worker a work function")
        return self._work(payload)

    def update(self, dividend: float, divisor: float) -> None:
        """Report the progress of the current job; for the work function."""
        self._loop.call(self._worker.update(dividend, divisor))

    def run(self, signals: bool = True) -> None:
        """Run jobs until `stop`, SIGTERM or SIGINT, then finish the current one and unregister.

        A broken connection is opened again. `signals=False` leaves signals alone, as does a call outside the main
        thread. A second signal has the effect that it had before `run`.
        """
        pause = connection.FIRST_PAUSE
        with self._stopped_by_signals() if signals else contextlib.nullcontext():
            while not self._is_stopping:
                try:
                    self.run_one()
                    pause = connection.FIRST_PAUSE
                except connection.CONNECTION_ERRORS:
                    self._wait(pause)
                    pause = min(pause * 2, _LONGEST_PAUSE)
            self._loop.call(self._worker.unregister())

    def run_one(self, seconds: float = worker_flow.POP_SECONDS) -> bool:
        """Run the next job, if one arrives within this time; false if none did."""
        task = self._loop.call(self._worker.fetch(seconds))
        if task is None:
            return False
        self._loop.call(self._worker.finish(task, *self._ending(task)))
        return True

    def stop(self) -> None:
        """Let `run` return after the current job."""
        self._stopping.set()

    def close(self) -> None:
        """Unregister, and close all connections."""
        self.stop()
        self._loop.end(self._worker.close())

    @property
    def _is_stopping(self) -> bool:
        return self._signalled or self._stopping.is_set()

    def _wait(self, seconds: float) -> None:
        """Wait for so long, or until the worker is stopped."""
        deadline = time.monotonic() + seconds
        while not self._is_stopping and (left := deadline - time.monotonic()) > 0:
            self._stopping.wait(min(left, _SIGNAL_CHECK))

    @contextlib.contextmanager
    def _stopped_by_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in _SIGNALS}

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)

        def stop(number: int, frame: FrameType | None) -> None:
            # Nothing but a flag: the thread that is interrupted may hold the lock of `_stopping`.
            self._signalled = True
            restore()

        for number in _SIGNALS:
            signal.signal(number, stop)
        try:
            yield
        finally:
            restore()

    def _ending(self, task: TakenJob) -> tuple[str, Any]:
        try:
            return asynchronous.succeeded(self.work(task.input))
        except Exception as error:
            return asynchronous.failed(error)


def _close(client: AsyncClient, loop: LoopThread) -> None:
    loop.end(client.close())
