"""Workers that offer exactly the same functions, and the work that is there for them.

Handing out a job must not walk all the functions that a worker offers, and waking a worker must not walk all
the workers of a function. Both are possible because workers come in crews: a hundred processes of one program
offer one set of functions. A crew keeps its idle workers in the order in which they went idle, and for each
priority the functions that have jobs, in the order of whose turn it is.

A function is put on a crew's list when its lane fills, and struck off by the claim that finds the lane empty.
So the lists may name functions that other crews have emptied meanwhile, but never miss one that has jobs.
"""

from collections import OrderedDict

from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker


class Crew:
    """One per distinct set of functions; it exists while it has workers."""

    __slots__ = ("claimed_at", "functions", "idle", "key", "ready", "size")

    def __init__(self, key: frozenset[bytes], functions: list[Function]) -> None:
        self.key = key
        self.functions = functions
        self.size = 0  # how many workers it has
        self.idle: OrderedDict[Worker, None] = OrderedDict()
        self.ready: tuple[OrderedDict[Function, None], OrderedDict[Function, None], OrderedDict[Function, None]] = (
            OrderedDict(),
            OrderedDict(),
            OrderedDict(),
        )  # by priority
        self.claimed_at = 0.0  # when one of its workers last got a job: doors linger by it
        for function in functions:
            self.list_all(function)

    def list_all(self, function: Function) -> None:
        """Put a function on the list of every priority at which it has jobs."""
        if function.paused:
            return
        for priority, lane in enumerate(function.lanes):
            if lane.size:
                self.ready[priority][function] = None

    def strike(self, function: Function) -> None:
        """Take a function off all lists."""
        for ready in self.ready:
            ready.pop(function, None)

    def has_work(self) -> bool:
        """Whether `next_job` would find a job."""
        for priority, ready in enumerate(self.ready):
            while ready:
                function = next(iter(ready))
                if function.lanes[priority].size and not function.paused:
                    return True
                del ready[function]
        return False

    def next_job(self) -> LiveJob | None:
        """Take the next job: the highest priority first, within it each function in turn."""
        for priority, ready in enumerate(self.ready):
            while ready:
                function = next(iter(ready))
                lane = function.lanes[priority]
                if lane.size and not function.paused:
                    if len(ready) > 1:
                        ready.move_to_end(function)
                    return lane.take()
                del ready[function]
        return None
