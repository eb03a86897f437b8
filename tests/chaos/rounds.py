"""A run: load, a fault, and a check that nothing was lost or doubled, again and again."""

import itertools
import random
from collections.abc import Mapping

from tests.chaos.calendar import Calendar
from tests.chaos.check import Books
from tests.chaos.faults import Fault, Stage, deck, pass_time
from tests.chaos.load import under_load

EARLIEST, LATEST = 0.05, 0.5  # seconds of load before a fault, and after it


def run(
    stage: Stage, faults: Mapping[str, Fault], rounds: int, then: Fault | None = None, loses_keys: bool = False
) -> None:
    """Each fault occurs once before any occurs again; 0 rounds: each of them once.

    `then` happens when the load is over and everything is committed: what is lost with it was never stored. A database
    that `loses_keys` lets a server accept a key that another one has, so two jobs may run with it.
    """
    # A database that goes back in time forgets runs of schedules, too.
    books = Books(stage.fleet, loses_keys, None if loses_keys else Calendar(stage.fleet))
    for number, name in enumerate(itertools.islice(deck(list(faults), stage.chance), rounds or len(faults))):
        seed = stage.chance.randrange(2**32)
        with under_load(stage.fleet, books.ledger, seed, str(number)):
            pass_time(_pause(stage.chance))
            faults[name](stage)
            pass_time(_pause(stage.chance))
        books.check(f"round {number}, {name}")
        if then is not None:
            books.commit()
            then(stage)
            books.check(f"round {number}, {name}, then more")
        books.drain(f"round {number}, {name}")
        print(f"round {number}, {name}: {books.summary()}")


def _pause(chance: random.Random) -> float:
    return chance.uniform(EARLIEST, LATEST)
