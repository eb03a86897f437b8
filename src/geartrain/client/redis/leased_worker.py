"""What a worker does on a real Redis, so that no job is lost with a worker that dies, whenever it dies.

The document pops with BRPOP. What it pops is gone from Redis before the worker knows of it, so a worker that is killed
in between, or whose answer is lost on the way, takes the job with it, and no record made afterwards can help. Here no
command pops without leaving a record in the same step:

- A job is taken by one script: it pops by priority and writes the job into the list of jobs taken, with a lease.
- When there is none, the worker waits with BRPOPLPUSH, which moves what it pops into a list of our own. That
  command knows one queue only, so the worker waits on a connection per queue; the first job that comes calls off the
  other waits, and what came goes back to its place while the script takes the job that is next.
- The lease is renewed while the work goes on, and the end of a job is written only by whoever still holds it.
- Whichever of our workers comes along returns what has run out: jobs taken whose lease is over, and jobs that have been
  in a list of popped ones for a lease. Workers that were not heard of for as long are taken off the count.

So at any moment a job is in its queue, in a list that is looked after, or finished. Other programs see the document's
keys change as the document says, and none of ours.
"""

import itertools
import time
from collections.abc import Sequence
from typing import Any, Final

from geartrain.client.redis import flow, names, plain_worker, scripts
from geartrain.client.redis.flow import Flow
from geartrain.client.redis.plain_worker import PlainWorker, Task, Woken

_FIRST_POPPED: Final = 6  # among the keys of a function; Lua counts from one
_KEYS_PER_FUNCTION: Final = 8
_PASSED_OVER: Final = 3  # how much the script says of an id that is no job


class LeasedWorker(PlainWorker):
    """One worker's way; each method is a flow."""

    needs_care = True

    def __init__(self, token: str, lease: float) -> None:
        self._token = token
        self._lease = lease

    def register(self, function: str) -> Flow[None]:
        """Be counted, once."""
        keys = [names.workers(function), names.count(function)]
        yield from flow.evaluate(scripts.REGISTER, keys, [self._token, self._lease])

    def unregister(self, function: str) -> Flow[None]:
        """Be counted no more."""
        yield from flow.evaluate(scripts.UNREGISTER, [names.workers(function), names.count(function)], [self._token])

    def take(self, functions: Sequence[str], woken: Sequence[Woken], seconds: float) -> Flow[Task | None]:
        """A job that is to be done, if there is one. What has ended the wait before goes back in the same step."""
        keys = []
        for function in functions:
            keys += [names.taken(function), *_queues(function), *_popped(function)]
        yield from self.put_back([job for job in woken if job.function not in functions])
        words = [self._token, self._lease, int(time.time()), len(functions), *functions]
        back = [_place(functions, job) for job in woken if job.function in functions]
        while True:
            found = yield from flow.evaluate(scripts.TAKE, keys, [*words, *itertools.chain.from_iterable(back)])
            if found is None:
                return None
            if len(found) > _PASSED_OVER:
                number, priority, id, payload = found
                return Task(functions[number - 1], priority.decode(), int(id), payload)
            back = []

    def wait(self, functions: Sequence[str], seconds: float) -> Flow[list[Woken]]:
        """Wait for a job, without taking it; those that have come."""
        places = [(function, name) for function in functions for name in names.PRIORITIES]
        lists = tuple((names.queue(*place), names.popped(*place)) for place in places)
        moved = yield flow.Moves(lists, seconds)
        return [Woken(*place, id) for place, id in zip(places, moved, strict=True) if id is not None]

    def put_back(self, woken: Sequence[Woken]) -> Flow[None]:
        """Have nothing to do with jobs that have come."""
        for function, priority, id in woken:
            keys = [names.taken(function), names.popped(function, priority), names.queue(function, priority)]
            yield from flow.evaluate(scripts.PUT_BACK, keys, [priority, id])

    def finish(self, task: Task, status: str, output: Any) -> Flow[bool]:
        """Write down what came of a job; false if it was given to another worker meanwhile."""
        keys = [
            names.taken(task.function),
            names.job(task.function, task.number),
            names.channel(task.function),
            names.lock(task.function, task.number),
        ]
        words = [self._entry(task), task.number, status, output, plain_worker.HASH_SECONDS, plain_worker.LOCK_SECONDS]
        return bool((yield from flow.evaluate(scripts.FINISH, keys, words)))

    def give_back(self, task: Task) -> Flow[None]:
        """Put a job back into its queue."""
        function = task.function
        keys = [names.taken(function), names.queue(function, task.priority), names.job(function, task.number)]
        yield from flow.evaluate(scripts.GIVE_BACK, keys, [self._entry(task), task.priority, task.number])

    def care(self, functions: Sequence[str], tasks: Sequence[Task]) -> Flow[list[Task]]:
        """Say that this worker is alive and at it, and return what others have lost; thrice in a lease.

        Returns those of its own tasks that were given to others.
        """
        for function in functions:
            yield from self.register(function)
        lost = []
        for task in tasks:
            words = [self._entry(task), self._lease]
            if not (yield from flow.evaluate(scripts.HOLD, [names.taken(task.function)], words)):
                lost.append(task)
        for function in functions:
            keys = [names.taken(function), names.workers(function), names.count(function)]
            keys += [*_queues(function), *_popped(function)]
            yield from flow.evaluate(scripts.RETURN_LOST, keys, [function, self._lease])
        return lost

    def _entry(self, task: Task) -> str:
        return f"{task.priority} {task.number} {self._token}"


def _place(functions: Sequence[str], job: Woken) -> tuple[int, bytes]:
    """The number of the key of its popped list, and its id."""
    offset = _KEYS_PER_FUNCTION * functions.index(job.function) + _FIRST_POPPED
    return offset + names.PRIORITIES.index(job.priority), job.id


def _queues(function: str) -> list[str]:
    return [names.queue(function, name) for name in (names.SCHEDULED, *names.PRIORITIES)]


def _popped(function: str) -> list[str]:
    return [names.popped(function, name) for name in names.PRIORITIES]
