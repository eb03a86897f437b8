"""Client and worker for programs without asyncio."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from geartrain.client.redis import blocking_pops, client_flow, connection, job, worker_flow
from geartrain.client.redis.flow import BrokenError, Command, Flow, Moves, Request
from geartrain.client.redis.job import Job, Options
from geartrain.client.redis.worker_flow import Task
from geartrain.errors import ClientError

T = TypeVar("T")


class RedisConnection:
    """A connection that carries out flows."""

    def __init__(self, url: str, single: bool = False) -> None:
        connection.settings(url)  # a wrong address is told at once
        self._url = url
        self._single = single
        self.breaks = 0  # how often the connection broke
        self._made: Any = None  # redis-py connects when a single connection is made, which is too early
        self._pops = blocking_pops.BlockingPops(url, self._let_go)

    @property
    def _redis(self) -> Any:
        if self._made is None:
            self._made = connection.connect(self._url, self._single)
        return self._made

    def carry_out(self, flow: Flow[T]) -> T:
        """Do everything that a flow wants done."""
        act: Callable[..., Request] = flow.send
        value: Any = None
        while True:
            try:
                request = act(value)
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                act, value = flow.send, self._perform(request)
            except Exception as error:
                act, value = flow.throw, connection.translated(error, request)

    def close(self) -> None:
        """Hang up."""
        self._pops.close()
        if self._made is not None:
            self._made.close()

    def _perform(self, request: Request) -> Any:
        pause = connection.FIRST_PAUSE
        for tries in range(connection.TRIES, 0, -1):
            try:
                return self._pops.wait(request) if isinstance(request, Moves) else self._send(request)
            except connection.CONNECTION_ERRORS:
                self.breaks += 1
                if not request.repeatable or tries == 1:
                    raise
            time.sleep(pause)
            pause *= 2
        raise AssertionError("unreachable")

    def _send(self, command: Command) -> Any:
        if len(command.words) == 1:
            return self._redis.execute_command(*command.words[0])
        with self._redis.pipeline(transaction=True) as pipeline:
            for words in command.words:
                pipeline.execute_command(*words)
            return pipeline.execute()

    def _let_go(self, ids: Sequence[int]) -> None:
        with contextlib.suppress(*connection.CONNECTION_ERRORS):  # then the waits end by themselves
            for id in ids:
                self._redis.execute_command("CLIENT", "UNBLOCK", id)


class _Closing:
    """Works with `with`."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Client(_Closing):
    """Submits jobs and asks what came of them. Threads may share it."""

    def __init__(self, url: str) -> None:
        self._connection = RedisConnection(url)

    def run(
        self,
        function: str,
        payload: bytes | str = b"",
        priority: str = "normal",
        options: Options = Options.NONE,
        timeout: float = 0.0,
        scheduled: float | None = None,
    ) -> int:
        """Submit a job; returns its id. With OPT_BLOCKING, when it is finished: `timeout` seconds, 0 for ever."""
        number = self._connection.carry_out(client_flow.submit(function, payload, priority, options, scheduled))
        if Options.BLOCKING in options:
            self._connection.carry_out(client_flow.wait(function, number, timeout))
        return number

    def get(self, function: str, number: int) -> Job:
        """The state of a job."""
        return self._connection.carry_out(client_flow.get(function, number))

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


class Worker(_Closing):
    """Runs jobs, one at a time. Give it a work function, or make a subclass that has one.

    `lease` is how many seconds a dead worker's job and its place in the count outlive it on a real Redis.
    """

    def __init__(self, url: str, work: Callable[[bytes], Any] | None = None, lease: float = 30.0) -> None:
        self._url = url
        self._work = work
        self._duties = worker_flow.Duties(lease)
        self._connection = RedisConnection(url, single=True)
        self._started = False
        self._breaks = 0  # of the line when it started
        self._stopping = threading.Event()
        self._carer: threading.Thread | None = None
        self._task: Task | None = None  # what it is at

    def accept(self, function: str) -> None:
        """Run jobs of this function as well."""
        if function not in self._duties.functions:
            self._duties.functions.append(function)
            if self._started:
                self._connection.carry_out(self._duties.register(function))

    def work(self, payload: bytes) -> Any:
        """The work itself: returns the output, or raises."""
        if self._work is None:
            raise NotImplementedError("give the worker a work function")
        return self._work(payload)

    def update(self, dividend: float, divisor: float) -> None:
        """Say how far the current job is; for the work function."""
        if self._task is None:
            raise ClientError("there is no job to report on")
        self._connection.carry_out(self._duties.update(self._task, dividend, divisor))

    def run(self) -> None:
        """Run jobs until `stop` is called, by another thread or a signal; connections that break are made anew."""
        pause = connection.FIRST_PAUSE
        while not self._stopping.is_set():
            try:
                self.run_one()
                pause = connection.FIRST_PAUSE
            except (BrokenError, *connection.CONNECTION_ERRORS):
                self._started = False
                self._stopping.wait(pause)
                pause = min(pause * 2, 5.0)

    def run_one(self, seconds: float = worker_flow.POP_SECONDS) -> bool:
        """Run the next job if one comes within so long; whether one came."""
        self._start()
        self._task = task = self._connection.carry_out(self._duties.next(seconds))
        if task is None:
            return False
        status, output = self._outcome(task)
        self._task = None
        self._connection.carry_out(self._duties.finish(task, status, output))
        return True

    def stop(self) -> None:
        """Let `run` return after the current job."""
        self._stopping.set()

    def close(self) -> None:
        """Be counted no more, and hang up."""
        self.stop()
        if self._carer is not None:
            self._carer.join()
            self._carer = None
        if self._started:
            self._started = False
            try:
                self._connection.carry_out(self._duties.stop())
            except (BrokenError, *connection.CONNECTION_ERRORS):
                pass  # the others will notice
        self._connection.close()

    def _outcome(self, task: Task) -> tuple[str, Any]:
        try:
            return "success", job.output_of(self.work(task.input))
        except Exception as error:
            return "error", str(error) or type(error).__name__

    def _start(self) -> None:
        if not self._started or self._connection.breaks != self._breaks:
            self._breaks = self._connection.breaks
            self._connection.carry_out(self._duties.start())
            self._started = True
        if self._carer is None and self._duties.needs_care:
            self._connection.carry_out(self._duties.care())
            self._carer = threading.Thread(target=self._care, name="gearmonkey-care", daemon=True)
            self._carer.start()

    def _care(self) -> None:
        """Renew leases while the work function works, on a connection of its own."""
        line = RedisConnection(self._url)
        while not self._stopping.wait(self._duties.lease / 3):
            try:
                line.carry_out(self._duties.care())
            except Exception:
                continue  # Redis may be away for a while; the lease tells how long that may be
        line.close()
