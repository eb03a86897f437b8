"""Workers with one connection per command: their jobs stay theirs for a grace period."""

from collections.abc import Iterator

import pytest

from geartrain.engine.lifecycle import QUEUED, RUNNING
from tests.support import gearmonkey_door
from tests.support.gearmonkey_door import GRACE, Bench


@pytest.fixture
def door() -> Iterator[Bench]:
    with gearmonkey_door.opened() as bench:
        yield bench


def popped_and_closed(door: Bench) -> int:
    """The id of a job whose worker has closed the connection that popped it."""
    number = door.submit()
    assert b"%d" % number in door.ask("RPOP queue:f:normal")
    return number


def test_every_command_over_a_connection_of_its_own(door: Bench) -> None:
    number = popped_and_closed(door)
    for report in ("status busy", "status:dividend 1 status:divisor 2", "status success output y"):
        assert door.ask(f"HMSET job:f:{number} {report}") == b"+OK\r\n"
    assert door.ask(f"HMGET job:f:{number} status output") == b"*2\r\n$7\r\nsuccess\r\n$1\r\ny\r\n"
    assert door.engine.outcomes.done == 1
    assert not door.engine.workers, "a worker stayed behind"
    assert not door.door.detached


def test_job_goes_back_after_the_period_and_the_attempt_counts(door: Bench) -> None:
    number = popped_and_closed(door)
    job = door.engine.jobs.get(number)
    assert job is not None
    door.pass_time(GRACE - 1)
    assert job.state is RUNNING
    door.pass_time(2)
    assert job.state is QUEUED
    assert job.attempts == 1
    assert [attempt.reason for attempt in job.failed_attempts or ()] == ["worker disconnected"]
    assert b"is not yours" in door.ask(f"HMSET job:f:{number} status success output late")
    assert b"%d" % number in door.ask("RPOP queue:f:normal")
    assert job.attempts == 2


def test_job_is_dead_after_the_last_attempt() -> None:
    with gearmonkey_door.opened(max_attempts=2) as door:
        number = door.submit()
        for _ in range(2):
            assert b"%d" % number in door.ask("RPOP queue:f:normal")
            door.pass_time(GRACE)
        assert b"gave up after 2 attempts" in door.ask(f"HGET job:f:{number} output")


def test_report_over_an_open_connection_keeps_the_job(door: Bench) -> None:
    """The period begins again when that connection closes."""
    number = popped_and_closed(door)
    reporter = door.peer()
    assert reporter.ask(f"HSET job:f:{number} status busy") == b":0\r\n"
    door.pass_time(10 * GRACE)
    assert door.engine.running == 1
    reporter.close()
    door.pass_time(GRACE - 1)
    assert door.engine.running == 1
    door.pass_time(1)
    assert door.engine.running == 0


def test_report_renews_the_period(door: Bench) -> None:
    number = popped_and_closed(door)
    for report in ("status busy", "status:dividend 1", "status:dividend 2"):
        door.pass_time(GRACE - 1)
        assert b"ERR" not in door.ask(f"HSET job:f:{number} {report}")
    door.pass_time(GRACE)
    assert door.engine.queued == 1


def test_one_report_keeps_all_jobs_of_the_worker(door: Bench) -> None:
    first, second = door.submit(), door.submit()
    door.ask("RPOP queue:f:normal 2")
    door.ask(f"HSET job:f:{first} status success output y")
    assert door.engine.running == 1
    assert door.ask(f"HSET job:f:{second} status success output y") == b":1\r\n"
    assert not door.engine.workers


def test_detached_worker_gets_no_other_job(door: Bench) -> None:
    popped_and_closed(door)
    number = door.submit()
    assert door.engine.queued == 1
    assert b"%d" % number in door.ask("RPOP queue:f:normal")


def test_functions_without_a_job_are_given_up(door: Bench) -> None:
    door.submit()
    peer = door.peer()
    peer.ask("RPOP queue:g:normal", "RPOP queue:f:normal")
    peer.close()
    assert door.engine.worker_count(b"f") == 1
    assert door.engine.worker_count(b"g") == 0


def test_cancelled_job_ends_the_worker_and_its_late_report_is_ignored(door: Bench) -> None:
    number = popped_and_closed(door)
    assert door.ask(f"DEL job:f:{number}") == b":1\r\n"
    assert not door.engine.workers
    assert door.ask(f"HMSET job:f:{number} status:dividend 1") == b"+OK\r\n"
    assert door.ask(f"HMSET job:f:{number} status success output late") == b"+OK\r\n"
    assert door.ask(f"HGETALL job:f:{number}") == b"*0\r\n"


def test_connection_may_choose_no_period(door: Bench) -> None:
    number = door.submit()
    peer = door.peer()
    assert peer.ask("CLIENT GRACE 0") == b"+OK\r\n"
    peer.ask("RPOP queue:f:normal")
    peer.close()
    job = door.engine.jobs.get(number)
    assert job is not None
    assert job.state is QUEUED


@pytest.mark.parametrize("seconds", ["-1", "x", "100000000", ""])
def test_period_that_makes_no_sense(door: Bench, seconds: str) -> None:
    assert door.ask(f"CLIENT GRACE {seconds}").startswith(b"-ERR value is not an integer or out of range")


def test_jobs_go_back_when_the_door_accepts_no_more_connections(door: Bench) -> None:
    """Nobody could report on them any more, and a graceful stop waits for running jobs."""
    peer = door.peer()
    before, after = popped_and_closed(door), door.submit()
    peer.ask("RPOP queue:f:normal")
    door.door.stop_listening()
    states = {number: job.state for number in (before, after) if (job := door.engine.jobs.get(number))}
    assert states == {before: QUEUED, after: RUNNING}
    peer.close()
    assert door.engine.running == 0
