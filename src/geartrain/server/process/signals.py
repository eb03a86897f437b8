"""Signal handling inside the event loop."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping

Handlers = Mapping[signal.Signals, Callable[[], None]]


@contextlib.contextmanager
def handled(loop: asyncio.AbstractEventLoop, handlers: Handlers) -> Iterator[None]:
    """Call the handlers, inside the loop, while the block runs; afterwards these signals are ignored.

    After the block the process is about to end by itself, and another signal must not interrupt that.
    """
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        before = signal.pthread_sigmask(
            signal.SIG_BLOCK, handlers
        )  # the loop restores their default action, which ends the process
        for number in handlers:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
