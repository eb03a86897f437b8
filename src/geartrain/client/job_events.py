"""The events of a job, as its client receives them over any protocol."""

import dataclasses
from typing import Any, Final


@dataclasses.dataclass(frozen=True, slots=True)
class Progressed:
    """The worker reported progress: `numerator` of `denominator`."""

    numerator: float
    denominator: float


@dataclasses.dataclass(frozen=True, slots=True)
class Data:
    """The worker sent a part of the result."""

    data: bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Warned:
    """The worker sent a warning."""

    data: bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Completed:
    """The job succeeded. This is its last event."""

    result: bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Failed:
    """The job failed, was cancelled, expired, or was given up after too many attempts. This is its last event."""

    reason: str = ""  # empty where the protocol does not send it
    code: int = 1  # the worker's error code, 1 to 255
    data: bytes = b""  # what the worker sent with the failure
    state: str = "failed"  # or dead, cancelled or expired, where the protocol says which


Event = Progressed | Data | Warned | Completed | Failed

REPORTS: Final = ("progress", "data", "warning")  # as a Geartrain server calls them


def of_report(name: str, values: dict[str, Any]) -> Event:
    """The event for a report of a running job, as a Geartrain server writes it."""
    if name == "progress":
        return Progressed(values["numerator"], values["denominator"])
    from geartrain import jsonbytes

    data = jsonbytes.decode(values["data"])
    return Data(data) if name == "data" else Warned(data)
