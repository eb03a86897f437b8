"""Processes that run plain functions for a worker: for work that keeps a processor busy, or that may crash.

Each belongs to one thread of the worker, which sends it one job at a time and passes on what it says. A process that
dies takes only its own job with it: the job fails, and the next one gets a new process. They are started afresh, not
forked, so functions must be importable: defined in a module, not inside another function.
"""

import contextlib
import multiprocessing
import pickle
import signal
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, Final

from geartrain.client import execution
from geartrain.client.job import Function, Job, Outcome

_SPAWN: Final[SpawnContext] = multiprocessing.get_context("spawn")
_JOIN_SECONDS: Final = 10.0


class InThread:
    """No process at all: the thread runs the function itself."""

    def perform(self, function: Function, job: Job) -> Outcome:
        """Run it."""
        return execution.execute(function, job)

    def close(self) -> None:
        """Nothing to end."""


class InProcess:
    """A process of a thread's own, started with its first job."""

    def __init__(self) -> None:
        self._process: SpawnProcess | None = None
        self._pipe: Connection[Any, Any] | None = None

    def perform(self, function: Function, job: Job) -> Outcome:
        """Run it there, and pass on what it says until it has ended."""
        try:
            task = pickle.dumps((function, job.payload, job._names, job._objection))
        except Exception as error:
            return Outcome(failure=f"{job.function!r} cannot be sent to a process: {error}")
        try:
            pipe = self._ready()
            pipe.send_bytes(task)
            while True:
                said = pipe.recv()
                if isinstance(said, Outcome):
                    return said
                job._tell(*said)
        except (OSError, EOFError):
            return Outcome(failure=f"the process that ran it died ({self._epitaph()})")

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

    def _ready(self) -> "Connection[Any, Any]":
        if self._pipe is None:
            ours, theirs = _SPAWN.Pipe()
            self._pipe = ours
            self._process = _SPAWN.Process(target=_serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        return self._pipe

    def _epitaph(self) -> str:
        process = self._process
        if process is None:
            return "it was stopped"
        process.join(_JOIN_SECONDS)
        code = process.exitcode
        self.close()
        return f"exit code {code}"


def _serve(pipe: "Connection[Any, Any]") -> None:
    """The process: one job after the other, until nobody is at the other end."""
    # Whoever stops the worker means the worker, which ends this process when its job is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def tell(verb: str, *said: Any) -> None:
        pipe.send((verb, *said))

    with pipe, contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(_performed(pipe.recv_bytes(), tell))


def _performed(task: bytes, tell: Any) -> Outcome:
    try:
        function, payload, names, objection = pickle.loads(task)
    except Exception as error:
        return execution.failed(error)
    return execution.execute(function, Job(payload, names, tell, objection))
