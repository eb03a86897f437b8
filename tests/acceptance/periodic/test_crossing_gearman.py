"""Jobs that come in by one of the two doors and are run behind the other."""

from collections.abc import Callable

import pytest

from tests.support.gearman_peer import Kind
from tests.support.gearman_peer import Peer as GearmanPeer
from tests.support.peer import until
from tests.support.periodic_peer import WORKER, Command, Dial, Dialect, Peer, job, text

Gearman = Callable[[], GearmanPeer]


class TestGearmanClient:
    """Periodic workers run its jobs."""

    @pytest.fixture
    def submitter(self, gearman: Gearman) -> GearmanPeer:
        return gearman()

    def test_result(self, submitter: GearmanPeer, worker: Peer, function: bytes) -> None:
        handle = submitter.submit(function, b"unique", b"payload")
        given = worker.take()
        assert given[1:4] == (function, b"unique", b"payload")
        worker.done(given, b"result")
        submitter.expect(Kind.WORK_COMPLETE, handle, b"result")

    def test_a_job_without_a_unique_key_is_called_by_its_handle(
        self, submitter: GearmanPeer, worker: Peer, function: bytes
    ) -> None:
        handles = [submitter.submit(function, b"", payload) for payload in (b"one", b"two")]
        jobs = [worker.take(), worker.take()]
        assert [given.name for given in jobs] == handles
        for given in reversed(jobs):
            worker.done(given, given.payload)
        submitter.expect(Kind.WORK_COMPLETE, handles[1], b"two")
        submitter.expect(Kind.WORK_COMPLETE, handles[0], b"one")

    def test_failure_of_a_foreground_job_is_final(
        self, submitter: GearmanPeer, worker: Peer, function: bytes, client: Peer
    ) -> None:
        handle = submitter.submit(function)
        worker.fail(worker.take())
        submitter.expect(Kind.WORK_FAIL, handle)
        assert client.status()[function][1] == 0

    def test_failure_of_a_background_job_is_tried_again(
        self, submitter: GearmanPeer, worker: Peer, function: bytes
    ) -> None:
        handle = submitter.submit(function, kind=Kind.SUBMIT_JOB_BG)
        worker.fail(worker.take())
        worker.silence()
        assert submitter.status(handle) == (1, 0, 0, 0)
        worker.done(worker.take())
        worker.silence()
        assert submitter.status(handle) == (0, 0, 0, 0)

    def test_lost_worker(
        self, submitter: GearmanPeer, worker: Peer, hire: Callable[..., Peer], function: bytes
    ) -> None:
        handle = submitter.submit(function, b"unique")
        worker.take()
        worker.close()
        other = hire(function)
        other.done(other.take(), b"of the second")
        submitter.expect(Kind.WORK_COMPLETE, handle, b"of the second")

    def test_put_off(self, submitter: GearmanPeer, worker: Peer, function: bytes) -> None:
        handle = submitter.submit(function, b"unique", b"payload")
        worker.later(worker.take(), 0, 5)
        given = worker.take()
        assert (given.payload, given.count) == (b"payload", 5)
        worker.done(given, b"result")
        submitter.expect(Kind.WORK_COMPLETE, handle, b"result")

    def test_partial_data(self, submitter: GearmanPeer, dial: Dial, function: bytes) -> None:
        worker = dial(Dialect.TODAY, WORKER).offer(function)
        handle = submitter.submit(function)
        given = worker.take()
        worker.part(given, b"part")
        submitter.expect(Kind.WORK_DATA, handle, b"part")
        worker.done(given, b"whole")
        submitter.expect(Kind.WORK_COMPLETE, handle, b"whole")

    def test_removed(self, submitter: GearmanPeer, worker: Peer, function: bytes, client: Peer) -> None:
        """By its unique key, or by its handle if it has none."""
        for unique in (b"unique", b""):
            handle = submitter.submit(function, unique)
            worker.take()
            client.succeed(Command.REMOVE_JOB, text(function) + text(unique or handle))
            submitter.expect(Kind.WORK_FAIL, handle)

    def test_a_gearman_job_joins_one_of_periodic(
        self, submitter: GearmanPeer, worker: Peer, function: bytes, client: Peer
    ) -> None:
        client.submit(function, b"name", b"payload")
        handle = submitter.submit(function, b"name", b"ignored, as Gearman has it")
        given = worker.take()
        assert given.payload == b"payload"
        worker.done(given, b"result")
        submitter.expect(Kind.WORK_COMPLETE, handle, b"result")

    def test_locks_hold_for_gearman_s_jobs_too(self, submitter: GearmanPeer, dial: Dial, function: bytes) -> None:
        worker = dial(Dialect.TODAY, WORKER).offer(function)
        handles = [submitter.submit(function) for _ in range(2)]
        jobs = [worker.take(), worker.take()]
        assert [worker.acquire(given, b"lock " + function) for given in jobs] == [True, False]
        worker.done(jobs[0], b"one")
        again = worker.take()
        assert again.name == handles[1]
        worker.done(again, b"two")
        submitter.expect(Kind.WORK_COMPLETE, handles[0], b"one")
        submitter.expect(Kind.WORK_COMPLETE, handles[1], b"two")


