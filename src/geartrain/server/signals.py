"""What the signals mean: the same as for gearmand, and the same whatever they are sent by."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping

Handlers = Mapping[signal.Signals, Callable[[], None]]


@contextlib.contextmanager
def handled(loop: asyncio.AbstractEventLoop, handlers: Handlers) -> Iterator[None]:
    """Call the handlers, inside the loop, for as long as the block runs."""
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
