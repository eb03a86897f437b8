"""A job as a client orders it, and what it gets back for it; the same for every protocol."""

import dataclasses
from typing import NamedTuple

from geartrain.model import Priority


@dataclasses.dataclass(slots=True)
class Order:
    """One submission, in the words of the library; a link turns it into its protocol's."""

    function: bytes
    payload: bytes = b""
    background: bool = False  # the server keeps it, and nobody has to wait
    priority: Priority = Priority.NORMAL
    unique: bytes = b""
    run_at: float = 0.0  # epoch seconds; 0: now
    timeout: float = 0.0  # seconds a worker may take; 0: no limit


class Acceptance(NamedTuple):
    """A server has taken an order; this names the job from now on."""

    handle: bytes  # in the protocol's own words; empty where it has none
    function: bytes
    unique: bytes = b""


class Status(NamedTuple):
    """What a server knows of a job at this moment."""

    known: bool  # whether it has it at all: a job that is over may be forgotten
    running: bool = False
    numerator: float = 0.0
    denominator: float = 0.0


class Capabilities(NamedTuple):
    """What a protocol can say. The library refuses the rest at the call, with a clear error."""

    foreground: bool = True
    background: bool = False
    priority: bool = False
    unique: bool = False
    run_at: bool = False
    timeout: bool = False
    status: bool = False
    cancel: bool = False
    result_later: bool = False  # the result of a background job can be asked for
    progress: bool = False  # a client hears how far a job is
    data: bool = False  # a client hears parts of the result, and warnings
    failure: bool = False  # a client hears that a job failed
    reschedule: bool = False  # a worker can have a job run again later
