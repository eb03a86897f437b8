"""Limits of a task: how many of its jobs run at once, and how often one starts, over all workers.

They are declared beside the task and kept by the server: a worker tells each server the limits of its tasks when it
starts. What an operator has set with `geartrain limit` counts instead.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from geartrain import jsonbytes
from geartrain.app.server_control import ServerControl
from geartrain.errors import AdminError
from geartrain.rates import MOST, Rate

if TYPE_CHECKING:
    from geartrain.app.task import Task

_LONGEST_SEPARATOR: Final = 16  # characters

_log = logging.getLogger("geartrain.app")


class TaskLimits(NamedTuple):
    """What the code of a task allows; None: nothing is said about it. The server's verb has the same arguments."""

    max_running: int | None = None  # 0: no limit
    max_running_per_partition: int | None = None  # 0: no limit
    rate: str | None = None
    burst: int | None = None
    rate_per_partition: str | None = None
    burst_per_partition: int | None = None
    partition_from_unique: str | None = None

    @property
    def start_rate(self) -> Rate | None:
        """How often a job may start."""
        return None if self.rate is None else Rate.parse(self.rate, self.burst or 1)

    @property
    def partition_rate(self) -> Rate | None:
        """How often a job of a partition may start."""
        return (
            None
            if self.rate_per_partition is None
            else Rate.parse(self.rate_per_partition, self.burst_per_partition or 1)
        )

    def arguments(self) -> dict[str, Any]:
        """Those that are said."""
        return {name: value for name, value in self._asdict().items() if value is not None}


NO_LIMITS: Final = TaskLimits()


def check(limits: TaskLimits) -> None:
    """Raise ValueError for limits that no server accepts, when they are declared rather than when a worker starts.

    >>> check(TaskLimits(rate="5 per minute"))
    Traceback (most recent call last):
    ...
    ValueError: rate: '5 per minute' is not a rate such as 5/s, 100/m, 1000/h or 10/d
    >>> check(TaskLimits(burst=5))
    Traceback (most recent call last):
    ...
    ValueError: burst needs a rate
    """
    for name in ("max_running", "max_running_per_partition"):
        _check_number(name, getattr(limits, name), 0)
    for suffix in ("", "_per_partition"):
        rate, burst = getattr(limits, f"rate{suffix}"), getattr(limits, f"burst{suffix}")
        _check_number(f"burst{suffix}", burst, 1)
        if rate is not None:
            _check_rate(f"rate{suffix}", rate)
        elif burst is not None:
            raise ValueError(f"burst{suffix} needs a rate{suffix}")
    separator = limits.partition_from_unique
    if separator is not None and not (isinstance(separator, str) and 1 <= len(separator) <= _LONGEST_SEPARATOR):
        raise ValueError(
            f"partition_from_unique is what ends a partition in a unique key, 1 to {_LONGEST_SEPARATOR} characters, "
            f"not {separator!r}"
        )


def _check_number(name: str, number: object, least: int) -> None:
    if number is None:
        return
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= MOST:
        raise ValueError(f"{name} must be {least} to {MOST:,}, not {number!r}")


def _check_rate(name: str, rate: object) -> None:
    if not isinstance(rate, str):
        raise ValueError(f"{name} is a text such as 100/m, not {rate!r}")
    try:
        Rate.parse(rate)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def are_declared(tasks: Sequence["Task[Any, Any]"]) -> bool:
    """Whether a worker of these tasks has limits to declare."""
    return any(task.limits.arguments() for task in tasks)


async def declare(tasks: Sequence["Task[Any, Any]"], control: ServerControl) -> None:
    """Tell a server the limits of these tasks.

    If any of them has limits, all are declared: those of a task that has none any more are removed.
    """
    if are_declared(tasks):
        for task in tasks:
            function = jsonbytes.encode(task.function_name)
            await control.ask("declare_limits", function=function, **task.limits.arguments())


def warn_refused(tasks: Sequence["Task[Any, Any]"], url: str, app: str, error: AdminError) -> None:
    """A server of an older version, or a user who may not work: the worker goes on without its limits."""
    if are_declared(tasks):
        _log.warning("server refused limits: %s, app %s: %s", url, app, error)


def warn_unknown(tasks: Sequence["Task[Any, Any]"], url: str, app: str) -> None:
    """The server is not a Geartrain."""
    if are_declared(tasks):
        _log.warning("server has no limits: %s; those of app %s do not hold there", url, app)
