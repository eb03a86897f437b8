"""What the signals mean: the same as for gearmand, and the same whatever they are sent by."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping

Handlers = Mapping[signal.Signals, Callable[[], None]]


@contextlib.contextmanager
def handled(loop: asyncio.AbstractEventLoop, handlers: Handlers) -> Iterator[None]:
    """Call the handlers, inside the loop, for as long as the block runs; after it these signals mean nothing.

    The process is about to end, in good order and by itself: one more signal on the way must not cut that short.
    """
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, handlers)  # the loop leaves them deadly for a moment
        for number in handlers:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
