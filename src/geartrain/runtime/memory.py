"""The garbage collector, set up for a process that holds many jobs.

Jobs are freed by reference counting; the collector is only for the few cycles that libraries leave behind.
Left at its defaults it looks at everything again and again while a queue grows. Measured with one million
queued jobs, Python 3.11 (longest pause per generation, time to queue them all):

    thresholds          young     middle    oldest     queueing
    700, 10, 10         3 ms      3 ms      201 ms     3.5 s
    10000, 10, 100      6 ms      25 ms     none       1.6 s     <- chosen
    50000, 20, 100      10 ms     none      none       1.1 s     (the first middle one would take 200 ms)

The middle one bounds every ordinary pause, and the oldest generation is looked at after ten million net new
objects at the earliest. What the start has built is frozen: it lives as long as the process.
"""

import contextlib
import ctypes
import gc
from collections.abc import Iterator

THRESHOLDS = (10_000, 10, 100)


def settle() -> None:
    """Call once everything is built and before the first connection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def give_back() -> None:
    """Let the system have what was freed: the C library keeps payloads of more than half a kilobyte otherwise.

    Measured with 150,000 jobs of 2,000 bytes: 359 MB with all of them, 194 without them, 16 after this.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's; others give back by themselves
    if trim is not None:
        trim(0)


@contextlib.contextmanager
def at_rest() -> Iterator[None]:
    """No collection while many objects are made that all live on."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
