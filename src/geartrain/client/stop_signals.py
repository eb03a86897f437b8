"""SIGTERM and SIGINT ask a program that works to stop."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Final

_NUMBERS: Final = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def handled(stop: Callable[[], object]) -> Iterator[None]:
    """Let the signals call `stop`, inside the running loop, while the block runs.

    Only the main thread can handle signals: in another one this does nothing.
    """
    numbers = _NUMBERS if threading.current_thread() is threading.main_thread() else ()
    loop = asyncio.get_running_loop()
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
