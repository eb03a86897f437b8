"""Workers that offer exactly the same functions, and the work that is there for them.

Handing out a job must not walk all the functions that a worker offers, and waking a worker must not walk all
the workers of a function. Both are possible because workers come in crews: a hundred processes of one program
offer one set of functions. A crew keeps its idle workers in the order in which they went idle, and for each
priority the functions that have jobs, in the order of whose turn it is.

Nor must a job walk all the crews of its function, since every worker may be a crew of its own. So each of them is
told only what it has found out to be over. A crew and a function have a `Turn` for each priority: it stands in
the crew's list of functions that may have jobs, and when a claim finds none it goes over to the lane, which sends it
back with the next job. They have a `Call` as well: it stands in the function's list of crews that may have somebody
idle, and when nobody is it goes over to the crew, which sends it back with the next worker that goes idle.
"""

from geartrain.engine.function import Function
from geartrain.engine.queue import JobQueue, LinkedList, Node
from geartrain.engine.worker import Worker


class ReadyQueue(Node):
    """What one crew knows of one lane: that it may have jobs, or that it has none."""

    __slots__ = ("crew", "function", "listed", "priority", "queue")

    def __init__(self, crew: "Crew", function: Function, priority: int) -> None:
        super().__init__()
        self.crew = crew
        self.function = function
        self.priority = priority
        self.queue = function.queues[priority]
        self.listed = False  # stands in the crew's list; otherwise in the lane's
        self.queue.unaware.join(self)

    def announce(self) -> None:
        """There are jobs."""
        self.listed = True
        self.queue.unaware.leave(self)
        self.crew.ready[self.priority].join(self)

    def strike(self) -> None:
        """There are none."""
        self.listed = False
        self.crew.ready[self.priority].leave(self)
        self.queue.unaware.join(self)

    def end(self) -> None:
        """The crew is no more."""
        line = self.crew.ready[self.priority] if self.listed else self.queue.unaware
        line.leave(self)


class IdleCrew(Node):
    """What one function knows of one crew: that somebody there may be idle, or that nobody is."""

    __slots__ = ("crew", "function", "listed")

    def __init__(self, crew: "Crew", function: Function) -> None:
        super().__init__()
        self.crew = crew
        self.function = function
        self.listed = False  # stands in the function's list; otherwise in the crew's
        crew.unheard.join(self)

    def end(self) -> None:
        """The crew is no more."""
        line = self.function.calls if self.listed else self.crew.unheard
        line.leave(self)


class Crew:
    """One per distinct set of functions; it exists while it has workers."""

    __slots__ = ("_calls", "_turns", "functions", "idle", "key", "last_claim_at", "ready", "size", "unheard")

    def __init__(self, key: frozenset[bytes], functions: list[Function]) -> None:
        self.key = key
        self.functions = functions
        self.size = 0  # how many workers it has
        self.idle: LinkedList[Worker] = LinkedList()
        self.ready: list[LinkedList[ReadyQueue]] = [LinkedList(), LinkedList(), LinkedList()]  # by priority
        self.unheard: LinkedList[IdleCrew] = LinkedList()  # calls to be sent back when a worker goes idle
        self.last_claim_at = 0.0  # when one of its workers last got a job: doors linger by it
        self._turns: list[ReadyQueue] = []
        self._calls: list[IdleCrew] = []
        for function in functions:
            function.crews[self] = None
            self._calls.append(IdleCrew(self, function))
            for priority in range(len(function.queues)):
                turn = ReadyQueue(self, function, priority)
                self._turns.append(turn)
                if turn.queue.size and not function.paused:
                    turn.announce()

    def end(self) -> None:
        """Its last worker has left."""
        for function in self.functions:
            del function.crews[self]
        for turn in self._turns:
            turn.end()
        for call in self._calls:
            call.end()

    def add_idle(self, worker: Worker) -> None:
        """A worker goes idle: whoever asked in vain may ask again."""
        worker.idle = True
        self.idle.join(worker)
        call = self.unheard.first
        while call is not None:
            self.unheard.leave(call)
            call.listed = True
            call.function.calls.join(call)
            call = self.unheard.first

    def remove_idle(self, worker: Worker) -> None:
        """An idle worker is idle no more."""
        worker.idle = False
        self.idle.leave(worker)

    def has_work(self) -> bool:
        """Whether `next_turn` would find a lane."""
        return self._first_turn() is not None

    def next_turn(self) -> ReadyQueue | None:
        """Whose lane gives the next job: the highest priority first, within it each function in turn."""
        turn = self._first_turn()
        if turn is not None:
            ready = self.ready[turn.priority]
            if ready.last is not turn:
                ready.leave(turn)
                ready.join(turn)
        return turn

    def _first_turn(self) -> ReadyQueue | None:
        for ready in self.ready:
            turn = ready.first
            while turn is not None:
                if turn.queue.size and not turn.function.paused:
                    return turn
                turn.strike()
                turn = ready.first
        return None


def announce(queue: JobQueue) -> None:
    """A lane has jobs: everybody who believes that it has none is told."""
    turn = queue.unaware.first
    while turn is not None:
        turn.announce()
        turn = queue.unaware.first


def next_idle(function: Function) -> Worker | None:
    """The worker that has waited longest in the crew whose turn it is; it counts as woken now."""
    calls = function.calls
    call = calls.first
    while call is not None:
        crew = call.crew
        worker = crew.idle.first
        calls.leave(call)
        if worker is not None:
            crew.remove_idle(worker)
        if crew.idle.first is not None:
            calls.join(call)
        else:
            call.listed = False
            crew.unheard.join(call)
        if worker is not None:
            return worker
        call = calls.first
    return None
