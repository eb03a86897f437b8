"""The flows of a worker on a real Redis: no job is lost with a worker that dies, whenever it dies.

The document pops with BRPOP. What it pops has left Redis before the worker has the reply, so the job is lost with a
worker that is killed in between, or with a reply that does not arrive; a record made afterwards cannot help. Here no
command pops without leaving a record in the same step:

- A script takes a job: it pops by priority and adds the job to the list of taken jobs, with a lease.
- When there is no job, the worker waits with BRPOPLPUSH, which moves what it pops into a list of our own. That command
  waits at one queue only, so the worker has a waiting connection per queue; the first job that arrives cancels the
  other waits, and goes back to its place while the script takes the job that is next.
- The lease is renewed while the work function runs, and only the holder of the lease can write how the job ended.
- Every worker puts back what has expired: taken jobs whose lease is over, and jobs that have been in a list of popped
  ones for the length of a lease. Workers that were silent for as long are subtracted from the count.

So at any moment a job is in its queue, in one of our lists, or finished. Other programs see the document's keys change
as the document says, and none of ours.
"""

import itertools
import time
from collections.abc import Sequence
from typing import Any, Final

from geartrain.client.redis import flow, names, plain_worker, scripts
from geartrain.client.redis.flow import Flow
from geartrain.client.redis.plain_worker import PlainWorker, TakenJob, WakingJob

_FIRST_POPPED: Final = 6  # its number among the keys of a function; Lua counts from one
_KEYS_PER_FUNCTION: Final = 8
_PASSED_OVER: Final = 3  # the length of the reply for an id that is no job


class LeasedWorker(PlainWorker):
    """A worker on a real Redis; its methods are flows."""

    has_leases = True

    def __init__(self, token: str, lease: float) -> None:
        self._token = token
        self._lease = lease

    def tie(self) -> Flow[None]:
        """Do nothing: jobs have leases."""
        yield from ()

    def register(self, function: str) -> Flow[None]:
        """Register for a function; a second time has no effect."""
        keys = [names.workers(function), names.count(function)]
        yield from flow.evaluate(scripts.REGISTER, keys, [self._token, self._lease])

    def unregister(self, function: str) -> Flow[None]:
        """Unregister from a function."""
        yield from flow.evaluate(scripts.UNREGISTER, [names.workers(function), names.count(function)], [self._token])

    def take(self, functions: Sequence[str], woken: Sequence[WakingJob], seconds: float) -> Flow[TakenJob | None]:
        """Take a job, if there is one. The jobs that ended the last wait go back in the same step."""
        keys = []
        for function in functions:
            keys += [names.taken(function), *_queues(function), *_popped(function)]
        yield from self.put_back([job for job in woken if job.function not in functions])
        arguments = [self._token, self._lease, int(time.time()), len(functions), *functions]
        back = [_place(functions, job) for job in woken if job.function in functions]
        while True:
            reply = yield from flow.evaluate(scripts.TAKE, keys, [*arguments, *itertools.chain.from_iterable(back)])
            if reply is None:
                return None
            if len(reply) > _PASSED_OVER:
                number, priority, id, payload = reply
                return TakenJob(functions[number - 1], priority.decode(), int(id), payload)
            back = []

    def wait(self, functions: Sequence[str], seconds: float) -> Flow[list[WakingJob]]:
        """Wait for jobs without taking them; returns those that arrived."""
        places = [(function, name) for function in functions for name in names.PRIORITIES]
        lists = tuple((names.queue(*place), names.popped(*place)) for place in places)
        moved = yield flow.Moves(lists, seconds)
        return [WakingJob(*place, id) for place, id in zip(places, moved, strict=True) if id is not None]

    def put_back(self, woken: Sequence[WakingJob]) -> Flow[None]:
        """Put jobs that ended a wait back into their queues."""
        for function, priority, id in woken:
            keys = [names.taken(function), names.popped(function, priority), names.queue(function, priority)]
            yield from flow.evaluate(scripts.PUT_BACK, keys, [priority, id])

    def finish(self, task: TakenJob, status: str, output: Any) -> Flow[bool]:
        """Write down how a job ended; false if it was given to another worker meanwhile."""
        keys = [
            names.taken(task.function),
            names.job(task.function, task.number),
            names.channel(task.function),
            names.lock(task.function, task.number),
        ]
        arguments = [
            self._entry(task),
            task.number,
            status,
            output,
            plain_worker.HASH_SECONDS,
            plain_worker.LOCK_SECONDS,
        ]
        return bool((yield from flow.evaluate(scripts.FINISH, keys, arguments)))

    def give_back(self, task: TakenJob) -> Flow[None]:
        """Put a job back into its queue."""
        function = task.function
        keys = [names.taken(function), names.queue(function, task.priority), names.job(function, task.number)]
        yield from flow.evaluate(scripts.GIVE_BACK, keys, [self._entry(task), task.priority, task.number])

    def renew(self, functions: Sequence[str], tasks: Sequence[TakenJob]) -> Flow[list[TakenJob]]:
        """Renew the leases of this worker and its jobs, and put back the jobs of dead workers; three times per lease.

        Returns those of its own jobs that were given to other workers.
        """
        for function in functions:
            yield from self.register(function)
        lost = yield from self.hold(tasks)
        for function in functions:
            yield from self.return_lost(function)
        return lost

    def hold(self, tasks: Sequence[TakenJob]) -> Flow[list[TakenJob]]:
        """Renew the leases of jobs; returns those that were given to other workers."""
        lost = []
        for task in tasks:
            arguments = [self._entry(task), self._lease]
            if not (yield from flow.evaluate(scripts.HOLD, [names.taken(task.function)], arguments)):
                lost.append(task)
        return lost

    def return_lost(self, function: str) -> Flow[None]:
        """Put back the jobs of dead workers, and subtract these from the count."""
        keys = [names.taken(function), names.workers(function), names.count(function)]
        keys += [*_queues(function), *_popped(function)]
        yield from flow.evaluate(scripts.RETURN_LOST, keys, [function, self._lease])

    def _entry(self, task: TakenJob) -> str:
        return f"{task.priority} {task.number} {self._token}"


def _place(functions: Sequence[str], job: WakingJob) -> tuple[int, bytes]:
    """The number of the key of its list of popped jobs, and its id."""
    offset = _KEYS_PER_FUNCTION * functions.index(job.function) + _FIRST_POPPED
    return offset + names.PRIORITIES.index(job.priority), job.id


def _queues(function: str) -> list[str]:
    return [names.queue(function, name) for name in (names.SCHEDULED, *names.PRIORITIES)]


def _popped(function: str) -> list[str]:
    return [names.popped(function, name) for name in names.PRIORITIES]
