"""What the document guarantees: duplicates are killed, jobs are retried, a worker has one task at a time."""

from collections.abc import Callable, Iterator

import pytest

from tests.support import serving
from tests.support.danga_peer import HANDLE, INCOMPLETE, SYNC, THROW_AWAY, Kind, Peer

Dial = Callable[[], Peer]


@pytest.fixture
def impatient() -> Iterator[serving.ServerProcess]:
    """A server that gives a job up when it has lost its second worker."""
    with serving.serve("--listen", "danga://127.0.0.1:0", "--max-attempts", "2") as server:
        yield server


class TestDuplicates:
    def test_a_queued_duplicate_is_killed(self, dial: Dial, worker: Peer, name: bytes) -> None:
        handles = {dial().create(name, b"2005-03-30", b"%d" % n) for n in range(5)}
        assert len(handles) == 1
        assert worker.grab() == (name, b"0")
        worker.finish(b"once")
        assert worker.take() is None
        assert dial().result(handles.pop()) == (1, 0, b"once")

    def test_a_running_duplicate_is_killed(self, application: Peer, worker: Peer, name: bytes) -> None:
        handle = application.create(name, b"key")
        worker.grab()
        assert application.create(name, b"key") == handle
        worker.finish()
        assert worker.take() is None

    def test_after_its_end_a_key_is_free(self, application: Peer, worker: Peer, name: bytes) -> None:
        first = application.create(name, b"key")
        worker.grab()
        worker.finish(b"1")
        application.result(first)
        second = application.create(name, b"key")
        assert second != first
        worker.grab()
        worker.finish(b"2")
        assert (application.result(first).result, application.result(second).result) == (b"1", b"2")

    def test_keys_are_per_job_name(self, application: Peer, name: bytes) -> None:
        assert application.create(name, b"key") != application.create(name + b"-other", b"key")

    def test_no_key_is_no_duplicate(self, application: Peer, name: bytes) -> None:
        assert application.create(name) != application.create(name)

    @pytest.mark.parametrize("types", [(THROW_AWAY, HANDLE), (HANDLE, THROW_AWAY)])
    def test_a_result_is_kept_if_anybody_asked_for_a_handle(
        self, types: tuple[int, int], application: Peer, worker: Peer, name: bytes
    ) -> None:
        first, second = (application.create(name, b"key", type=type) for type in types)
        assert first == second
        worker.grab()
        worker.finish(b"wanted")
        assert application.result(first) == (1, 0, b"wanted")

    def test_an_async_job_outlives_the_sync_application_it_joined(
        self, dial: Dial, application: Peer, worker: Peer, name: bytes
    ) -> None:
        waiting = dial()
        handle = waiting.create(name, b"key", type=SYNC)
        assert application.create(name, b"key") == handle
        waiting.send(Kind.WORKER_DISCONNECT).closed()
        worker.grab()
        worker.finish(b"kept")
        assert application.result(handle) == (1, 0, b"kept")


class TestRetries:
    def test_the_job_of_a_lost_worker_is_given_to_another(self, dial: Dial, application: Peer, name: bytes) -> None:
        handle = application.create(name, args=b"again")
        lost, other = dial().connect(name), dial().connect(name)
        assert lost.grab() == (name, b"again")
        lost.announce(1, 2).close()
        assert other.grab() == (name, b"again")
        assert application.status(handle) == (0, 0, 0)  # it begins anew
        other.finish(b"done")
        assert application.result(handle) == (1, 0, b"done")
        assert application.status(handle) == (0, 0, 0)

    def test_a_worker_that_says_goodbye_gives_its_job_back(
        self, dial: Dial, application: Peer, worker: Peer, name: bytes
    ) -> None:
        handle = application.create(name, type=SYNC)
        leaver = dial().connect(name)
        leaver.grab()
        leaver.send(Kind.WORKER_DISCONNECT).closed()
        worker.grab()
        worker.finish(b"done")
        assert handle
        assert application.streamed_completion() == (1, 0, b"done")

    def test_an_error_code_is_final(self, application: Peer, worker: Peer, name: bytes) -> None:
        handle = application.create(name)
        worker.grab()
        worker.finish(code=1)
        assert application.result(handle) == (1, 1, b"")
        assert worker.take() is None

    def test_a_job_that_is_given_up_has_code_255(self, impatient: serving.ServerProcess) -> None:
        with Peer(impatient.port) as application, Peer(impatient.port) as waiting:
            handle = application.create(b"deadly", b"key")
            assert waiting.create(b"deadly", b"key", type=SYNC) == handle
            for _ in range(2):
                assert application.completion(handle) == INCOMPLETE
                with Peer(impatient.port).connect(b"deadly") as victim:
                    victim.grab()
            assert waiting.streamed_completion() == (1, 255, b"")
            assert application.result(handle) == (1, 255, b"")


class TestOneTaskAtATime:
    def test_asking_for_a_second_job_ends_the_connection(
        self, application: Peer, dial: Dial, worker: Peer, name: bytes, server: serving.ServerProcess
    ) -> None:
        handle = application.create(name, args=b"1")
        application.create(name, args=b"2")
        greedy = dial().connect(name)
        assert greedy.grab() == (name, b"1")
        greedy.send(Kind.JOB_ASSIGN_REQ).closed()
        assert server.says(f"job_assign_req came from a worker that has job {handle.decode()}")
        assert {worker.grab().args, (worker.finish(), worker.grab().args)[1]} == {b"1", b"2"}

    def test_sleeping_with_a_job_ends_the_connection(self, application: Peer, worker: Peer, name: bytes) -> None:
        application.create(name)
        worker.grab()
        worker.send(Kind.WORKER_SLEEP).closed()

    def test_two_jobs_one_after_the_other(self, application: Peer, worker: Peer, name: bytes) -> None:
        handles = [application.create(name, args=b"%d" % n) for n in range(3)]
        for n, handle in enumerate(handles):
            assert worker.grab() == (name, b"%d" % n)
            worker.finish(b"done %d" % n)
            assert application.result(handle).result == b"done %d" % n
