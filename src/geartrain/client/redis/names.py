"""The keys of GearMonkey's document, and our own, which other programs do not use."""

from typing import Final

PRIORITIES: Final = ("high", "normal", "low")
SCHEDULED: Final = "scheduled"


def uid(function: str) -> str:
    return f"uid:{function}"


def count(function: str) -> str:
    return f"count:{function}"


def channel(function: str) -> str:
    return f"channel:{function}"


def job(function: str, number: int) -> str:
    return f"job:{function}:{number}"


def lock(function: str, number: int) -> str:
    return f"lock:{function}:{number}"


def queue(function: str, priority: str) -> str:
    return f"queue:{function}:{priority}"


def taken(function: str) -> str:
    """Jobs that our workers have taken, by the time at which their lease expires."""
    return f"geartrain:taken:{function}"


def popped(function: str, priority: str) -> str:
    """Jobs that ended the wait of one of our workers, until it takes a job."""
    return f"geartrain:popped:{function}:{priority}"


def workers(function: str) -> str:
    """Our workers, by the time at which their lease expires."""
    return f"geartrain:workers:{function}"


def of_queue(key: bytes) -> tuple[str, str]:
    """The function and priority of a queue; functions may have colons in their names."""
    function, _, priority = key.decode("utf-8", "surrogateescape").removeprefix("queue:").rpartition(":")
    return function, priority


def brought(function: str) -> str:
    """Jobs that a bridge has brought from another server, by the time at which it did."""
    return f"geartrain:brought:{function}"


def origin(function: str, key: str) -> str:
    """The number of the job that a bridge has brought for a job of another server."""
    return f"geartrain:origin:{function}:{key}"


def bridge(function: str) -> str:
    """The lock of the bridge that serves a function."""
    return f"geartrain:bridge:{function}"


IDENTITY: Final = "geartrain:identity"  # of this Redis, for bridges
