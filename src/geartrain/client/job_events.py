"""What a client hears of a job that it waits for, whatever the protocol."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Progressed:
    """The worker said how far it is: `numerator` of `denominator`."""

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
    """The job is done; nothing comes after it."""

    result: bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Failed:
    """The job failed, was cancelled or was given up; nothing comes after it."""

    reason: str = ""  # empty: the protocol does not say
    code: int = 1  # the worker's number for what went wrong, 1 to 255
    data: bytes = b""  # the worker's own words, if it had any


Event = Progressed | Data | Warned | Completed | Failed
