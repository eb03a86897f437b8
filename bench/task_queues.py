"""The Python task queues of `queue_runs.py` as rows of the front: each takes its turn in every round."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from bench import queue_runs
from bench.contenders import Contender
from bench.figures import Sample
from bench.groups import Finding, Group, Row, Step, Steps, Turn, present, rotated
from bench.queue_runs import PROCESSES, QUEUES, Queue

Run = Callable[[Queue, float, str], Mapping[str, Sample]]
OFF = "off"  # Redis without a log; the other words are those of its setting appendfsync
WHERE = {
    OFF: "in Redis' memory (appendonly no)",
    "everysec": "on disk within a second (appendfsync everysec)",
    "always": "on disk when Redis answers (appendfsync always)",
}
OWN = {
    queue_runs.DURABLE: "on disk when a submission returns (SQLite)",
    queue_runs.MEMORY: "in the server's memory",
}


class Line(NamedTuple):
    """A row before it is known who takes part."""

    key: str
    title: str
    what: str
    notes: Mapping[str, str]
    only: frozenset[str] = frozenset()  # the queues that can do it; empty: all


LINES = {
    "submit": Line(
        "queues-submit",
        "empty tasks submitted",
        "Empty tasks by one process, each library used in the quickest way that its documentation shows.",
        {},
    ),
    "work": Line(
        "queues-work",
        "empty tasks finished by one worker process",
        "The queue that was filled so is emptied by one worker process.",
        {},
    ),
    "results": Line(
        "queues-results",
        "tasks whose results are fetched",
        f"One process submits {queue_runs.FETCHED} tasks and fetches their results, again and again; one worker "
        "process.",
        {"arq": "has nothing that waits for a result: the job is asked again every 10 ms (default: 500)"},
    ),
    "chords": Line(
        "queues-chords",
        "tasks of chords",
        f"One process submits {queue_runs.CHORD} tasks and one that runs when they are done, waits for its result, and "
        "so on; one worker process.",
        {"Dramatiq": "its callback gets no results; the process that submits fetches them"},
        frozenset({queue_runs.DURABLE, queue_runs.MEMORY, "Celery", "Dramatiq"}),
    ),
    "retries": Line(
        "queues-retries",
        "tasks that fail once and are retried",
        "Filled before, emptied by one worker process; the first attempt at each task fails, and the delay before the "
        "second is the shortest that each library can be told, which is none.",
        {
            "arq": "does not retry an exception: the task raises arq.Retry(defer=0)",
            "Dramatiq": "a retry without delay passes through its delay queue",
        },
    ),
    "processes": Line(
        "queues-processes",
        f"empty tasks finished by {PROCESSES} worker processes",
        f"The queue that was filled as in the first row is emptied by {PROCESSES} processes, which the library's own "
        "command starts.",
        {"arq": f"cannot: it has no command for several processes; {PROCESSES} were started one by one"},
    ),
}
# A run brings the figures of one or two rows.
RUNS: Sequence[tuple[Run, tuple[str, ...]]] = (
    (queue_runs.plain, ("submit", "work")),
    (queue_runs.results, ("results",)),
    (queue_runs.chords, ("chords",)),
    (queue_runs.retries, ("retries",)),
    (queue_runs.processes, ("processes",)),
)


class TaskQueues(Group):
    """Every queue, one after the other, in each run."""

    def __init__(self, queues: Sequence[Queue] = QUEUES, appendfsync: str = OFF) -> None:
        self.queues = queues
        self.appendfsync = appendfsync
        taking_part = tuple(_contender(queue, appendfsync) for queue in queues)
        rows = [
            Row(line.key, line.title, line.what, "tasks/s", tuple(_able(line, taking_part)), notes=line.notes)
            for line in LINES.values()
        ]
        super().__init__("queues", "Beside the Python task queues", rows)

    def steps(self, turn: Turn) -> Steps:
        for run, figures in self._runs(turn):
            names = self._names(turn, figures)
            for queue in rotated(self.queues, turn.number):
                if queue.name in names:
                    yield self._step(run, figures, queue, turn)

    def count(self, turn: Turn) -> int:
        return sum(len(self._names(turn, figures)) for _, figures in self._runs(turn))

    def _names(self, turn: Turn, figures: Sequence[str]) -> set[str]:
        """The queues that bring these figures."""
        row = next(row for row in self.rows if row.key == LINES[figures[0]].key)
        return {contender.name for contender in present(row, turn)}

    def _runs(self, turn: Turn) -> list[tuple[Run, tuple[str, ...]]]:
        """Those that bring a wanted figure, and which."""
        wanted = [(run, tuple(figure for figure in figures if LINES[figure].key in turn.keys)) for run, figures in RUNS]
        return [(run, figures) for run, figures in wanted if figures]

    def _step(self, run: Run, figures: Iterable[str], queue: Queue, turn: Turn) -> Step:
        def measure() -> list[Finding]:
            found = run(queue, turn.effort.seconds, self.appendfsync)
            return [Finding(LINES[figure].key, queue.name, found[figure]) for figure in figures]

        keys = tuple((LINES[figure].key, queue.name) for figure in figures)
        return Step(f"{' and '.join(LINES[figure].title for figure in figures)}: {queue.name}", keys, measure)


def where(name: str, appendfsync: str) -> str:
    """Where the tasks of a queue are when their submission has returned."""
    return OWN.get(name) or WHERE[appendfsync]


def _able(line: Line, everyone: Iterable[Contender]) -> Iterable[Contender]:
    return (contender for contender in everyone if not line.only or contender.name in line.only)


def _contender(queue: Queue, appendfsync: str) -> Contender:
    tasks = f"tasks {where(queue.name, appendfsync)}"
    if queue.ours:
        return Contender(queue.name, f"geartrain serve --store {queue.store.partition(':')[0]}; {tasks}", ours=True)
    return Contender(queue.name, f"redis-server; {tasks}", needs="redis-server")
