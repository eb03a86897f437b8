"""The Python task queues of `queues.py` as rows of the front: each takes its turn in every round."""

from collections.abc import Iterable

from bench import queues
from bench.contenders import Contender
from bench.figures import Sample
from bench.groups import Effort, Finding, Group, Row, Step, Steps, Turn, present, rotated

FIGURES = {"queues-submit": "submitted", "queues-work": "finished"}
SHORTEST = 1.0  # seconds of submitting; with less, a worker is done before it can be timed


class TaskQueues(Group):
    """One measurement of each queue brings both rows."""

    def __init__(self) -> None:
        taking_part = tuple(_contender(queue) for queue in reversed(queues.QUEUES))  # ours is the last one there
        super().__init__(
            "queues",
            "Beside the Python task queues",
            [
                Row(
                    "queues-submit",
                    "empty tasks submitted",
                    "Empty tasks by one process, each library used in the quickest way that its documentation shows; "
                    "on disk for Geartrain, in Redis' memory for the others.",
                    "tasks/s",
                    taking_part,
                ),
                Row(
                    "queues-work",
                    "empty tasks finished by one worker process",
                    "The queue that was filled so is emptied by one worker process, started as its documentation says.",
                    "tasks/s",
                    taking_part,
                ),
            ],
        )

    def steps(self, turn: Turn) -> Steps:
        keys = [row.key for row in self.rows if row.key in turn.keys]
        names = {contender.name for contender in present(self.rows[0], turn)}
        for queue in rotated(queues.QUEUES, turn.number) if keys else []:
            if queue.name in names:
                yield _step(queue, keys, turn.effort)

    def count(self, turn: Turn) -> int:
        return len(present(self.rows[0], turn)) if any(row.key in turn.keys for row in self.rows) else 0


def _step(queue: queues.Queue, keys: Iterable[str], effort: Effort) -> Step:
    def measure() -> list[Finding]:
        found = queues.measure(queue, queues.environment(queue), max(effort.seconds, SHORTEST))
        return [Finding(key, queue.name, Sample(getattr(found, FIGURES[key]))) for key in keys]

    return Step(f"empty tasks: {queue.name}", tuple((key, queue.name) for key in keys), measure)


def _contender(queue: queues.Queue) -> Contender:
    if queue.keys:
        return Contender(queue.name, "redis-server, in memory", needs="redis-server")
    return Contender(queue.name, "geartrain serve --store sqlite", ours=True)
