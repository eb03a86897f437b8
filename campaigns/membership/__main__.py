"""Run random schedules of servers that share a database, on a simulated clock, and check the rules of a cluster.

    python -m campaigns.membership --schedules 100000            two to four servers each
    python -m campaigns.membership --schedules 3 --nodes 1000    large clusters
    python -m campaigns.membership --schedules 3 --nodes 1000 --episodes 2000      with thousands of faults in each
    python -m campaigns.membership --seed 7                      the schedules of an earlier run
    python -m campaigns.membership --seed 7 --only 4711          one of them
    python -m campaigns.membership --mutant lapses-late          break something, and see it found
    python -m campaigns.membership --schedules 1000000 --seed 7 --notes run.json   go on where an earlier run was ended
    python -m campaigns.membership --schedules 1000000 --processes 2     the same schedules, shared out

The exit code is 1 if a rule was broken.
"""

import argparse
import logging
import math
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from campaigns.membership.mutants import MUTANTS
from campaigns.membership.notes import Notes
from campaigns.membership.parts import Size, parts
from campaigns.membership.schedule import HEALTHY, Mutant
from campaigns.membership.totals import Totals
from geartrain import compiled

SCHEDULES: Final = 10_000
_PROGRESS_SECONDS: Final = 10.0
_NOTE_SECONDS: Final = 60.0


def run(
    numbers: Sequence[int],
    seed: int,
    size: Size,
    mutant: Mutant,
    totals: Totals,
    seconds: float = math.inf,
    note: Callable[[int], None] | None = None,
    processes: int = 1,
) -> bool:
    """Run schedules until one breaks a rule, or the time is over; whether none broke one.

    `note` is called now and then, and when the time is over, with the number of the next schedule.
    """
    shown = time.monotonic()
    end = shown + seconds
    pause = _PROGRESS_SECONDS if note is None else _NOTE_SECONDS
    following = numbers[0] if numbers else 0
    with parts(numbers, seed, size, mutant, processes) as results:
        while time.monotonic() <= end and (result := next(results, None)) is not None:
            part, done = result
            totals.join(part.sums)
            if part.fault:
                print(part.fault)
                return False
            following = done[-1] + 1
            if time.monotonic() - shown > pause:
                shown = time.monotonic()
                print(totals.progress(), file=sys.stderr, flush=True)
                if note is not None:
                    note(following)
    if note is not None:
        note(following)
    return True


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=SCHEDULES)
    parser.add_argument("--nodes", type=int, default=0, help="servers of each; without it, two to four at random")
    parser.add_argument("--episodes", type=int, default=0, help="faults in each; without it, a few")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no schedule after this time")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", type=int, default=None, metavar="NUMBER", help="one schedule of that seed")
    parser.add_argument(
        "--notes", type=Path, metavar="FILE", help="keep the sums there once a minute, and go on from there"
    )
    parser.add_argument("--processes", type=int, default=1, help="share the schedules out to so many")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="break this on purpose")
    options = parser.parse_args(words)
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    size, totals = Size(options.nodes, options.episodes), Totals()
    notes = None if options.notes is None else Notes(options.notes, {"seed": seed, **size._asdict()}, totals)
    first = 0 if notes is None else notes.read()
    numbers = range(first, options.schedules) if options.only is None else [options.only]
    logging.getLogger("geartrain").setLevel(logging.CRITICAL)  # what servers log in a fault is no news here
    print(f"seed {seed}; {len(numbers)} schedules; the core is {compiled.form()}", flush=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let their background processes ignore it
    mutant = MUTANTS.get(options.mutant, HEALTHY)
    try:
        is_faultless = run(
            numbers, seed, size, mutant, totals, options.seconds, notes.write if notes else None, options.processes
        )
    except KeyboardInterrupt:
        print("interrupted")
        is_faultless = True
    totals.print()
    return 0 if is_faultless else 1


if __name__ == "__main__":
    raise SystemExit(main())
