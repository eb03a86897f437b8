"""`cancel job`: its clients get WORK_FAIL, nobody runs it, and its key is free."""

import pytest

from tests.support.gearman_peer import Dial, Kind, Peer


def cancel(admin: Peer, handle: bytes) -> bytes:
    return admin.text(b"cancel job " + handle).line()


def test_a_waiting_job(client: Peer, admin: Peer, worker: Peer, function: bytes) -> None:
    handle = client.submit(function, b"", b"data")
    assert cancel(admin, handle) == b"OK\r\n"
    client.expect(Kind.WORK_FAIL, handle)
    client.silence()
    assert worker.take() is None
    worker.sleep().silence()
    assert client.status(handle) == (0, 0, 0, 0)


def test_a_waiting_background_job(client: Peer, admin: Peer, worker: Peer, function: bytes) -> None:
    handle = client.submit(function, b"", b"data", kind=Kind.SUBMIT_JOB_BG)
    other = client.submit(function, b"", b"data", kind=Kind.SUBMIT_JOB_BG)
    assert cancel(admin, handle) == b"OK\r\n"
    client.silence()
    assert worker.grab().handle == other
    assert worker.take() is None


def test_all_clients_are_told(dial: Dial, admin: Peer, function: bytes) -> None:
    clients = [dial() for _ in range(3)]
    handle = {client.submit(function, b"key", b"data") for client in clients}.pop()
    cancel(admin, handle)
    for client in clients:
        client.expect(Kind.WORK_FAIL, handle)
        client.silence()


def test_the_case_of_the_words_does_not_matter(client: Peer, admin: Peer, function: bytes) -> None:
    handle = client.submit(function, b"", b"data")
    assert admin.text(b"CANCEL Job " + handle, b"\r\n").line() == b"OK\r\n"
    client.expect(Kind.WORK_FAIL, handle)


def test_a_finished_job(client: Peer, admin: Peer, worker: Peer, function: bytes) -> None:
    handle = client.submit(function, b"", b"data")
    worker.grab()
    worker.send(Kind.WORK_COMPLETE, handle, b"result")
    client.expect(Kind.WORK_COMPLETE, handle, b"result")
    assert cancel(admin, handle) == b"ERR UNKNOWN_JOB\r\n"


@pytest.mark.differs_from_gearmand
class TestBetterThanGearmand:
    """There a cancelled job lingers in the listings and holds its key, and a running one answers twice."""

    def test_a_waiting_job_is_gone_at_once(self, client: Peer, admin: Peer, function: bytes) -> None:
        handle = client.submit(function, b"key", b"data")
        cancel(admin, handle)
        client.expect(Kind.WORK_FAIL, handle)
        assert client.status(handle) == (0, 0, 0, 0)
        assert [function, b"0", b"0", b"0"] in admin.listing("status")
        assert handle not in [row[0] for row in admin.listing("show jobs")]
        assert client.submit(function, b"key", b"data") != handle

    def test_a_second_time_there_is_no_such_job(self, client: Peer, admin: Peer, function: bytes) -> None:
        handle = client.submit(function, b"", b"data")
        assert cancel(admin, handle) == b"OK\r\n"
        assert cancel(admin, handle) == b"ERR UNKNOWN_JOB\r\n"
        client.expect(Kind.WORK_FAIL, handle)
        client.silence()

    @pytest.mark.parametrize("final", [Kind.WORK_COMPLETE, Kind.WORK_FAIL, Kind.WORK_EXCEPTION], ids=lambda k: k.name)
    def test_a_running_job_fails_once_and_its_workers_answer_is_swallowed(
        self, final: Kind, client: Peer, admin: Peer, worker: Peer, function: bytes
    ) -> None:
        handle = client.submit(function, b"key", b"data")
        worker.grab()
        assert cancel(admin, handle) == b"OK\r\n"
        client.expect(Kind.WORK_FAIL, handle)
        worker.send(final, *([handle] if final == Kind.WORK_FAIL else [handle, b"result"])).silence()
        client.silence()
        assert worker.take() is None

    def test_a_running_jobs_key_is_free_at_once(self, client: Peer, admin: Peer, worker: Peer, function: bytes) -> None:
        handle = client.submit(function, b"key", b"first")
        worker.grab()
        cancel(admin, handle)
        client.expect(Kind.WORK_FAIL, handle)
        again = client.submit(function, b"key", b"second")
        assert again != handle
        assert worker.grab().data == b"second"
        worker.send(Kind.WORK_COMPLETE, handle, b"of the cancelled one")
        worker.send(Kind.WORK_COMPLETE, again, b"result")
        client.expect(Kind.WORK_COMPLETE, again, b"result")
        client.silence()
        worker.silence()

    def test_the_worker_may_report_progress_on_a_cancelled_job(
        self, client: Peer, admin: Peer, worker: Peer, function: bytes
    ) -> None:
        """Whether or not it is told that the job is gone, the client is not."""
        handle = client.submit(function, b"", b"data")
        worker.grab()
        cancel(admin, handle)
        client.expect(Kind.WORK_FAIL, handle)
        worker.send(Kind.WORK_DATA, handle, b"part")
        worker.send(Kind.ECHO_REQ, b"end")
        while (packet := worker.packet()) != (Kind.ECHO_RES, b"end"):
            assert packet == (Kind.ERROR, b"JOB_NOT_FOUND\0Job does not exist on server")
        client.silence()

    def test_a_cancelled_job_does_not_come_back_when_its_worker_leaves(
        self, client: Peer, admin: Peer, worker: Peer, function: bytes
    ) -> None:
        handle = client.submit(function, b"", b"data", kind=Kind.SUBMIT_JOB_BG)
        worker.grab()
        cancel(admin, handle)
        worker.send(Kind.RESET_ABILITIES).send(Kind.CAN_DO, function).silence()
        assert worker.take() is None
