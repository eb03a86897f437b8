"""What can be set about the HTTP door."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Final

CONTROL: Final = b"geartrain.control"  # the function that the server itself answers


@dataclasses.dataclass
class Options:
    """The defaults are safe for a door that only this machine can reach."""

    tokens: Mapping[bytes, frozenset[str]] = dataclasses.field(default_factory=dict)  # scopes, by a token's digest
    without_token: bool = False  # let everybody in who can reach it
    hosts: tuple[str, ...] = ()  # more names of this server
    worker_lease: float = 60.0  # seconds of silence after which a worker is gone
    listeners: int = 1000  # how many may listen to events at a time
    metrics_functions: int = 1000  # how many functions have metrics of their own
    not_ready: Callable[[], str] = str  # why no jobs should be sent here at the moment; empty if they may be
