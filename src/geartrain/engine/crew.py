"""Crews: workers that offer exactly the same functions, and the jobs that are ready for them.

Assigning a job must not walk all functions that a worker offers, and waking a worker must not walk all workers of a
function. Workers come in crews, since a hundred processes of one program offer one set of functions. A crew keeps its
idle workers in the order in which they became idle, those whose grabs linger before those that sleep, and for each
priority the queues that have jobs, in the order of whose turn it is.

Nor must a new job walk all crews of its function, since every worker may be a crew of its own. Therefore a list is
corrected only by the verb that finds it outdated:

- A crew has a `ReadyQueue` for each queue of its functions. It is in the crew's list `ready` while the queue may have
  jobs. A claim that finds the queue empty parks it at the queue, and the next job unparks it.
- A function has an `IdleCrew` for each of its crews. It is in the function's list `idle_crews` while the crew may have
  an idle worker. A wake-up that finds none parks it at the crew, and the next worker that becomes idle unparks it.
  Workers of other servers (`loans.py`) are in crews of their own, and in the list `distant_crews`, which comes second.

Nor must a worker that changes its functions again and again cost what its number of functions costs. From the first
change after it has asked for jobs it has a crew of its own, and each further change adds or removes one function of
that crew. So a crew is built at most twice for every worker that announces its functions.
"""

from mypy_extensions import i64

from geartrain.engine.function import Function
from geartrain.engine.queue import JobQueue, LinkedList, LinkedNode
from geartrain.engine.worker import Worker


class ReadyQueue(LinkedNode):
    """A queue in the list of a crew, or parked at the queue while the crew considers it empty, held or paused."""

    __slots__ = ("crew", "function", "is_parked", "priority", "queue")

    def __init__(self, crew: "Crew", function: Function, priority: int) -> None:
        super().__init__()
        self.crew = crew
        self.function = function
        self.priority = priority
        self.queue = function.queues[priority]
        self.is_parked = True
        self.queue.parked.append(self)

    def unpark(self) -> None:
        """The queue has jobs: list it at the crew."""
        self.is_parked = False
        self.queue.parked.remove(self)
        self.crew.ready[self.priority].append(self)

    def park(self) -> None:
        """The queue has no job to assign: wait there for the next one."""
        self.is_parked = True
        self.crew.ready[self.priority].remove(self)
        self.queue.parked.append(self)

    def end(self) -> None:
        """The crew no longer offers the function."""
        members = self.queue.parked if self.is_parked else self.crew.ready[self.priority]
        members.remove(self)


class IdleCrew(LinkedNode):
    """A crew in the list of a function, or parked at the crew while none of its workers is idle."""

    __slots__ = ("crew", "function", "idle_crews", "is_parked")

    def __init__(self, crew: "Crew", function: Function) -> None:
        super().__init__()
        self.crew = crew
        self.function = function
        self.idle_crews = function.distant_crews if crew.is_distant else function.idle_crews
        self.is_parked = True
        crew.parked.append(self)

    def end(self) -> None:
        """The crew no longer offers the function."""
        members = self.crew.parked if self.is_parked else self.idle_crews
        members.remove(self)


class CrewFunction:
    """A function of a crew: its entries in the lists of both."""

    __slots__ = ("idle_crew", "ready_queues")

    def __init__(self, crew: "Crew", function: Function) -> None:
        self.idle_crew = IdleCrew(crew, function)
        self.ready_queues = [ReadyQueue(crew, function, priority) for priority in range(len(function.queues))]

    def end(self) -> None:
        """The crew no longer offers the function."""
        self.idle_crew.end()
        for ready_queue in self.ready_queues:
            ready_queue.end()


