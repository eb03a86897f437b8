"""Processes that run plain functions for a worker: for work that keeps a processor busy, or that may crash.

Each belongs to one thread of the worker, which sends it one job at a time and passes on its reports. When a process
dies, only the job that it ran fails, and the next job gets a new process. The process of a job that was cancelled is
killed. Processes are spawned, not forked, so
functions must be importable: defined in a module, not inside another function.
"""

import contextlib
import multiprocessing
import pickle
import signal
import threading
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, Final

from geartrain.client import execution
from geartrain.client.execution import JobOutcome
from geartrain.client.job import Function, Job, Reporter

_SPAWN: Final[SpawnContext] = multiprocessing.get_context("spawn")
_JOIN_SECONDS: Final = 10.0


class InProcess:
    """Runs functions in a process of its own, started with the first job."""

    def __init__(self) -> None:
        self._process: SpawnProcess | None = None
        self._job: Job | None = None  # that it runs
        self._lock = threading.Lock()  # for `_job`: it must not change between a look at it and the end of the process
        self._pipe: Connection[Any, Any] | None = None

    def execute(self, function: Function, job: Job) -> JobOutcome:
        """Run a function in the process, and pass on its reports until it has ended."""
        try:
            task = pickle.dumps((function, job.details))
        except Exception as error:
            return JobOutcome(failure=f"{job.function!r} cannot be sent to a process: {error}")
        try:
            pipe = self._started()
            with self._lock:
                if job.revoked:
                    return JobOutcome()
                self._job = job
            try:
                return _exchange(pipe, task, job)
            finally:
                with self._lock:
                    self._job = None
        except (OSError, EOFError):
            return JobOutcome(failure=f"the process that ran it died ({self._exit_text()})")

    def stop(self, job: Job) -> None:
        """Kill the process if it runs this job; the next job gets a new one."""
        with self._lock:
            if self._job is job and self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """End the process, at once if it is busy."""
        pipe, self._pipe = self._pipe, None
        process, self._process = self._process, None
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
        if process is not None:
            process.kill()
            process.join(_JOIN_SECONDS)

    def _started(self) -> "Connection[Any, Any]":
        if self._pipe is None:
            ours, theirs = _SPAWN.Pipe()
            self._pipe = ours
            self._process = _SPAWN.Process(target=_serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        return self._pipe

    def _exit_text(self) -> str:
        process = self._process
        if process is None:
            return "it was stopped"
        process.join(_JOIN_SECONDS)
        code = process.exitcode
        self.close()
        return f"exit code {code}"


def _exchange(pipe: "Connection[Any, Any]", task: bytes, job: Job) -> JobOutcome:
    """Have the process run a task, and pass on its reports until it has ended."""
    pipe.send_bytes(task)
    while True:
        message = pipe.recv()
        if isinstance(message, JobOutcome):
            return message
        job.report(*message)


def _serve(pipe: "Connection[Any, Any]") -> None:
    """The process's main function: run one job after the other, until the pipe is closed."""
    # A signal to the process group is for the worker, which ends this process when its job is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def report(kind: str, *values: Any) -> None:
        pipe.send((kind, *values))

    with pipe, contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(_outcome(pipe.recv_bytes(), report))


def _outcome(task: bytes, report: Reporter) -> JobOutcome:
    try:
        function, details = pickle.loads(task)
    except Exception as error:
        return execution.failed(error)
    return execution.execute(function, Job(details, report))
