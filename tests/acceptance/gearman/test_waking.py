"""PRE_SLEEP and NOOP: whom a new job wakes, and that no job waits while a worker sleeps."""

import contextlib
import select
import time

import pytest

from tests.support.gearman_peer import Dial, Hire, Kind, Peer, Start
from tests.support.gearman_peer import worker as hired
from tests.support.peer import PATIENCE


def asleep(worker: Peer) -> Peer:
    """A worker that was told that there is no job, and sleeps."""
    assert worker.take() is None
    worker.sleep().silence()
    return worker


def woken(workers: list[Peer]) -> Peer:
    """The first of the sleepers to hear NOOP."""
    readable, _, _ = select.select([worker.socket for worker in workers], [], [], PATIENCE)
    assert readable, "no sleeper was woken"
    first = next(worker for worker in workers if worker.socket in readable)
    first.expect(Kind.NOOP)
    return first


def test_a_job_wakes_a_sleeper(client: Peer, worker: Peer, function: bytes) -> None:
    asleep(worker)
    handle = client.submit(function, b"", b"data")
    worker.expect(Kind.NOOP)
    worker.silence()
    assert worker.grab().handle == handle


def test_a_worker_that_is_awake_is_not_woken(client: Peer, worker: Peer, function: bytes) -> None:
    assert worker.take() is None
    client.submit(function, b"", b"data")
    worker.silence()


def test_a_sleeper_is_not_woken_for_another_function(client: Peer, worker: Peer, function: bytes) -> None:
    asleep(worker)
    client.submit(function + b" other", b"", b"data")
    worker.silence()


def test_a_worker_sleeps_until_it_grabs_again(client: Peer, worker: Peer, function: bytes) -> None:
    """One NOOP for a sleep: a second job finds the worker woken already."""
    asleep(worker)
    client.submit(function, b"", b"1")
    worker.expect(Kind.NOOP)
    client.submit(function, b"", b"2")
    worker.silence()
    assert [worker.grab().data, worker.grab().data] == [b"1", b"2"]
    asleep(worker)
    client.submit(function, b"", b"3")
    worker.expect(Kind.NOOP)
    assert worker.grab().data == b"3"


def test_falling_asleep_beside_a_job_wakes_at_once_each_time(client: Peer, worker: Peer, function: bytes) -> None:
    handle = client.submit(function, b"", b"data")
    for _ in range(3):
        worker.sleep()
        worker.expect(Kind.NOOP)
    worker.silence()
    assert worker.grab().handle == handle


def test_sleeping_twice_is_sleeping(client: Peer, worker: Peer, function: bytes) -> None:
    asleep(worker)
    worker.sleep().silence()
    client.submit(function, b"", b"data")
    worker.expect(Kind.NOOP)
    worker.silence()


def test_a_sleeper_may_do_other_things(client: Peer, worker: Peer, hire: Hire, function: bytes) -> None:
    held = client.submit(function, b"", b"held")
    worker.grab()
    asleep(worker)
    worker.send(Kind.WORK_STATUS, held, b"1", b"2")
    worker.send(Kind.WORK_COMPLETE, held, b"result")
    client.expect(Kind.WORK_STATUS, held, b"1", b"2")
    client.expect(Kind.WORK_COMPLETE, held, b"result")
    client.submit(function, b"", b"next")
    worker.expect(Kind.NOOP)


def test_a_sleeper_that_leaves_is_not_waited_for(client: Peer, hire: Hire, function: bytes) -> None:
    gone, stays = asleep(hire(function)), asleep(hire(function))
    gone.close()
    handle = client.submit(function, b"", b"data")
    stays.expect(Kind.NOOP)
    assert stays.grab().handle == handle


@pytest.mark.parametrize("withdraw", ["CANT_DO", "RESET_ABILITIES"])
def test_a_sleeper_that_withdrew_is_not_woken(withdraw: str, client: Peer, worker: Peer, function: bytes) -> None:
    asleep(worker)
    if withdraw == "CANT_DO":
        worker.send(Kind.CANT_DO, function)
    else:
        worker.send(Kind.RESET_ABILITIES)
    worker.silence()
    client.submit(function, b"", b"data")
    worker.silence()


@pytest.mark.differs_from_gearmand
def test_one_job_wakes_one_sleeper(start: Start, peers: contextlib.ExitStack) -> None:
    with start("--wake-grace", "10m") as server, Peer(server.port) as client:
        workers = [asleep(peers.enter_context(hired(server.port, b"f"))) for _ in range(20)]
        handle = client.submit(b"f", b"", b"data")
        first = woken(workers)
        for worker in workers:
            worker.silence()
        assert first.grab().handle == handle


