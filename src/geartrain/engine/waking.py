"""Crews and idle workers: which of them hear of a job, and when.

A job wakes one worker. If jobs are still queued a moment later, more are woken: the first one may serve several servers
and be busy with a job of another one. Workers of other servers (`loans.py`) are woken if none of this one is idle.
"""

from collections import deque

from geartrain.engine import crew as crews
from geartrain.engine.crew import Crew
from geartrain.engine.deadlines import NEVER
from geartrain.engine.function import Function
from geartrain.engine.permissions import Permissions
from geartrain.engine.policy import Policy
from geartrain.engine.worker import Worker


class WorkerWaking(Permissions):
    """The crews of workers, and the wakes that are planned."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.crews: dict[frozenset[bytes], Crew] = {}  # by their functions; those that workers may join
        self.changed_crews: list[Crew] | None = None  # of which other servers must hear; None: there are none
        self.has_planned_wakes = False
        self._planned_wakes: deque[tuple[float, Function]] = deque()
        # Functions that have jobs to assign again; idle workers hear of it with the next tick.
        self._freed: dict[Function, None] = {}

    # Crews

    def _join_crew(self, worker: Worker) -> Crew:
        """Add a worker to the crew of its abilities, when it first asks for jobs."""
        if worker.is_distant:
            own_crew = worker.crew = Crew(None, self._offered_functions(worker), is_distant=True)
            own_crew.size = 1
            return own_crew
        key = frozenset(worker.abilities)
        crew = self.crews.get(key)
        if crew is None:
            crew = self.crews[key] = Crew(key, self._offered_functions(worker))
            crew.changed_crews = self.changed_crews
        crew.size += 1
        crew.note_change()
        worker.crew = crew
        return crew

    def _own_crew(self, worker: Worker) -> bool:
        """Give a worker whose abilities changed a crew that no other joins; return whether it is a new one."""
        crew = worker.crew
        assert crew is not None
        if crew.size == 1:
            if crew.key is not None:
                del self.crews[crew.key]
                crew.key = None
            return False
        crew.size -= 1
        crew.note_change()
        worker.crew = own_crew = Crew(None, self._offered_functions(worker))
        own_crew.changed_crews = self.changed_crews
        own_crew.size = 1
        own_crew.last_claim_at = crew.last_claim_at
        return True

    def _leave_crew(self, worker: Worker) -> None:
        """Remove a worker from its crew; a crew without workers is disbanded."""
        crew = worker.crew
        if crew is None:
            return
        worker.crew = None
        if worker.idle:
            crew.remove_idle(worker)
        crew.size -= 1
        crew.note_change()
        if not crew.size:
            if crew.key is not None:
                del self.crews[crew.key]
            crew.disband()

    def _offered_functions(self, worker: Worker) -> list[Function]:
        return [self.functions[name] for name in worker.abilities]

    # Waking workers

    def _wake(self, function: Function, count: int) -> None:
        """Wake up to `count` idle workers; if jobs are still queued then, plan to look again."""
        for _ in range(count):
            worker = crews.pop_idle_worker(function.idle_crews)
            if worker is None:
                if not function.distant_crews.is_empty:
                    self._wake_distant(function)
                break
            worker.wake()
            if not function.next_wake_at and function.queued:
                function.next_wake_at = self.now + self.policy.wake_grace
                self._planned_wakes.append((function.next_wake_at, function))
                self.has_planned_wakes = True

    def _wake_distant(self, function: Function) -> None:
        """Let other servers have jobs for which no worker of this one is idle. Each takes what it has room for."""
        while function.queued:
            worker = crews.pop_idle_worker(function.distant_crews)
            if worker is None:
                return
            worker.wake()
            if worker.idle:  # it has room, and may not have the next job
                return

    def _wake_more(self) -> None:
        """Where jobs are still queued some time after a worker was woken, wake one more worker per job.

        A planned time that is further away than the grace period dates from before a change of the clock or the policy.
        """
        latest = self.now + self.policy.wake_grace
        while self._planned_wakes and not self.now < self._planned_wakes[0][0] <= latest:
            _, function = self._planned_wakes.popleft()
            function.next_wake_at = 0.0
            self._wake_all(function)
        if self._freed:
            freed, self._freed = self._freed, {}
            for function in freed:
                self._wake_all(function)
        self._plan_wakes()

    def _wake_all(self, function: Function) -> None:
        """Wake one idle worker for each job that may be assigned."""
        if not function.resting:
            flow = function.flow
            self._wake(function, function.assignable if flow is None else flow.assignable(function, self.now))

    def wake_soon(self, function: Function) -> None:
        """Wake idle workers for the jobs of a function with the next tick. One that is busy finds them by itself."""
        if not (function.idle_crews.is_empty and function.distant_crews.is_empty):
            self._freed[function] = None
            self.has_planned_wakes = True

    def next_wake(self) -> float:
        """When the next wake is planned. A time that is too far away dates from before a change of the clock."""
        if self._freed:
            return self.now
        return min(self._planned_wakes[0][0], self.now + self.policy.wake_grace) if self._planned_wakes else NEVER

    def _plan_wakes(self) -> None:
        self.has_planned_wakes = len(self._planned_wakes) > 0 or len(self._freed) > 0