class TestPeriodicClient:
    """Gearman workers run its jobs."""

    @pytest.fixture
    def runner(self, gearman: Gearman, function: bytes) -> GearmanPeer:
        return gearman().register(function)

    def test_result(self, client: Peer, runner: GearmanPeer, function: bytes) -> None:
        waiting = client.run(function, b"name", b"payload")
        given = runner.grab(Kind.GRAB_JOB_UNIQ)
        assert (given.function, given.unique, given.data) == (function, b"name", b"payload")
        runner.send(Kind.WORK_COMPLETE, given.handle, b"result")
        assert client.data(waiting) == b"result"

    def test_a_job_that_nobody_waits_for(self, client: Peer, runner: GearmanPeer, function: bytes) -> None:
        client.submit(function, b"name", b"payload")
        given = runner.grab()
        runner.send(Kind.WORK_COMPLETE, given.handle, b"result")
        runner.silence()
        assert client.status()[function][:3] == [1, 0, 0]

    @pytest.mark.parametrize("end", [Kind.WORK_FAIL, Kind.WORK_EXCEPTION])
    def test_failure(self, client: Peer, runner: GearmanPeer, function: bytes, end: Kind, dialect: Dialect) -> None:
        """It is final, as Gearman has it; those who know only results get an empty one."""
        waiting = client.run(function, b"name")
        given = runner.grab()
        runner.send(end, *[given.handle, b"words"][: 2 if end is Kind.WORK_EXCEPTION else 1])
        assert client.data(waiting) == (b"failed" if dialect is Dialect.TODAY else b"")

    def test_lost_worker(self, client: Peer, runner: GearmanPeer, gearman: Gearman, function: bytes) -> None:
        waiting = client.run(function, b"name")
        runner.grab()
        runner.close()
        other = gearman().register(function)
        given = other.grab()
        other.send(Kind.WORK_COMPLETE, given.handle, b"of the second")
        assert client.data(waiting) == b"of the second"

    def test_partial_data(self, dial: Dial, runner: GearmanPeer, function: bytes) -> None:
        client = dial(Dialect.TODAY)
        receiving = client.send(Command.RECV_DATA, job(function, b"name"))
        client.expect(receiving, Command.SUCCESS)
        waiting = client.run(function, b"name")
        given = runner.grab()
        for kind, said in ((Kind.WORK_DATA, b"part"), (Kind.WORK_WARNING, b"careful"), (Kind.WORK_DATA, b"more")):
            runner.send(kind, given.handle, said)
        runner.send(Kind.WORK_COMPLETE, given.handle, b"whole")
        assert [client.data(receiving) for _ in range(3)] == [b"part", b"more", b"EOF"]
        assert client.data(waiting) == b"whole"

    def test_scheduled(self, client: Peer, runner: GearmanPeer, function: bytes) -> None:
        client.submit(function, b"name", b"payload", 4_000_000_000)
        assert runner.take() is None
        client.submit(function, b"name", b"now")
        assert runner.grab().data == b"now"

    def test_removed_while_it_runs(self, client: Peer, runner: GearmanPeer, function: bytes) -> None:
        client.submit(function, b"name")
        given = runner.grab()
        client.succeed(Command.REMOVE_JOB, text(function) + text(b"name"))
        runner.send(Kind.WORK_COMPLETE, given.handle, b"late")
        runner.silence()
        until(lambda: client.status()[function][1] == 0, "it is gone")