@pytest.mark.differs_from_gearmand
def test_several_jobs_wake_several_sleepers(client: Peer, hire: Hire, function: bytes) -> None:
    workers = [asleep(hire(function)) for _ in range(3)]
    handles = {client.submit(function, b"", b"data") for _ in range(3)}
    for worker in workers:
        worker.expect(Kind.NOOP)
    assert {worker.grab().handle for worker in workers} == handles


@pytest.mark.differs_from_gearmand
def test_a_woken_worker_that_never_grabs_does_not_strand_the_job(client: Peer, hire: Hire, function: bytes) -> None:
    workers = [asleep(hire(function)) for _ in range(3)]
    handle = client.submit(function, b"", b"data")
    idle = {id(woken(workers))}
    workers = [worker for worker in workers if id(worker) not in idle]
    second = woken(workers)
    workers.remove(second)
    third = woken(workers)
    assert third.grab().handle == handle


@pytest.mark.differs_from_gearmand
@pytest.mark.parametrize("register", [Kind.CAN_DO, Kind.CAN_DO_TIMEOUT], ids=lambda kind: kind.name)
def test_a_sleeper_that_offers_a_function_with_waiting_jobs_is_woken(
    register: Kind, client: Peer, worker: Peer, function: bytes
) -> None:
    other = function + b" other"
    handle = client.submit(other, b"", b"data")
    asleep(worker)
    worker.send(register, other, *([b"60000"] if register == Kind.CAN_DO_TIMEOUT else []))
    worker.expect(Kind.NOOP)
    assert worker.grab().handle == handle


def test_jobs_and_workers_in_any_order_all_get_done(client: Peer, hire: Hire, function: bytes) -> None:
    """Fifty rounds in which the worker's grab, its sleep and the submission race each other."""
    worker = hire(function)
    for number in range(50):
        worker.send(Kind.GRAB_JOB)
        worker.sleep()
        handle = client.submit(function, b"", b"%d" % number)
        deadline = time.monotonic() + PATIENCE
        job = None
        while job is None:
            assert time.monotonic() < deadline
            kind, body = worker.packet()
            if kind == Kind.JOB_ASSIGN:
                job = body
            elif kind == Kind.NOOP:
                worker.send(Kind.GRAB_JOB)
            else:
                assert kind == Kind.NO_JOB
        assert job == b"\0".join([handle, function, b"%d" % number])
        worker.send(Kind.WORK_COMPLETE, handle, b"")
        client.expect(Kind.WORK_COMPLETE, handle, b"")


@pytest.mark.differs_from_gearmand
class TestAllYours:
    """A worker that belongs to this server alone is handed its job without being woken first."""

    def devoted(self, dial: Dial, function: bytes) -> Peer:
        return dial().send(Kind.ALL_YOURS).register(function)

    def test_the_job_comes_to_the_sleeper(self, client: Peer, dial: Dial, function: bytes) -> None:
        worker = asleep(self.devoted(dial, function))
        for number in range(3):
            handle = client.submit(function, b"key", b"%d" % number)
            worker.expect(Kind.JOB_ASSIGN, handle, function, b"%d" % number)
            worker.send(Kind.WORK_COMPLETE, handle, b"result")
            client.expect(Kind.WORK_COMPLETE, handle, b"result")
            worker.silence()
            worker.sleep().silence()

    def test_it_gets_one_job_for_each_sleep(self, client: Peer, dial: Dial, function: bytes) -> None:
        worker = asleep(self.devoted(dial, function))
        first = client.submit(function, b"", b"1")
        second = client.submit(function, b"", b"2")
        worker.expect(Kind.JOB_ASSIGN, first, function, b"1")
        worker.silence()
        assert worker.take() == (Kind.JOB_ASSIGN, second, function, b"", b"", b"2")

    def test_a_job_that_waits_already(self, client: Peer, dial: Dial, function: bytes) -> None:
        """It is handed over, or the worker is woken for it: both keep the protocol."""
        handle = client.submit(function, b"", b"data")
        worker = self.devoted(dial, function)
        worker.sleep()
        kind, body = worker.packet()
        if kind == Kind.NOOP:
            assert worker.grab().handle == handle
        else:
            assert (kind, body) == (Kind.JOB_ASSIGN, b"\0".join([handle, function, b"data"]))

    def test_an_awake_one_asks_like_any_other(self, client: Peer, dial: Dial, function: bytes) -> None:
        worker = self.devoted(dial, function)
        assert worker.take() is None
        handle = client.submit(function, b"", b"data")
        worker.silence()
        assert worker.grab().handle == handle


@pytest.mark.differs_from_gearmand
def test_a_sleeper_that_offers_anew_is_still_woken(client: Peer, dial: Dial, function: bytes) -> None:
    worker = dial()
    worker.send(Kind.CAN_DO, function + b" before").send(Kind.PRE_SLEEP)
    worker.send(Kind.RESET_ABILITIES).send(Kind.CAN_DO, function)
    worker.silence()
    client.submit(function, b"", b"data")
    worker.expect(Kind.NOOP)
