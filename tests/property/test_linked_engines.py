"""Two or three engines with links that delay, cut and return frames.

No job is lost or invented, each has one home and ends there once, at most one worker has a job while no link was cut,
and the counters of every engine add up after each step.
"""

from collections import Counter

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from geartrain import compiled
from geartrain.engine.job import LiveJob
from tests.property.audit import audit
from tests.property.linked import GRACE, PlayedServer, PlayedWorker, World
from tests.support.examples import examples

FUNCTIONS = st.sampled_from([b"f", b"f", b"f", b"g"])
INDEX = st.integers(0, 11)
ENDS = st.sampled_from(["complete", "complete", "complete", "fail", "exception", "retry", "back", "again"])


class LinkedEngines(RuleBasedStateMachine):
    """Servers, their workers, and the links between them."""

    @initialize(servers=st.integers(2, 3))
    def begin(self, servers: int) -> None:
        self.world = World(servers)
        self.was_cut = False
        self.submitted = 0
        for server in self.world.servers:
            self._add_worker(server, [b"f"])

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self._end_everything()

    def _server(self, index: int) -> PlayedServer:
        return self.world.servers[index % len(self.world.servers)]

    def _add_worker(self, server: PlayedServer, functions: list[bytes]) -> None:
        worker = PlayedWorker(server)
        for function in functions:
            server.engine.register(worker, function)
        server.workers.append(worker)
        server.engine.sleep(worker)
        server.end_tick()

    def _workers(self) -> list[PlayedWorker]:
        return [worker for server in self.world.servers for worker in server.workers]

    @rule(index=INDEX, function=FUNCTIONS, priority=st.sampled_from([1, 1, 0, 2]))
    def submit(self, index: int, function: bytes, priority: int) -> None:
        server = self._server(index)
        server.engine.submit(function, b"", b"payload", priority, background=True)
        self.submitted += 1
        server.end_tick()

    @rule(index=INDEX)
    def submit_foreground_and_leave(self, index: int) -> None:
        """Nobody waits for it, and so it may be cancelled at any time."""
        server = self._server(index)
        server.engine.submit(b"f", b"", b"payload")
        server.end_tick()

    @rule(index=INDEX)
    def take(self, index: int) -> None:
        """A worker that was woken, or is idle, asks for a job."""
        workers = [worker for worker in self._workers() if not len(worker.running)]
        if workers:
            self._take(workers[index % len(workers)])

    def _take(self, worker: PlayedWorker) -> LiveJob | None:
        worker.woken = False
        job = worker.server.engine.claim(worker)
        if job is None:
            worker.server.engine.sleep(worker)
        worker.server.end_tick()
        return job

    @rule(index=INDEX, end=ENDS)
    def end(self, index: int, end: str) -> None:
        busy = [worker for worker in self._workers() if len(worker.running)]
        if busy:
            self._end(busy[index % len(busy)], end)

    def _end(self, worker: PlayedWorker, end: str) -> None:
        engine = worker.server.engine
        [job] = worker.running.jobs()
        if end == "complete":
            engine.complete(worker, job, b"result")
        elif end == "exception":
            engine.raise_exception(worker, job, b"why", 3)
        elif end == "back":
            engine.hand_back(worker, job)
        elif end == "again":
            engine.reschedule(worker, job, engine.now)
        else:
            engine.fail(worker, job, retry=end == "retry")
        if not worker.idle and not len(worker.running):
            engine.sleep(worker)
        worker.server.end_tick()

    @rule(index=INDEX, both=st.booleans())
    def worker_comes(self, index: int, both: bool) -> None:
        server = self._server(index)
        if len(server.workers) < 3:
            self._add_worker(server, [b"f", b"g"] if both else [b"f"])

    @rule(index=INDEX)
    def worker_leaves(self, index: int) -> None:
        workers = self._workers()
        if len(workers) > 1:
            worker = workers[index % len(workers)]
            worker.server.workers.remove(worker)
            worker.server.engine.remove_worker(worker)
            worker.server.end_tick()

    @rule(index=INDEX)
    def cancel(self, index: int) -> None:
        server = self._server(index)
        jobs = sorted(server.engine.jobs.values(), key=lambda job: job.id)
        if jobs:
            server.engine.cancel(jobs[index % len(jobs)])
            server.end_tick()

    @rule(index=INDEX, most=st.integers(1, 3))
    def deliver(self, index: int, most: int) -> None:
        pairs = sorted(self.world.connections)
        if pairs:
            self.world.deliver(*pairs[index % len(pairs)], most)

    @rule()
    def deliver_all(self) -> None:
        self.world.deliver_all()

    @rule(seconds=st.sampled_from([0.01, 0.03, 0.06, 1.1]))
    def pass_time(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @rule(index=INDEX, seconds=st.sampled_from([0.0, 0.5, GRACE + 0.1]))
    def cut(self, index: int, seconds: float) -> None:
        """Cut a link; it comes back after some time."""
        pairs = sorted(self.world.connections)
        one, other = pairs[index % len(pairs)]
        self.was_cut = True
        self.world.cut(one, other)
        self.world.pass_time(seconds)
        self.world.connect(one, other)

    @invariant()
    def counters_add_up(self) -> None:
        if hasattr(self, "world"):
            for server in self.world.servers:
                _audit(server)

    @invariant()
    def no_job_is_lost_or_invented(self) -> None:
        if hasattr(self, "world"):
            known = 0
            for server in self.world.servers:
                live = {job.id for job in server.engine.jobs.values() if job.background}
                live |= server.engine.dead.keys()
                assert live | server.books.ended.keys() == server.books.accepted_jobs
                assert not live & server.books.ended.keys()
                known += len(server.books.accepted_jobs)
            assert known == self.submitted

    @invariant()
    def one_worker_has_a_job(self) -> None:
        """While no link was cut. Then a job may run again, although its first worker goes on."""
        if hasattr(self, "world") and not self.was_cut:
            held = Counter(job.id for worker in self._workers() for job in worker.running.jobs())
            assert not held or max(held.values()) == 1

    def _end_everything(self) -> None:
        """Every job ends when all links work and all workers do."""
        self._add_worker(self.world.servers[0], [b"f", b"g"])
        for _ in range(500):
            self.world.deliver_all()
            for worker in self._workers():
                while len(worker.running):
                    self._end(worker, "complete")
                self._take(worker)
            self.world.deliver_all()
            self.world.pass_time(0.5)
            if not any(len(server.engine.jobs) for server in self.world.servers):
                break
        for server in self.world.servers:
            left = [(job.handle, job.state, job.owner) for job in server.engine.jobs.values()]
            assert not left, f"left at {server.door.options.name}: {left}"
            assert not server.engine.borrowed
            for link in server.door.links.values():
                assert not link.lending.lent
                assert not link.loan.jobs
                assert not link.loan.unsettled, "what was settled is forgotten"


def _audit(server: PlayedServer) -> None:
    borrowed = server.engine.borrowed
    for link in server.door.links.values():
        for id in link.loan.jobs:
            assert borrowed[id] is link.loan
    assert set(borrowed) == {id for link in server.door.links.values() for id in link.loan.jobs}
    assert all(not server.engine.jobs.get(id).background for id in borrowed)  # type: ignore[union-attr]
    submitted = server.engine.submitted
    foreground = sum(
        not job.background and job.id not in borrowed for job in server.engine.jobs.values()
    ) + _ended_foreground(server)
    assert submitted == len(server.books.accepted_jobs) + foreground
    audit(server.engine, [*server.workers, *server.distant_workers()])


def _ended_foreground(server: PlayedServer) -> int:
    return server.engine.outcomes.total - len(server.books.ended) - len(server.engine.dead)


LinkedEngines.TestCase.settings = examples(150, stateful_step_count=60)


# Compiled code takes nothing that plays the part of a tick loop or of a connection.
@pytest.mark.skipif(compiled.form() == "compiled", reason="the run as plain Python has it")
class TestLinkedEngines(LinkedEngines.TestCase):  # type: ignore[misc,valid-type]
    """What hypothesis makes of the machine."""
