"""The state of a job as a client reads it, and the options of a submission."""

import enum
from collections.abc import Mapping
from typing import NamedTuple


class Options(enum.Flag):
    """Options of a submission."""

    NONE = 0
    BLOCKING = enum.auto()  # return after the job has finished
    ROLLCALL = enum.auto()  # only if a worker is registered for the function


class Job(NamedTuple):
    """The state of a job; fields that are not set yet are None."""

    status: str | None  # idle, busy, success or error; None: there is no such job
    input: bytes | None
    output: bytes | None
    dividend: float | None  # its progress: dividend of divisor; an int unless it was written as a fraction
    divisor: float | None

    @property
    def finished(self) -> bool:
        """Whether the job has ended, with success or not."""
        return self.status in ("success", "error")


def of_hash(fields: Mapping[bytes, bytes]) -> Job:
    """A job from its hash.

    >>> of_hash({b"status": b"busy", b"input": b"x", b"status:dividend": b"1", b"status:divisor": b"4"})
    Job(status='busy', input=b'x', output=None, dividend=1, divisor=4)
    """
    status = fields.get(b"status")
    return Job(
        status.decode("utf-8", "replace") if status is not None else None,
        fields.get(b"input"),
        fields.get(b"output"),
        _number(fields.get(b"status:dividend")),
        _number(fields.get(b"status:divisor")),
    )


def output_of(value: object) -> bytes | str | int | float:
    """The output for what a work function returned; a TypeError for what Redis cannot store."""
    if value is None:
        return b""
    if isinstance(value, bytes | str | int | float) and not isinstance(value, bool):
        return value
    raise TypeError(f"a work function returns bytes, text or a number, and not {type(value).__name__}")


def _number(text: bytes | None) -> float | None:
    """A number, unless another program has written something else.

    >>> _number(b"9223372036854775807"), _number(b"4.0"), _number(b"0.5"), _number(b"half")
    (9223372036854775807, 4, 0.5, None)
    """
    try:
        if text is None or text.isdigit():
            return int(text) if text is not None else None
        number = float(text)
        return int(number) if number == int(number) else number
    except (ValueError, OverflowError):
        return None
