"""Verbs on functions, and what operators set for them: pauses, limits and settings, which survive a restart.

A limit that a Gearman client sets with `maxqueue` is not saved: as with every Gearman server, it ends with the server.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from geartrain.admin import borrowed_jobs, presentation, running_limits, verbs, views
from geartrain.admin.authorization import may_read
from geartrain.admin.base import AdminBase, page_limit, printable
from geartrain.admin.borrowed_jobs import NONE, BorrowedCounts
from geartrain.admin.function_history import FunctionHistory
from geartrain.admin.loop_break import convert, page_of, select
from geartrain.admin.saved_values import SavedValues, SaveValue
from geartrain.admin.views import FunctionOptions, RunningLimits
from geartrain.engine.engine import Engine
from geartrain.engine.function import UNLIMITED, Function
from geartrain.engine.policy import FunctionPolicy
from geartrain.errors import AdminError
from geartrain.job_query import page_position
from geartrain.runtime.value_feed import ValueFeed

_NO_LIMITS: Final = (UNLIMITED, UNLIMITED, UNLIMITED)


class _Setting(msgspec.Struct, frozen=True):
    function: bytes
    paused: bool = False
    limits: tuple[int, int, int] = _NO_LIMITS
    options: FunctionOptions = FunctionOptions()
    running_limits: RunningLimits = RunningLimits()  # that an operator has set
    code_limits: RunningLimits = RunningLimits()  # what the code of the task says

    @property
    def policy(self) -> FunctionPolicy:
        """What the engine gets."""
        limits = running_limits.merged(self.running_limits, self.code_limits)
        return presentation.function_policy(self.options, limits)


class FunctionSettings:
    """Pauses, limits and settings by function. Those of the last run of the server are applied when this is created."""

    def __init__(self, engine: Engine, saved: Mapping[str, bytes], save: SaveValue, values: ValueFeed) -> None:
        self._engine = engine
        self._saved = SavedValues("order", saved, save, is_shared=values.is_shared)
        self._settings: dict[bytes, _Setting] = {}
        for slot, value in self._saved.values():
            self._load(slot, value)
        values.subscribe(self._values_changed)

    def _load(self, slot: str, value: bytes) -> None:
        try:
            setting = msgspec.json.decode(value, type=_Setting)
        except msgspec.MsgspecError:
            return  # written by another version: left as it is
        self._saved.assign(_key(setting.function), slot)
        self._use(setting)

    def _values_changed(self, values: Mapping[str, bytes]) -> None:
        """Another server has changed settings of functions."""
        for slot, value in self._saved.changes(values):
            if value:
                self._load(slot, value)
            elif (name := self._saved.name_of(slot)) is not None:
                self._use(_Setting(name.encode("latin-1")))

    def _use(self, setting: _Setting) -> None:
        """Apply settings that were saved, in place of those that the function has."""
        old = self._setting(setting.function)
        if setting == _Setting(setting.function):
            self._settings.pop(setting.function, None)
        else:
            self._settings[setting.function] = setting
        self._apply(setting, old)

    def pause(self, function: bytes, paused: bool) -> None:
        """Pause or resume a function."""
        if paused:
            self._engine.pause(function)
        else:
            self._engine.resume(function)
        self._save(msgspec.structs.replace(self._setting(function), paused=paused))

    def limit(self, function: bytes, high: int, normal: int, low: int) -> None:
        """Limit the number of jobs of a function, by priority; 0 is no limit."""
        self._engine.limit(function, high, normal, low)
        self._save(msgspec.structs.replace(self._setting(function), limits=(high, normal, low)))

    def configure(self, function: bytes, changes: dict[str, str | float | None]) -> None:
        """Change some settings of a function; None is the server's setting again."""
        setting = self._setting(function)
        self._configure(msgspec.structs.replace(setting, options=msgspec.structs.replace(setting.options, **changes)))

    def limit_running(self, function: bytes, changes: dict[str, running_limits.Value]) -> None:
        """Change some limits of the running jobs of a function; None is what its code says."""
        setting = self._setting(function)
        limits = msgspec.structs.replace(setting.running_limits, **changes)
        running_limits.check(running_limits.merged(limits, setting.code_limits))
        self._configure(msgspec.structs.replace(setting, running_limits=limits))

    def declare_limits(self, function: bytes, limits: dict[str, running_limits.Value]) -> bool:
        """Replace what the code of a task says about its running jobs; return whether that has changed."""
        setting = self._setting(function)
        declared = RunningLimits(**limits)  # type: ignore[arg-type]
        running_limits.check(declared)
        if declared == setting.code_limits:
            return False
        self._configure(msgspec.structs.replace(setting, code_limits=declared))
        return True

    def limits_of(self, function: bytes) -> tuple[RunningLimits, list[str]]:
        """The limits of the running jobs of a function, and the names of those that an operator has set."""
        setting = self._setting(function)
        limits = running_limits.merged(setting.running_limits, setting.code_limits)
        return limits, running_limits.names(setting.running_limits)

    def _configure(self, setting: _Setting) -> None:
        self._engine.configure(setting.function, setting.policy)
        self._save(setting)

    def load(self, slot: str, value: bytes, replace: bool) -> tuple[bool, bool]:
        """Load what a dump has about a function; whether it was loaded, and whether there was something."""
        try:
            setting = msgspec.json.decode(value, type=_Setting)
        except msgspec.MsgspecError as error:
            raise AdminError("bad-request", f"not the settings of a function: {error}") from None
        was_there = setting.function in self._settings
        if was_there and (not replace or self._settings[setting.function] == setting):
            return False, True
        self._use(setting)
        self._saved.put(_key(setting.function), msgspec.json.encode(setting), slot)
        return True, was_there

    def forget(self, function: bytes) -> None:
        """Delete the settings of a function."""
        if self._settings.pop(function, None) is not None:
            self._saved.remove(_key(function))

    def _setting(self, function: bytes) -> _Setting:
        return self._settings.get(function) or _Setting(function)

    def _save(self, setting: _Setting) -> None:
        if setting == _Setting(setting.function):
            self.forget(setting.function)
        else:
            self._settings[setting.function] = setting
            self._saved.put(_key(setting.function), msgspec.json.encode(setting))

    def _apply(self, setting: _Setting, old: _Setting) -> None:
        self._engine.kept_function(setting.function)
        if setting.paused != old.paused:
            change = self._engine.pause if setting.paused else self._engine.resume
            change(setting.function)
        if setting.limits != old.limits:
            self._engine.limit(setting.function, *setting.limits)
        if setting.policy != old.policy:
            self._engine.configure(setting.function, setting.policy)


