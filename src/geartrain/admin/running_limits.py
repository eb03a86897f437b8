"""How many jobs of a function may run: what operators say, what the code of a task says, and what the engine gets.

What an operator has set counts instead of what code says, one by one.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from geartrain.admin.verbs.row import DEFAULT, DEFAULT_NUMBER, NO_LIMIT
from geartrain.admin.views import RunningLimits
from geartrain.engine.limits import FlowLimits
from geartrain.errors import AdminError
from geartrain.rates import MOST, Rate

Value = str | int | None
_LONGEST_SEPARATOR: Final = 16


def parsed(values: Mapping[str, Value]) -> dict[str, Value]:
    """The limits among the arguments of a verb, checked; one that is None there is left out, and a default is None."""
    return {name: _CHECKS[name](name, value) for name, value in values.items() if value is not None}


def check(limits: RunningLimits) -> None:
    """Raise AdminError if limits cannot be kept together."""
    for burst, rate in (("burst", limits.rate), ("burst_per_partition", limits.rate_per_partition)):
        if getattr(limits, burst) is not None and (rate is None or rate == NO_LIMIT):
            raise AdminError("bad-request", f"{burst} needs a {burst.replace('burst', 'rate')}")


def merged(operator: RunningLimits, code: RunningLimits) -> RunningLimits:
    """What counts of both."""
    return msgspec.structs.replace(code, **{name: getattr(operator, name) for name in names(operator)})


def names(limits: RunningLimits) -> list[str]:
    """Those that are set."""
    return [name for name in RunningLimits.__struct_fields__ if getattr(limits, name) is not None]


def engine_limits(limits: RunningLimits) -> FlowLimits:
    """The same for the engine."""
    separator = limits.partition_from_unique or NO_LIMIT
    return FlowLimits(
        limits.max_running or 0,
        limits.max_running_per_partition or 0,
        _rate(limits.rate, limits.burst),
        _rate(limits.rate_per_partition, limits.burst_per_partition),
        b"" if separator == NO_LIMIT else separator.encode(),
    )


def _rate(text: str | None, burst: int | None) -> Rate | None:
    return None if text is None or text == NO_LIMIT else Rate.parse(text, burst or 1)


def _number(name: str, value: Value) -> int | None:
    if not isinstance(value, int) or not DEFAULT_NUMBER <= value <= MOST:
        raise AdminError("bad-request", f"{name} must be 0 to {MOST:,}, or {DEFAULT_NUMBER}: {value}")
    return None if value == DEFAULT_NUMBER else value


def _burst(name: str, value: Value) -> int | None:
    number = _number(name, value)
    if number == 0:
        raise AdminError("bad-request", f"{name} must be at least 1, or {DEFAULT_NUMBER}")
    return number


def _rate_text(name: str, value: Value) -> str | None:
    text = str(value).strip()
    if text == DEFAULT:
        return None
    if text != NO_LIMIT:
        try:
            Rate.parse(text)
        except ValueError as error:
            raise AdminError("bad-request", f"{name}: {error}; or {NO_LIMIT}") from None
    return text


def _separator(name: str, value: Value) -> str | None:
    text = str(value)
    if text == DEFAULT:
        return None
    if not 1 <= len(text) <= _LONGEST_SEPARATOR:
        raise AdminError(
            "bad-request", f"{name} is what ends a partition in a unique key, 1 to {_LONGEST_SEPARATOR} characters"
        )
    return text


_CHECKS: Final[Mapping[str, Callable[[str, Value], Value]]] = {
    "max_running": _number,
    "max_running_per_partition": _number,
    "rate": _rate_text,
    "burst": _burst,
    "rate_per_partition": _rate_text,
    "burst_per_partition": _burst,
    "partition_from_unique": _separator,
}
