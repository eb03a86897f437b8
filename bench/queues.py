"""Beside the Python task queues: RQ, Celery, Dramatiq, huey, arq and SAQ, on a real Redis.

    python bench/queues.py                          all rows, in about ten minutes
    python bench/queues.py --quick                  see that everything runs, in two or three minutes
    python bench/queues.py --only rq huey           ours and these
    python bench/queues.py --appendfsync always     with a Redis that has its tasks on disk too
    python bench/queues.py --json found.json --svg docs/images

The tasks are the same for all (`bench/queues_peers/tasks.py`), and each library is used in the quickest way that its
documentation shows. Another one begins in each round. Ratios are taken within a round; what counts is their median, and
the lowest and the highest stand beside it. `make bench` has the same rows among all others.

The first run installs the other queues (the `bench` extra of pyproject.toml), each into an environment of its own
beside the one that this runs in.
"""

import argparse
import pathlib
import sys
from collections.abc import Sequence

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from bench import groups, report, run, task_queues
from bench.queue_runs import DURABLE, QUEUES
from bench.queues_report import factors


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, metavar="N", help=f"{groups.FULL.rounds}, or 1 if quick")
    parser.add_argument("--seconds", type=float, metavar="N", help="how long a figure takes, about")
    parser.add_argument("--quick", action="store_true", help="its figures mean nothing")
    names = [queue.name.lower() for queue in QUEUES if not queue.ours]
    parser.add_argument("--only", nargs="+", type=str.lower, choices=names, default=names, help="besides ours")
    parser.add_argument("--appendfsync", choices=task_queues.WHERE, default=task_queues.OFF, help="Redis' setting")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="write everything that was found there")
    parser.add_argument("--svg", metavar="DIR", type=pathlib.Path, help="draw it there")
    asked = parser.parse_args(words)
    if (asked.rounds or 1) < 1 or (asked.seconds or 1) <= 0:
        parser.error("--rounds and --seconds: more than 0")
    return asked


def main(words: Sequence[str] | None = None) -> int:
    asked = arguments(words)
    chosen = [queue for queue in QUEUES if queue.ours or queue.name.lower() in asked.only]
    group = task_queues.TaskQueues(chosen, asked.appendfsync)
    effort = groups.QUICK if asked.quick else groups.FULL
    effort = effort._replace(rounds=asked.rounds or effort.rounds, seconds=asked.seconds or effort.seconds)
    board = report.Board([group], frozenset(row.key for row in group.rows))
    found = run.compare(board, effort, asked)
    where = {queue.name: task_queues.where(queue.name, asked.appendfsync) for queue in chosen}
    print("\n".join(["", *factors.table(board, group, DURABLE, found["peers"], where)]))
    return 1 if board.failures or found["missing"] else 0


if __name__ == "__main__":
    sys.exit(main())