class Crew:
    """The workers of one distinct set of functions, or one worker that changed its set; it exists while it has any."""

    __slots__ = (
        "changed_crews",
        "cold_queue",
        "functions",
        "idle",
        "idle_size",
        "is_changed",
        "is_distant",
        "key",
        "last_claim_at",
        "lingering",
        "parked",
        "ready",
        "size",
    )

    def __init__(self, key: frozenset[bytes] | None, functions: list[Function], is_distant: bool = False) -> None:
        self.key = key  # the names of the functions; None: no other worker may join
        self.is_distant = is_distant  # its workers are at another server: those of this one are woken first
        self.functions: dict[Function, CrewFunction] = {}
        self.size = 0  # how many workers it has
        self.changed_crews: list[Crew] | None = None  # see `note_change`
        self.is_changed = False  # it is in that list
        self.idle_size: i64 = 0  # how many of its workers are idle
        self.idle: LinkedList[Worker] = LinkedList()  # those that sleep
        self.lingering: LinkedList[Worker] = LinkedList()  # those whose requests for a job are not answered yet
        self.ready: list[LinkedList[ReadyQueue]] = [LinkedList(), LinkedList(), LinkedList()]  # by priority
        self.parked: LinkedList[IdleCrew] = LinkedList()  # those of functions that consider it busy
        self.cold_queue: JobQueue | None = None  # that was left out last, as the payload of its next job is being read
        self.last_claim_at = 0.0  # when one of its workers last got a job; the Gearman door's lingering grabs use it
        for function in reversed(functions):  # the turns begin with the one registered last, as in gearmand
            self.add(function)

    def add(self, function: Function) -> None:
        """Offer one more function; if it has jobs, its turn comes after the others."""
        entry = self.functions[function] = CrewFunction(self, function)
        self.note_change()
        for ready_queue in entry.ready_queues:
            queue = ready_queue.queue
            if queue.size and not queue.is_held and not function.resting:
                ready_queue.unpark()

    def remove(self, function: Function) -> None:
        """No longer offer a function."""
        self.functions.pop(function).end()
        self.note_change()

    def note_change(self) -> None:
        """Other servers, if there are any, hear of its functions and idle workers at the end of the tick."""
        changed_crews = self.changed_crews
        if changed_crews is not None and not self.is_changed:
            self.is_changed = True
            changed_crews.append(self)

    def disband(self) -> None:
        """The last worker left."""
        for entry in self.functions.values():
            entry.end()
        self.functions.clear()

    def add_idle(self, worker: Worker, lingers: bool = False) -> None:
        """A worker becomes idle. One that lingers gets a job before those that sleep: it need not be woken."""
        worker.idle = True
        worker.lingers = lingers
        if lingers:
            self.lingering.append(worker)
        else:
            self.idle.append(worker)
        self.idle_size += 1
        if self.changed_crews is not None:
            self.note_change()
        while not self.parked.is_empty:
            entry = self.parked.first
            assert entry is not None
            self.parked.remove(entry)
            entry.is_parked = False
            entry.idle_crews.append(entry)

    def remove_idle(self, worker: Worker) -> None:
        """An idle worker is no longer idle."""
        worker.idle = False
        if worker.lingers:
            worker.lingers = False
            self.lingering.remove(worker)
        else:
            self.idle.remove(worker)
        self.idle_size -= 1
        if self.changed_crews is not None:
            self.note_change()

    @property
    def waits_for_payload(self) -> bool:
        """Whether the next job is missing only until its payload has been read."""
        return self.cold_queue is not None and self.cold_queue.is_reading

    def has_work(self) -> bool:
        """Whether `next_ready` would return a queue."""
        return self.first_ready() is not None

    def next_ready(self) -> ReadyQueue | None:
        """Return the queue of the next job: the highest priority first, and within it each function in turn."""
        entry = self.first_ready()
        if entry is not None:
            ready = self.ready[entry.priority]
            if ready.last is not entry:
                ready.remove(entry)
                ready.append(entry)
        return entry

    def first_ready(self) -> ReadyQueue | None:
        """Return the queue of the next job; its function keeps its turn."""
        for ready in self.ready:
            while not ready.is_empty:
                entry = ready.first
                assert entry is not None
                queue = entry.queue
                if queue.size and not queue.is_held and not entry.function.resting:
                    if not entry.function.cold:
                        return entry
                    waiting = entry.function.waiting_queue(entry.priority)
                    if waiting is None:
                        return entry
                    self.cold_queue = waiting
                entry.park()
        return None


def announce(queue: JobQueue) -> None:
    """A queue has jobs: list it at every crew that considers it empty."""
    while not queue.parked.is_empty:
        entry = queue.parked.first
        assert entry is not None
        entry.unpark()


def pop_idle_worker(idle_crews: LinkedList[IdleCrew]) -> Worker | None:
    """Remove and return a worker of the crew whose turn it is: the one that lingers, or else sleeps, longest."""
    while not idle_crews.is_empty:
        entry = idle_crews.first
        assert entry is not None
        crew = entry.crew
        worker = crew.idle.first if crew.lingering.is_empty else crew.lingering.first
        idle_crews.remove(entry)
        if worker is not None:
            crew.remove_idle(worker)
        if crew.idle_size:
            idle_crews.append(entry)
        else:
            entry.is_parked = True
            crew.parked.append(entry)
        if worker is not None:
            return worker
    return None
