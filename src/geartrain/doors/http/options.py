"""Options of the HTTP door."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Final

CONTROL: Final = b"geartrain.control"  # the control function: the server executes its jobs itself


@dataclasses.dataclass
class Options:
    """The defaults are safe for a door that is reachable only from this machine."""

    tokens: Mapping[bytes, frozenset[str]] = dataclasses.field(default_factory=dict)  # scopes, by the digest of a token
    without_token: bool = False  # give all scopes to every client, although other machines can reach the door
    hosts: tuple[str, ...] = ()  # further host names of this server
    worker_lease: float = 60.0  # seconds without a request after which a worker is removed
    listeners: int = 1000  # event streams that may be open at the same time
    metrics_functions: int = 1000  # functions that have metrics of their own
    not_ready: Callable[[], str] = str  # why the server cannot accept jobs; empty if it can
