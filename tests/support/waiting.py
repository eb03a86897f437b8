"""Ask again until it is so, for what tells nobody when it happens."""

import threading
import time
from collections.abc import Callable

PATIENCE = 60.0  # seconds until what did not happen is a failure
_ASK_EVERY = 0.02
_never = threading.Event()


def wait_for(condition: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Return when the condition holds. Unlike `peer.until` it leaves the processor to others between two questions."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}"
        _never.wait(_ASK_EVERY)
