"""Run random schedules of servers that share a database, on a simulated clock, and check the rules of a cluster.

    python -m campaigns.membership --schedules 100000            two to four servers each
    python -m campaigns.membership --schedules 3 --nodes 1000    large clusters
    python -m campaigns.membership --schedules 3 --nodes 1000 --episodes 2000      with thousands of faults in each
    python -m campaigns.membership --seed 7                      the schedules of an earlier run
    python -m campaigns.membership --seed 7 --only 4711          one of them
    python -m campaigns.membership --mutant lapses-late          break something, and see it found

The exit code is 1 if a rule was broken.
"""

import argparse
import collections
import gc
import logging
import math
import random
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from campaigns.membership.mutants import MUTANTS
from campaigns.membership.schedule import HEALTHY, Mutant, Schedule
from campaigns.membership.world import FaultError
from geartrain import compiled

SCHEDULES: Final = 10_000
_PROGRESS_SECONDS: Final = 10.0
_COLLECT_EVERY: Final = 50  # schedules: their objects refer to each other


class Totals:
    """Sums over schedules."""

    def __init__(self) -> None:
        self.schedules = 0  # whole clusters
        self.episodes = 0  # faults in clusters that have many
        self.servers = 0
        self.steps = 0
        self.simulated = 0.0  # seconds
        self.began = time.monotonic()
        self.faults: collections.Counter[str] = collections.Counter()
        self.counts: collections.Counter[str] = collections.Counter()

    def add(self, schedule: Schedule) -> None:
        self.schedules += 1
        if schedule.has_episodes:
            self.episodes += sum(schedule.counts.values())
        self.servers += schedule.starts
        self.steps += schedule.world.steps
        self.simulated += schedule.world.now
        self.faults.update(schedule.counts)
        self.counts.update(schedule.database.counts)
        audit = schedule.audit
        self.counts["jobs acknowledged"] += len(audit.acknowledged_jobs)
        self.counts["jobs assigned"] += len(audit.assigned_jobs)
        self.counts["runs of schedules"] += audit.runs
        self.counts["assigned after a suspension"] += audit.excused
        self.counts["commits in doubt"] += schedule.in_doubt

    def progress(self) -> str:
        seconds = time.monotonic() - self.began
        episodes = f" with {self.episodes} episodes" if self.episodes else ""
        return f"{self.schedules} schedules{episodes}, {self.steps} steps, {seconds:.0f} s"

    def print(self) -> None:
        print(f"{self.progress()}: {self.servers} starts of servers, {self.simulated:.0f} simulated seconds")
        for title, counter in (("faults", self.faults), ("counted", self.counts)):
            print(f"  {title}: " + ", ".join(f"{name} {number}" for name, number in sorted(counter.items())))


class Size(NamedTuple):
    """Of the clusters."""

    nodes: int = 0  # two to four at random
    episodes: int = 0  # a few faults

    def words(self) -> str:
        return f"--nodes {self.nodes}" + (f" --episodes {self.episodes}" if self.episodes else "")


def run(
    numbers: Iterable[int], seed: int, size: Size, mutant: Mutant, totals: Totals, seconds: float = math.inf
) -> bool:
    """Run schedules until one breaks a rule, or the time is over; whether none broke one."""
    shown = time.monotonic()
    end = shown + seconds
    gc.collect()
    gc.freeze()  # what is there already would be looked at in every collection
    gc.disable()
    try:
        for number in numbers:
            if time.monotonic() > end:
                break
            schedule = Schedule(f"{seed}/{number}", size.nodes, mutant, size.episodes)
            try:
                schedule.run()
            except FaultError as fault:
                print(f"FAULT in schedule {number} of seed {seed}: {fault}")
                print(f"  faults: {schedule.counts}; lease {schedule.lease:g} s")
                print(f"  repeat: python -m campaigns.membership --seed {seed} {size.words()} --only {number}")
                return False
            finally:
                totals.add(schedule)
            if totals.schedules % _COLLECT_EVERY == 0 or size.nodes > _COLLECT_EVERY:
                gc.collect()
            if time.monotonic() - shown > _PROGRESS_SECONDS:
                shown = time.monotonic()
                print(totals.progress(), file=sys.stderr, flush=True)
    finally:
        gc.enable()
        gc.unfreeze()
    return True


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=SCHEDULES)
    parser.add_argument("--nodes", type=int, default=0, help="servers of each; without it, two to four at random")
    parser.add_argument("--episodes", type=int, default=0, help="faults in each; without it, a few")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no schedule after this time")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", type=int, default=None, metavar="NUMBER", help="one schedule of that seed")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="break this on purpose")
    options = parser.parse_args(words)
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    numbers = range(options.schedules) if options.only is None else [options.only]
    logging.getLogger("geartrain").setLevel(logging.CRITICAL)  # what servers log in a fault is no news here
    print(f"seed {seed}; {len(numbers)} schedules; the core is {compiled.form()}", flush=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let their background processes ignore it
    totals = Totals()
    try:
        size = Size(options.nodes, options.episodes)
        is_faultless = run(numbers, seed, size, MUTANTS.get(options.mutant, HEALTHY), totals, options.seconds)
    except KeyboardInterrupt:
        print("interrupted")
        is_faultless = True
    totals.print()
    return 0 if is_faultless else 1


if __name__ == "__main__":
    raise SystemExit(main())