def _key(function: bytes) -> str:
    return function.decode("latin-1")


class FunctionVerbs(AdminBase):
    """List, show, pause, resume, limit, configure and drop functions."""

    _settings: FunctionSettings
    _function_history: FunctionHistory

    async def functions(
        self, search: str = "", sort: str = "name", limit: int = 100, after: str = ""
    ) -> views.Page[views.FunctionView]:
        """The functions with `search` in their names. Numbers are sorted in descending order, names ascending."""
        if sort not in verbs.SORTS:
            raise AdminError("bad-request", f"unknown sort order {sort!r}; the orders are {', '.join(verbs.SORTS)}")
        start, limit = page_position(after), page_limit(limit)
        functions = await self._matching(search)
        page = await page_of(functions, lambda function: _sort_key(function, sort), start, start + limit)
        more = len(functions) > start + limit
        return views.Page(await self._function_views(page), str(start + limit) if more else "", len(functions))

    async def all_functions(self, search: str = "") -> list[views.FunctionView]:
        """What `functions` has on all its pages, in no order, for the pages of a cluster."""
        return await self._function_views(await self._matching(search))

    async def _matching(self, search: str) -> list[Function]:
        text = search.encode()

        def matches(function: Function) -> bool:
            return text in function.name and not self._is_builtin(function.name) and may_read(function.name)

        return await select(list(self._engine.functions.values()), matches)

    async def _function_views(self, functions: Sequence[Function]) -> list[views.FunctionView]:
        borrowed = borrowed_jobs.by_function(self._engine)
        return await convert(functions, lambda function: self._function_view(function, borrowed))

    def _function_view(self, function: Function, borrowed: Mapping[bytes, BorrowedCounts]) -> views.FunctionView:
        limits = self._settings.limits_of(function.name)
        return presentation.function_view(self._engine, function, limits, borrowed.get(function.name, NONE))

    def function(self, name: bytes) -> views.FunctionView:
        """One function."""
        return self._function_view(self._function(name), borrowed_jobs.by_function(self._engine))

    def function_history(self, name: bytes, seconds: int = 3600) -> views.FunctionHistoryView:
        """The last hour of a function, and its latencies."""
        if seconds < 1:
            raise AdminError("bad-request", f"seconds must be at least 1: {seconds}")
        return self._function_history.view(self._function(name), self._engine.now - seconds)

    def pause(self, function: bytes) -> None:
        """Stop handing out jobs of a function until it is resumed."""
        self._begin_change(function)
        self._settings.pause(function, True)

    def resume(self, function: bytes) -> None:
        """Hand out jobs of a paused function again."""
        self._begin_change(function)
        self._function(function)
        self._settings.pause(function, False)

    def limit(self, function: bytes, high: int = 0, normal: int = 0, low: int = 0) -> None:
        """Refuse a job if the function has this many already, by the priority of the job; 0 is no limit."""
        if min(high, normal, low) < 0:
            raise AdminError("bad-request", "a limit must not be negative")
        self._begin_change(function)
        self._settings.limit(function, high, normal, low)

    def configure(
        self,
        function: bytes,
        failures: str | None = None,
        keep_for: float | None = None,
        keep_failed_for: float | None = None,
        max_run: float | None = None,
    ) -> None:
        """Change settings of a function. None leaves one as it is; `default`, or -1, is the server's setting again."""
        changes: dict[str, str | float | None] = {}
        if failures is not None:
            if failures not in verbs.FAILURES:
                words = ", ".join(verbs.FAILURES)
                raise AdminError("bad-request", f"unknown value {failures!r} of failures; it is one of {words}")
            changes["failures"] = None if failures == verbs.DEFAULT else failures
        for name, seconds in (("keep_for", keep_for), ("keep_failed_for", keep_failed_for), ("max_run", max_run)):
            if seconds is not None:
                changes[name] = _seconds(name, seconds)
        self._begin_change(function)
        self._settings.configure(function, changes)

    def limit_running(
        self,
        function: bytes,
        max_running: int | None = None,
        max_running_per_partition: int | None = None,
        rate: str | None = None,
        burst: int | None = None,
        rate_per_partition: str | None = None,
        burst_per_partition: int | None = None,
        partition_from_unique: str | None = None,
    ) -> None:
        """Limit the running jobs of a function. None leaves one as it is; `default`, or -1, is what its code says."""
        changes = running_limits.parsed(
            {
                "max_running": max_running,
                "max_running_per_partition": max_running_per_partition,
                "rate": rate,
                "burst": burst,
                "rate_per_partition": rate_per_partition,
                "burst_per_partition": burst_per_partition,
                "partition_from_unique": partition_from_unique,
            }
        )
        self._begin_change(function)
        self._settings.limit_running(function, changes)

    def declare_limits(
        self,
        function: bytes,
        max_running: int | None = None,
        max_running_per_partition: int | None = None,
        rate: str | None = None,
        burst: int | None = None,
        rate_per_partition: str | None = None,
        burst_per_partition: int | None = None,
        partition_from_unique: str | None = None,
    ) -> None:
        """Say what the code of a task allows, for workers; None is no limit."""
        limits = running_limits.parsed(
            {
                "max_running": max_running,
                "max_running_per_partition": max_running_per_partition,
                "rate": rate,
                "burst": burst,
                "rate_per_partition": rate_per_partition,
                "burst_per_partition": burst_per_partition,
                "partition_from_unique": partition_from_unique,
            }
        )
        self._begin_change(function)
        self._settings.declare_limits(function, limits)

    def drop(self, function: bytes) -> None:
        """Delete a function that has neither workers nor jobs, with its settings."""
        self._begin_change(function)
        self._function(function)
        if not self._engine.drop(function):
            raise AdminError("conflict", f"function {printable(function)} has workers or jobs")
        self._settings.forget(function)

    def _function(self, name: bytes) -> Function:
        function = self._engine.functions.get(name)
        if function is None:
            raise AdminError("not-found", f"no function {printable(name)}")
        return function


def _seconds(name: str, seconds: float) -> float | None:
    if seconds == verbs.DEFAULT_SECONDS:
        return None
    if not 0.0 <= seconds <= verbs.LONGEST_SECONDS:
        raise AdminError("bad-request", f"{name} must be 0 to {verbs.LONGEST_SECONDS:,} seconds, or -1: {seconds}")
    return seconds


def _sort_key(function: Function, sort: str) -> tuple[float, bytes]:
    if sort == "oldest":
        return (function.oldest_ready_at() or float("inf"), function.name)
    if sort == "name":
        return (0.0, function.name)
    return (-getattr(function, sort), function.name)
