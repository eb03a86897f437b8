"""Jobs that enter by the draft and are run by a Gearman worker, and the other way round."""

from collections.abc import Callable

from tests.support import gearman_peer
from tests.support.danga_peer import INCOMPLETE, SYNC, THROW_AWAY, Peer
from tests.support.gearman_peer import Kind

Dial = Callable[[], Peer]
Gearman = Callable[[], gearman_peer.Peer]


class TestGearmanWorker:
    def test_an_async_job(self, application: Peer, gearman: Gearman, name: bytes) -> None:
        worker = gearman().register(name)
        handle = application.create(name, b"key", b"args\0binary")
        job = worker.grab(Kind.GRAB_JOB_UNIQ)
        assert (job.handle, job.unique, job.data) == (handle, b"key", b"args\0binary")
        worker.send(Kind.WORK_STATUS, handle, b"1", b"4")
        worker.silence()
        assert application.status(handle) == (1, 4, 0)
        worker.send(Kind.WORK_COMPLETE, handle, b"result")
        assert application.result(handle) == (1, 0, b"result")
        assert application.status(handle) == (1, 4, 0)

    def test_a_sync_job_hears_status_and_result_but_no_parts(
        self, application: Peer, gearman: Gearman, name: bytes
    ) -> None:
        worker = gearman().register(name)
        handle = application.create(name, type=SYNC)
        worker.grab()
        worker.send(Kind.WORK_DATA, handle, b"part")
        worker.send(Kind.WORK_WARNING, handle, b"careful")
        worker.send(Kind.WORK_STATUS, handle, b"not a number", b"99999999999999999999")
        worker.send(Kind.WORK_COMPLETE, handle, b"the rest")
        assert application.streamed_status()[0] == 0
        assert application.streamed_completion() == (1, 0, b"the rest")

    def test_a_failure_has_code_1(self, application: Peer, gearman: Gearman, name: bytes) -> None:
        worker = gearman().register(name)
        for type in (SYNC, 1):
            handle = application.create(name, type=type)
            worker.send(Kind.WORK_FAIL, worker.grab().handle)
            answer = application.streamed_completion() if type == SYNC else application.result(handle)
            assert answer == (1, 1, b"")

    def test_an_exception_has_code_1_and_its_words(self, application: Peer, gearman: Gearman, name: bytes) -> None:
        worker = gearman().register(name)
        for type in (SYNC, 1):
            handle = application.create(name, type=type)
            worker.send(Kind.WORK_EXCEPTION, worker.grab().handle, b"out of paper")
            answer = application.streamed_completion() if type == SYNC else application.result(handle)
            assert answer == (1, 1, b"out of paper")

    def test_a_time_limit_of_the_worker(self, application: Peer, gearman: Gearman, name: bytes) -> None:
        worker = gearman()
        worker.send(Kind.CAN_DO_TIMEOUT, name, b"1000")
        application.create(name, type=SYNC)
        worker.grab()
        assert application.streamed_completion() == (1, 1, b"")


class TestGearmanClient:
    def test_a_foreground_job(self, worker: Peer, gearman: Gearman, name: bytes) -> None:
        client = gearman()
        handle = client.submit(name, b"", b"payload")
        assert worker.grab() == (name, b"payload")
        worker.announce(1, 3, 60)
        client.expect(Kind.WORK_STATUS, handle, b"1", b"3")
        assert client.status(handle) == (1, 1, 1, 3)
        worker.finish(b"result")
        client.expect(Kind.WORK_COMPLETE, handle, b"result")

    def test_a_background_job_whose_result_is_asked_for_by_the_draft(
        self, application: Peer, worker: Peer, gearman: Gearman, name: bytes
    ) -> None:
        handle = gearman().submit(name, b"", b"payload", kind=Kind.SUBMIT_JOB_HIGH_BG)
        assert application.completion(handle) == INCOMPLETE
        worker.grab()
        worker.finish(b"result")
        assert application.result(handle) == (1, 0, b"result")

    def test_an_error_code_is_a_failure(self, worker: Peer, gearman: Gearman, name: bytes) -> None:
        client = gearman()
        handle = client.submit(name)
        worker.grab()
        worker.finish(b"words", code=17)
        client.expect(Kind.WORK_FAIL, handle)

    def test_an_error_code_is_an_exception_for_who_wants_it(self, worker: Peer, gearman: Gearman, name: bytes) -> None:
        client = gearman()
        client.send(Kind.OPTION_REQ, b"exceptions")
        client.expect(Kind.OPTION_RES, b"exceptions")
        handle = client.submit(name)
        worker.grab()
        worker.finish(b"words", code=17)
        client.expect(Kind.WORK_EXCEPTION, handle, b"words")

    def test_priorities_count(self, worker: Peer, gearman: Gearman, application: Peer, name: bytes) -> None:
        application.create(name, args=b"normal")
        gearman().submit(name, b"", b"low", kind=Kind.SUBMIT_JOB_LOW_BG)
        gearman().submit(name, b"", b"high", kind=Kind.SUBMIT_JOB_HIGH_BG)
        order = []
        for _ in range(3):
            order.append(worker.grab().args)
            worker.finish()
        assert order == [b"high", b"normal", b"low"]

    def test_a_worker_asleep_is_woken(self, worker: Peer, gearman: Gearman, name: bytes) -> None:
        worker.send(0x03).silence()
        gearman().submit(name, kind=Kind.SUBMIT_JOB_BG)
        assert worker.body(0x00) == b""


class TestOneKeyForBoth:
    def test_unique_ids_and_duplicate_keys_are_the_same(
        self, application: Peer, worker: Peer, gearman: Gearman, name: bytes
    ) -> None:
        client = gearman()
        handle = client.submit(name, b"key", b"first")
        assert application.create(name, b"key", b"second") == handle
        assert worker.grab() == (name, b"first")
        worker.finish(b"for both")
        client.expect(Kind.WORK_COMPLETE, handle, b"for both")
        assert application.result(handle) == (1, 0, b"for both")

    def test_gearmans_dash_is_an_ordinary_key_here(self, application: Peer, gearman: Gearman, name: bytes) -> None:
        assert gearman().submit(name, b"-", b"x", kind=Kind.SUBMIT_JOB_BG) != application.create(name, b"-", b"x")

    def test_a_gearman_client_hears_a_throw_away_job(
        self, application: Peer, worker: Peer, gearman: Gearman, name: bytes
    ) -> None:
        handle = application.create(name, b"key", type=THROW_AWAY)
        client = gearman()
        assert client.submit(name, b"key") == handle
        worker.grab()
        worker.finish(b"result")
        client.expect(Kind.WORK_COMPLETE, handle, b"result")
        assert application.result(handle) == (1, 0, b"")


def test_a_lost_draft_worker_leaves_its_job_to_a_gearman_worker(
    application: Peer, dial: Dial, gearman: Gearman, name: bytes
) -> None:
    handle = application.create(name, args=b"x")
    lost = dial().connect(name)
    lost.grab()
    lost.close()
    worker = gearman().register(name)
    job = worker.grab()
    assert (job.handle, job.data) == (handle, b"x")
    worker.send(Kind.WORK_COMPLETE, handle, b"done")
    assert application.result(handle) == (1, 0, b"done")
