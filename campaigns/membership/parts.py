"""Run schedules in parts of a few, in this process or shared out to several.

A schedule depends on the seed and its number alone, and the parts are counted in their order. So faults and sums are
the same whatever the number of processes, and a run that was ended goes on with another number of them.
"""

import contextlib
import gc
import logging
import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from campaigns.membership.schedule import Mutant, Schedule
from campaigns.membership.totals import Sums
from campaigns.membership.world import FaultError

_SCHEDULES: Final = 10  # of a part; then their objects, which refer to each other, are collected
_LARGE: Final = 50  # servers: a cluster is a part of its own


class Size(NamedTuple):
    """Of the clusters."""

    nodes: int = 0  # two to four at random
    episodes: int = 0  # a few faults

    def words(self) -> str:
        return f"--nodes {self.nodes}" + (f" --episodes {self.episodes}" if self.episodes else "")


class Part(NamedTuple):
    """What a few schedules have shown."""

    sums: Sums
    fault: str  # empty: there was none


@contextlib.contextmanager
def parts(
    numbers: Sequence[int], seed: int, size: Size, mutant: Mutant, processes: int
) -> Iterator[Iterator[tuple[Part, Sequence[int]]]]:
    """Each part with the numbers of its schedules, in order. It is run when it is asked for, or before."""
    length = 1 if size.nodes > _LARGE else _SCHEDULES
    shares = [numbers[start : start + length] for start in range(0, len(numbers), length)]
    run = partial(_run, seed, size, mutant)
    if processes == 1:
        with _collecting_by_hand():
            yield zip(map(run, shares), shares, strict=True)
    else:
        with multiprocessing.get_context("spawn").Pool(processes, _begin_process) as pool:
            yield zip(pool.imap(run, shares), shares, strict=True)


def _run(seed: int, size: Size, mutant: Mutant, numbers: Sequence[int]) -> Part:
    """Run schedules until one breaks a rule."""
    sums = Sums()
    faults = (_fault_of(number, seed, size, mutant, sums) for number in numbers)
    fault = next(filter(None, faults), "")
    gc.collect()
    gc.freeze()  # jobs of discarded engines are left, and would be looked at again and again
    return Part(sums, fault)


def _fault_of(number: int, seed: int, size: Size, mutant: Mutant, sums: Sums) -> str:
    """Run a schedule; which rule it has broken, and how to repeat it."""
    schedule = Schedule(f"{seed}/{number}", size.nodes, mutant, size.episodes)
    try:
        schedule.run()
    except FaultError as fault:
        return (
            f"FAULT in schedule {number} of seed {seed}: {fault}\n"
            f"  faults: {schedule.counts}; lease {schedule.lease:g} s\n"
            f"  repeat: python -m campaigns.membership --seed {seed} {size.words()} --only {number}"
        )
    finally:
        sums.add(schedule)
    return ""


@contextlib.contextmanager
def _collecting_by_hand() -> Iterator[None]:
    gc.collect()
    gc.freeze()  # what is there already would be looked at in every collection
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def _begin_process() -> None:
    """A process of the pool; it lives until the pool is closed, and the first process is interrupted, not this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("geartrain").setLevel(logging.CRITICAL)
    gc.freeze()
    gc.disable()
