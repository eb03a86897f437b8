"""Convert what a program passes into an order: names and payloads become bytes, times become epoch seconds."""

import datetime
import time
from collections.abc import Iterable
from typing import Final, Literal, Protocol

from geartrain.client.order import PARTITION_FROM_UNIQUE, Capabilities, Order
from geartrain.client.protocols import registry
from geartrain.client.protocols.base import ClientProtocol
from geartrain.errors import UnsupportedError
from geartrain.model import Priority

Text = bytes | str
Moment = float | datetime.datetime
Duration = float | datetime.timedelta
Lifetime = Duration | datetime.datetime  # until a job expires
OnFailure = Literal["cancel", "run"]  # what becomes of a job if one that it waits for fails


class JobWithHandle(Protocol):
    """A job that was submitted."""

    @property
    def handle(self) -> str: ...


Waitable = Text | JobWithHandle  # a job that another one can wait for

LONGEST_KEPT: Final = 366 * 86_400  # seconds; servers refuse more
LONGEST_PARTITION: Final = 255  # bytes; servers refuse more

# How error messages call a capability.
FEATURES: Final = {
    "foreground": "foreground jobs",
    "background": "background jobs",
    "priority": "priorities",
    "unique": "unique keys",
    "run_at": "jobs that run at a given time",
    "timeout": "a time limit for a single job",
    "expires": "jobs that expire",
    "keep_for": "how long a result is kept",
    "partition": "partitions",
    "after": "jobs that wait for other jobs",
    "status": "the status of a job",
    "cancel": "cancelling a job",
    "result_later": "the result of a background job",
    "progress": "progress",
    "data": "parts of a result",
    "failure": "reporting a failure to the client",
    "reschedule": "rescheduling a job by its worker",
}

# What to do where a capability is missing, instead of changing the protocol.
_WAYS_OUT: Final = {"partition": f"; or {PARTITION_FROM_UNIQUE}"}


def encoded(text: Text) -> bytes:
    """Text as UTF-8. Text that `decoded` made of other bytes becomes those bytes again."""
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(text)


def decoded(name: bytes) -> str:
    """A name as text; bytes that are not UTF-8 become surrogates, so nothing is lost."""
    return name.decode("utf-8", "surrogateescape")


def seconds(duration: Duration) -> float:
    """A duration in seconds."""
    return duration.total_seconds() if isinstance(duration, datetime.timedelta) else float(duration)


def run_at(at: Moment | None, delay: Duration | None) -> float:
    """When a job may run, in epoch seconds; 0 means now. A datetime without a time zone is in local time."""
    if at is not None and delay is not None:
        raise ValueError("a job has a time (at) or a delay, not both")
    if delay is not None:
        return time.time() + seconds(delay) if seconds(delay) > 0 else 0.0
    if at is None:
        return 0.0
    return at.timestamp() if isinstance(at, datetime.datetime) else float(at)


def expires_at(lifetime: Lifetime | None, run_at: float, now: float) -> float:
    """When a job expires, in epoch seconds; 0: never. Seconds count from now, whenever the job may run."""
    if lifetime is None:
        return 0.0
    at = lifetime.timestamp() if isinstance(lifetime, datetime.datetime) else now + lifetime_seconds(lifetime)
    if at <= run_at:
        raise ValueError("the job would expire before it may run")
    return at


def lifetime_seconds(lifetime: Duration | None) -> float:
    """How long a job may wait for a worker, in seconds; 0: without limit.

    >>> lifetime_seconds(datetime.timedelta(minutes=1)), lifetime_seconds(None)
    (60.0, 0.0)
    """
    if lifetime is None:
        return 0.0
    if not seconds(lifetime) > 0:
        raise ValueError(f"a job expires after a time above 0, not {lifetime!r}")
    return seconds(lifetime)


def keep_for(duration: Duration | None, background: bool) -> float:
    """How long the record of a job is kept at least, in seconds; 0: as the server's settings say."""
    if duration is None:
        return 0.0
    if not background:
        raise ValueError("only a background job has a record that is kept: add background=True")
    return keep_seconds(duration)


def keep_seconds(duration: Duration | None) -> float:
    """The seconds of `keep_for`; 0: as the server's settings say."""
    if duration is None:
        return 0.0
    if not 0 < seconds(duration) <= LONGEST_KEPT:
        raise ValueError(f"a result is kept for more than 0 and at most {LONGEST_KEPT} seconds, not {duration!r}")
    return seconds(duration)


def parents(after: Iterable[Waitable]) -> tuple[bytes, ...]:
    """The handles of jobs.

    >>> parents(["H:host:7", b"H:host:8"])
    (b'H:host:7', b'H:host:8')
    """
    if isinstance(after, str | bytes):
        raise ValueError(f"after is a list of jobs or handles, not {after!r}")
    return tuple(encoded(job if isinstance(job, str | bytes) else job.handle) for job in after)


def runs_anyway(on_failure: OnFailure) -> bool:
    """Whether a job runs although one that it waited for failed."""
    if on_failure not in ("cancel", "run"):
        raise ValueError(f"on_failure is 'cancel' or 'run', not {on_failure!r}")
    return on_failure == "run"


def partition(name: Text) -> bytes:
    """The name of a partition.

    >>> partition("acme")
    b'acme'
    """
    encoded_name = encoded(name)
    if len(encoded_name) > LONGEST_PARTITION:
        raise ValueError(
            f"the name of a partition has at most {LONGEST_PARTITION} bytes; this one has {len(encoded_name)}"
        )
    return encoded_name


def share(max_share: float) -> float:
    """A share of a worker's slots."""
    if not 0 < max_share <= 1:
        raise ValueError(f"max_share is a share of the worker's slots, above 0 and at most 1, not {max_share!r}")
    return max_share


def priority(level: Priority | str) -> Priority:
    """A priority, or the one of this name."""
    if isinstance(level, Priority):
        return level
    try:
        return Priority[level.upper()]
    except KeyError:
        raise ValueError(f"{level!r} is no priority; use high, normal or low") from None


def check(order: Order, protocol: type[ClientProtocol], name: str) -> None:
    """Raise an UnsupportedError if the protocol cannot express this order."""
    can = protocol.capabilities
    if not (can.background if order.background else can.foreground):
        raise unsupported("background" if order.background else "foreground", name)
    if order.priority is not Priority.NORMAL and not can.priority:
        raise unsupported("priority", name)
    if order.unique and not can.unique:
        raise unsupported("unique", name)
    if order.run_at and not can.run_at:
        raise unsupported("run_at", name)
    if order.timeout and not can.timeout:
        raise unsupported("timeout", name)
    if order.expires_at and not can.expires:
        raise unsupported("expires", name)
    if order.keep_for and not can.keep_for:
        raise unsupported("keep_for", name)
    if order.partition and not can.partition:
        raise unsupported("partition", name)
    if order.after and not can.after:
        raise unsupported("after", name)
    reason = protocol.unsupported_reason(order)
    if reason:
        raise UnsupportedError(reason)


def require(capability: str, can: Capabilities, protocol: str) -> None:
    """Raise an UnsupportedError if the protocol does not support this."""
    if not getattr(can, capability):
        raise unsupported(capability, protocol)


def unsupported(capability: str, protocol: str) -> UnsupportedError:
    """The error for a missing capability; it names the protocols that have it."""
    others = registry.protocols_with(capability)
    advice = f"; supported by {', '.join(others)}" if others else ""
    way_out = _WAYS_OUT.get(capability, "")
    return UnsupportedError(f"{protocol} does not support {FEATURES[capability]}{advice}{way_out}")
