"""The functions by name: how they come into being, how many there may be, and when they are forgotten.

Whoever submits a job, offers a function or pauses one creates it. A function that has no jobs, dead ones included, no
workers, no pause, no limit and no settings of its own, and that no schedule names, is unused. Unused functions are
forgotten after a while (`idle_functions.py`), and at once if another one needs the room.
"""

from typing import Final

from geartrain.engine import names
from geartrain.engine.counters import JobTimes
from geartrain.engine.function import Function
from geartrain.engine.policy import FunctionPolicy, Policy
from geartrain.engine.worker import BuiltinWorker
from geartrain.errors import LimitError

_MAKE_ROOM_SECONDS: Final = 1.0  # between two searches for unused functions, which visit every function
_FORGOTTEN: Final = b"\0"  # no function has this name


class FunctionTable:
    """The functions; the base of the engine's state."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.now = 0.0  # time of the current tick; the caller sets it before it calls a verb
        self.functions: dict[bytes, Function] = {}
        self.dead_counts: dict[bytes, int] = {}  # dead jobs by function
        self.builtin_workers: dict[bytes, BuiltinWorker] = {}  # by function
        self.kept_functions: dict[bytes, int] = {}  # how many schedules name a function; those are never unused
        self.function_policies: dict[bytes, FunctionPolicy] = {}  # of the functions that have settings of their own
        self.forgotten = Function(_FORGOTTEN)  # has the counters of all functions that were forgotten or dropped
        self.last_function: Function | None = None  # to which the last job was submitted; the next one often is, too
        self.measured: dict[bytes, Function] = {}  # those that have `times` of their own
        self.other_times = JobTimes(shared=True)  # of all other functions
        self._builtin_times = JobTimes(shared=True)  # of built-in workers, which nobody asks for
        self._room_made_at = 0.0

    def function(self, name: bytes) -> Function:
        """Return the function of that name; create it if it does not exist, or raise RequestError."""
        function = self.functions.get(name)
        if function is None:
            self.check_function(name)
            function = self._create_function(name)
        return function

    def check_function(self, name: bytes) -> None:
        """Raise RequestError if the function does not exist and cannot be created."""
        if name in self.functions or name in self.builtin_workers:
            return
        names.check_function(name)
        most = self.policy.max_functions
        if len(self.functions) >= most:
            self._make_room()
            if len(self.functions) >= most:
                raise LimitError(f"there are {len(self.functions)} functions; max_functions allows no more")

    def kept_function(self, name: bytes) -> Function:
        """Return the function of that name; create it whatever its name if it does not exist.

        For jobs and settings that were accepted before, perhaps by a server with other limits.
        """
        function = self.functions.get(name)
        return function if function is not None else self._create_function(name)

    def worker_count(self, name: bytes) -> int:
        """How many workers offer a function; a built-in worker counts even while the function does not exist."""
        function = self.functions.get(name)
        count = function.workers if function is not None else 0
        return max(count, 1) if name in self.builtin_workers else count

    def is_unused(self, function: Function) -> bool:
        """Whether nothing is lost with a function but its counters."""
        if function.workers or function.total or function.paused or function.has_limits:
            return False
        name = function.name
        return not (
            name in self.dead_counts
            or name in self.kept_functions
            or name in self.function_policies
            or name in self.builtin_workers
        )

    def forget(self, function: Function) -> None:
        """Remove a function that has neither workers nor jobs. Its counters are added to those of `forgotten`."""
        del self.functions[function.name]
        if function is self.last_function:
            self.last_function = None
        function.flow = None
        self.function_policies.pop(function.name, None)
        if self.measured.pop(function.name, None) is not None and function.times is not None:
            self.other_times.wait.add_all(function.times.wait)
            self.other_times.run.add_all(function.times.run)
        if function.name not in self.builtin_workers:
            self.forgotten.outcomes.add(function.outcomes)
            self.forgotten.restored_or_retried += function.restored_or_retried
            self.forgotten.retries += function.retries

    def measure(self, function: Function) -> JobTimes:
        """Give a function its histograms, or the shared ones if enough functions have their own."""
        if function.name in self.builtin_workers:
            function.times = self._builtin_times
        elif len(self.measured) < self.policy.measured_functions:
            self.measured[function.name] = function
            function.times = JobTimes()
        else:
            function.times = self.other_times
        return function.times

    def _create_function(self, name: bytes) -> Function:
        function = self.functions[name] = Function(name)
        if name in self.builtin_workers:
            self.builtin_workers[name].activate()
        return function

    def _make_room(self) -> None:
        """Forget every unused function, unless functions are kept for ever or this was done just now."""
        if not self.policy.forget_functions_after or 0.0 <= self.now - self._room_made_at < _MAKE_ROOM_SECONDS:
            return
        self._room_made_at = self.now
        for function in list(self.functions.values()):
            if self.is_unused(function):
                self.forget(function)
