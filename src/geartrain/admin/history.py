"""Totals of the server, and a sample of them once a second for rates, charts and percentiles.

A sample reads only totals, so it costs some microseconds whatever the number of jobs and functions.
"""

import itertools
from collections import deque
from typing import Final, NamedTuple

from geartrain.admin import borrowed_jobs
from geartrain.admin.function_history import FunctionHistory
from geartrain.admin.latency import LatencyWindow
from geartrain.admin.views import Latency, Sample
from geartrain.engine.engine import Engine
from geartrain.engine.function import Function
from geartrain.engine.interfaces import Timer

KEPT: Final = 3600  # samples: an hour
_INTERVAL: Final = 1.0
_RATE_SECONDS: Final = 5
_WINDOW: Final = 60  # seconds of percentiles
_METER_EVERY: Final = 5  # samples between two readings of the histograms


class ServerCounts:
    """Totals over all functions, without those of built-in workers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def queued(self) -> int:
        """Without jobs of other servers, which count at their home."""
        others = borrowed_jobs.counts(self._engine).queued
        return self._engine.queued - others - sum(function.queued for function in self._builtin())

    @property
    def running(self) -> int:
        """Without jobs of other servers."""
        others = borrowed_jobs.counts(self._engine).running
        return self._engine.running - others - sum(function.running for function in self._builtin())

    @property
    def scheduled(self) -> int:
        return self._engine.scheduled - sum(function.scheduled for function in self._builtin())

    @property
    def blocked(self) -> int:
        return self._engine.blocked

    @property
    def submitted(self) -> int:
        return self._engine.submitted - sum(function.total for function in self._builtin())

    @property
    def completed(self) -> int:
        return self._engine.outcomes.done

    @property
    def failed(self) -> int:
        """Jobs that failed or died. A cancelled job is not a failure."""
        return self._engine.outcomes.failed + self._engine.outcomes.dead

    @property
    def functions(self) -> int:
        return len(self._engine.functions) - len(self._builtin())

    def _builtin(self) -> list[Function]:
        engine = self._engine
        return [engine.functions[name] for name in engine.builtin_workers if name in engine.functions]


class _Totals(NamedTuple):
    at: float
    submitted: int
    completed: int
    failed: int
    queued: int
    running: int


class History(Timer):
    """The samples of the last hour."""

    def __init__(self, engine: Engine, now: float, functions: FunctionHistory) -> None:
        super().__init__()
        self._engine = engine
        self._counts = ServerCounts(engine)
        self._functions = functions
        self._taken: deque[_Totals] = deque([self._totals(now)], maxlen=KEPT + 1)
        self._wait = LatencyWindow(engine.wait_times, _WINDOW // _METER_EVERY)
        self._run = LatencyWindow(engine.run_times, _WINDOW // _METER_EVERY)
        self._count = 0
        self.at = now + _INTERVAL

    def fire(self, now: float) -> None:
        """Take a sample if a second has passed. If the clock was moved back, the next second begins there."""
        if now >= self.at:
            self._taken.append(self._totals(now))
            self._functions.tick(now)
            self._count += 1
            if not self._count % _METER_EVERY:
                self._wait.read()
                self._run.read()
        elif now > self.at - 2 * _INTERVAL:
            return
        self.at = now + _INTERVAL

    def rates(self, now: float) -> tuple[float, float]:
        """Jobs submitted and completed per second, over the last few seconds."""
        then = self._taken[max(len(self._taken) - _RATE_SECONDS, 0)]
        seconds = max(now - then.at, _INTERVAL)
        totals = self._totals(now)
        return (totals.submitted - then.submitted) / seconds, (totals.completed - then.completed) / seconds

    def history(self, seconds: int) -> list[Sample]:
        """The samples of the last `seconds`, oldest first."""
        taken = list(self._taken)[-(max(seconds, 0) + 1) :]
        return [_between(before, after) for before, after in itertools.pairwise(taken)]

    def wait(self) -> Latency:
        """From ready to run until claimed by a worker, over the last minute."""
        return self._wait.latency()

    def run(self) -> Latency:
        """From claimed until ended, over the last minute."""
        return self._run.latency()

    def _totals(self, now: float) -> _Totals:
        counts = self._counts
        return _Totals(now, counts.submitted, counts.completed, counts.failed, counts.queued, counts.running)


def _between(before: _Totals, after: _Totals) -> Sample:
    seconds = max(after.at - before.at, 0.001)
    return Sample(
        after.at, (after.submitted - before.submitted) / seconds, (after.completed - before.completed) / seconds,
        (after.failed - before.failed) / seconds, after.queued, after.running,
    )  # fmt: skip
