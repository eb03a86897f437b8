"""What is measured, as data: rows, each with those who take part; and groups of rows that share their servers.

A group hands out steps, one at a time. Between two steps its servers go on running, idle. In each round another one
begins, so that nobody is always the first or always measured after the same other one.
"""

import contextlib
import gc
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from bench import contenders, crowd, figures
from bench.contenders import Contender, Place
from bench.figures import Sample

MOST_JOBS = 500_000
Item = TypeVar("Item")


class Effort(NamedTuple):
    """How much is done for a figure."""

    rounds: int
    seconds: float  # that a figure takes, about
    first: int  # jobs before that, which warm up and say how many fit into those seconds
    drained: int  # jobs in the queue that is emptied
    idle: int  # connections that say nothing
    sleepers: int  # workers that wait
    engine_rounds: int


FULL = Effort(rounds=3, seconds=2.0, first=300, drained=40_000, idle=5000, sleepers=1000, engine_rounds=15)
QUICK = Effort(rounds=1, seconds=0.1, first=50, drained=1000, idle=200, sleepers=50, engine_rounds=2)


class Row(NamedTuple):
    """One line of the comparison."""

    key: str
    title: str
    what: str  # exactly what is measured, for the person who reads the figure
    unit: str
    contenders: tuple[Contender, ...]
    less_is_better: bool = False
    notes: Mapping[str, str] = {}  # what a contender cannot do in this row, or does otherwise than the others


class Turn(NamedTuple):
    """One round of a group."""

    number: int  # from 0
    effort: Effort
    keys: frozenset[str]  # the rows that are wanted
    absent: Mapping[str, str]  # peers that cannot be used here, and why


class Finding(NamedTuple):
    """A figure, and where it belongs."""

    row: str
    contender: str
    sample: Sample


class Step(NamedTuple):
    """One measurement; it may bring several figures."""

    label: str
    figures: tuple[tuple[str, str], ...]  # the rows and contenders that it is for
    measure: Callable[[], Iterable[Finding]]


Steps = Generator[Step, None, None]  # closing it stops the servers
Act = Callable[[Contender, Place, Effort], Sample]


class Group(ABC):
    """Rows that are measured together."""

    rounds_itself = False  # whether one turn of it has all rounds

    def __init__(self, key: str, title: str, rows: Sequence[Row]) -> None:
        self.key = key
        self.title = title
        self.rows = tuple(rows)

    @abstractmethod
    def steps(self, turn: Turn) -> Steps:
        """The measurements of one round; a step is to be made before the next one is asked for."""

    def count(self, turn: Turn) -> int:
        """How many steps that will be."""
        return sum(len(present(row, turn)) for row in self.rows if row.key in turn.keys)


class SideBySide(Group):
    """Servers that run at the same time, each row on one after the other."""

    def __init__(self, key: str, title: str, rows: Sequence[tuple[Row, Act]]) -> None:
        super().__init__(key, title, [row for row, _ in rows])
        self.acts = {row.key: act for row, act in rows}

    def steps(self, turn: Turn) -> Steps:
        rows = [row for row in self.rows if row.key in turn.keys]
        wanted = {contender.name: contender for row in rows for contender in present(row, turn)}
        with contenders.own_core(), contextlib.ExitStack() as stack:
            places = {name: started(contender, stack) for name, contender in wanted.items()}
            for row in rows:
                for contender in rotated(present(row, turn), turn.number):
                    yield self._step(row, contender, places[contender.name], turn.effort)

    def _step(self, row: Row, contender: Contender, place: Place | Exception, effort: Effort) -> Step:
        def measure() -> list[Finding]:
            if isinstance(place, Exception):
                raise place
            return [Finding(row.key, contender.name, self.acts[row.key](contender, place, effort))]

        return Step(f"{row.title}: {contender.name}", ((row.key, contender.name),), measure)


def present(row: Row, turn: Turn) -> tuple[Contender, ...]:
    """Those of a row who can take part here."""
    return tuple(contender for contender in row.contenders if contender.needs not in turn.absent)


def rotated(items: Sequence[Item], by: int) -> list[Item]:
    """The same ones, with another one first."""
    at = by % len(items) if items else 0
    return [*items[at:], *items[:at]]


def sample(load: crowd.Load, pid: int, effort: Effort) -> Sample:
    """The rate of a load on one server, for about as long as the effort says; the load is closed afterwards."""
    try:
        jobs = effort.first
        for share in (0.1, 1.0):  # a few jobs say little of the rate of many: guess twice
            guess = load.run(jobs)
            jobs = min(max(int(guess * effort.seconds * share), effort.first), MOST_JOBS)
        return timed(lambda: load.run(jobs), load.waits, jobs, pid)
    finally:
        load.close()


def timed(run: Callable[[], float], waits: list[float], jobs: int, pid: int) -> Sample:
    """One run, and what it took the server and the load."""
    gc.collect()
    gc.disable()  # a collection in the load is not the server's fault
    try:
        server, load, began = contenders.processor_seconds(pid), time.process_time(), time.perf_counter()
        rate = run()
        took = time.perf_counter() - began
    finally:
        gc.enable()
    ordered = sorted(waits)
    return Sample(
        value=rate,
        server_us=(contenders.processor_seconds(pid) - server) / jobs * 1e6,
        p50=figures.percentile(ordered, 0.50),
        p99=figures.percentile(ordered, 0.99),
        load_busy=(time.process_time() - load) / took,
    )


def started(contender: Contender, stack: contextlib.ExitStack) -> Place | Exception:
    """One that does not start does not stop the others: its steps say why they fail."""
    assert contender.start is not None
    try:
        return stack.enter_context(contenders.running(contender.start))
    except Exception as error:
        return error
