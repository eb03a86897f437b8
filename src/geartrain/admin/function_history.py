"""Samples of single functions over the last hour, for the charts of a function's page.

Nothing is done per job: a sample is made from counters that the engine has anyway. Every function that has histograms
of its own (`Policy.measured_functions`) is sampled every 15 seconds, a part of them each second. A function takes about
15 kB.
"""

import array
import math
from typing import Final

from geartrain.admin.latency import LatencyWindow
from geartrain.admin.views import FunctionHistoryView, FunctionSample, Latency
from geartrain.engine.engine import Engine
from geartrain.engine.function import Function

INTERVAL: Final = 15  # seconds between two samples of a function
KEPT: Final = 3600 // INTERVAL  # samples: an hour
_WINDOW: Final = 60 // INTERVAL  # samples over which percentiles are computed: a minute
_NUMBERS: Final = len(FunctionSample.__struct_fields__) - 1  # of a sample, besides its time
_NONE: Final = Latency(None, None, None)
_NOT_MEASURED: Final = FunctionHistoryView(False, INTERVAL, [], _NONE, _NONE)


class _FunctionSamples:
    """A function and its samples."""

    def __init__(self, function: Function, now: float, turn: int) -> None:
        assert function.times is not None
        self.function = function
        self.turn = turn  # the second of the interval at which it is sampled
        self.wait = LatencyWindow(function.times.wait, _WINDOW)
        self.run = LatencyWindow(function.times.run, _WINDOW)
        self._at = now
        self._totals = self._read()
        self._times = array.array("d")
        self._numbers = array.array("f")  # `_NUMBERS` for each of `_times`; NaN: none

    def sample(self, now: float) -> None:
        seconds = max(now - self._at, 1.0)
        totals = self._read()
        rates = [max(after - before, 0) / seconds for before, after in zip(self._totals, totals, strict=True)]
        self._at, self._totals = now, totals
        self.wait.read()
        self.run.read()
        self._times.append(now)
        self._numbers.extend(rates)
        self._numbers.extend((self.function.queued, self.function.running))
        self._numbers.extend((*self.wait.last_interval(), *self.run.last_interval()))
        if len(self._times) > KEPT:
            del self._times[0]
            del self._numbers[:_NUMBERS]

    def samples(self, since: float) -> list[FunctionSample]:
        return [self._sample(place) for place, at in enumerate(self._times) if at > since]

    def _sample(self, place: int) -> FunctionSample:
        numbers = self._numbers[place * _NUMBERS : (place + 1) * _NUMBERS]
        submitted, completed, failed, queued, running, *times = numbers
        seconds = [None if math.isnan(number) else number for number in times]
        return FunctionSample(self._times[place], submitted, completed, failed, int(queued), int(running), *seconds)

    def _read(self) -> tuple[int, int, int]:
        return self.function.submitted, self.function.completed, self.function.failed


class FunctionHistory:
    """The samples of all measured functions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sampled: dict[bytes, _FunctionSamples] = {}
        self._second = 0

    def tick(self, now: float) -> None:
        """Sample the functions whose turn it is. Called once a second."""
        self._second = (self._second + 1) % INTERVAL
        measured = self._engine.measured
        for name, function in measured.items():
            sampled = self._sampled.get(name)
            if sampled is None or sampled.function is not function:  # new, or forgotten and used again
                turn = (self._second + len(self._sampled)) % INTERVAL
                self._sampled[name] = _FunctionSamples(function, now, turn)
            elif sampled.turn == self._second:
                sampled.sample(now)
        if len(self._sampled) > len(measured):
            self._sampled = {name: sampled for name, sampled in self._sampled.items() if name in measured}

    def view(self, function: Function, since: float) -> FunctionHistoryView:
        """The samples since a time, and the percentiles of the last minute."""
        sampled = self._sampled.get(function.name)
        if sampled is None or sampled.function is not function:
            return _NOT_MEASURED
        return FunctionHistoryView(
            True, INTERVAL, sampled.samples(since), sampled.wait.latency(), sampled.run.latency()
        )
