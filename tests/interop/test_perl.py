"""What only Perl's Gearman::Client and Gearman::Worker do."""

import pytest

from tests.interop.libraries import PERL
from tests.interop.peer import Ask, Dial, Hire
from tests.support.gearman_peer import Kind
from tests.support.peer import until

pytestmark = pytest.mark.peer("perl")


def test_do_task_with_the_old_word_for_priority(ask: Ask, dial: Dial, function: str) -> None:
    ask(PERL, "background", function, b"normal").handle()
    asked = ask(PERL, "do_task", function, b"high")
    admin = dial()
    until(lambda: [function.encode(), b"2", b"0", b"0"] in admin.listing("status"), "both jobs are queued")
    worker = dial().register(function.encode())
    job = worker.grab()
    assert job.data == b"high"
    worker.send(Kind.WORK_COMPLETE, job.handle, b"done")
    assert asked.heard() == ["complete done"]


@pytest.mark.differs_from_gearmand
def test_task_set_of_different_tasks(ask: Ask, hire: Hire, function: str) -> None:
    """With a worker that dies on the way, which gearmand makes end for good."""
    hire(PERL, function)
    heard = ask(PERL, "mixed", function, b"word").heard()
    assert sorted(heard) == sorted(
        [
            "reverse complete drow",
            "fail fail",
            "die exception",
            "report status 1/4",
            "report data part",
            "report warning careful",
            "report status 4/4",
            "report complete whole",
        ]
    )
    assert [line for line in heard if line.startswith("report")][-1] == "report complete whole"


def test_retries_are_new_jobs(ask: Ask, dial: Dial, function: str) -> None:
    worker = dial().register(function.encode())
    asked = ask(PERL, "retry", function, b"stubborn")
    handles = []
    for _ in range(3):
        handles.append(worker.grab().handle)
        worker.send(Kind.WORK_FAIL, handles[-1])
    assert asked.heard() == ["retry 1", "retry 2", "fail"]
    assert len(set(handles)) == 3


def test_unique_key_minus_means_the_payload(ask: Ask, dial: Dial, function: str) -> None:
    first = ask(PERL, "background", function, b"same", unique="-").handle()
    second = ask(PERL, "background", function, b"same", unique="-").handle()
    other = ask(PERL, "background", function, b"different", unique="-").handle()
    assert first == second != other
    worker = dial().register(function.encode())
    assert [worker.grab().data, worker.grab().data] == [b"same", b"different"]
    assert worker.take() is None


def test_prefix_puts_a_tab_into_the_function_name(ask: Ask, dial: Dial, function: str) -> None:
    ask(PERL, "prefixed", function, b"inside").handle()
    worker = dial().register(b"space\t" + function.encode())
    job = worker.grab()
    assert (job.function, job.data) == (b"space\t" + function.encode(), b"inside")


def test_job_server_status(ask: Ask, dial: Dial, function: str) -> None:
    worker = dial().register(function.encode())
    for _ in range(3):
        ask(PERL, "background", function, b"count me").handle()
    worker.grab()
    assert ask(PERL, "server_status", function).heard() == ["row 3 1 1"]


@pytest.mark.differs_from_gearmand
@pytest.mark.parametrize("name", ["empty", "zero"])
def test_result_that_perl_takes_for_false(hire: Hire, dial: Dial, function: str, name: str) -> None:
    """The library then leaves out the NUL after the handle, for which gearmand waits in vain."""
    hire(PERL, function)
    client = dial()
    for _ in range(2):
        handle = client.submit(f"{function}-{name}".encode())
        client.expect(Kind.WORK_COMPLETE, handle, b"")


@pytest.mark.differs_from_gearmand
def test_status_without_its_denominator(hire: Hire, dial: Dial, function: str) -> None:
    """`send_work_status` of the worker forgets it (a job's own `set_status` does not); gearmand hangs."""
    hire(PERL, function)
    client = dial()
    for _ in range(2):
        handle = client.submit(f"{function}-misstep".encode())
        status = client.body(Kind.WORK_STATUS)
        assert status.split(b"\0")[:2] == [handle, b"1"]
        client.expect(Kind.WORK_COMPLETE, handle, b"done")


@pytest.mark.differs_from_gearmand
def test_worker_that_answers_after_its_timeout_goes_on(hire: Hire, dial: Dial, function: str) -> None:
    """gearmand answers with an ERROR, at which the worker exits."""
    worker = hire(PERL, function)
    client = dial()
    for word in (b"first", b"second"):
        handle = client.submit(f"{function}-limited".encode(), data=word)
        worker.wait_for_gate(word)
        client.expect(Kind.WORK_FAIL, handle)
        worker.open_gate()
    handle = client.submit(f"{function}-reverse".encode(), data=b"word")
    client.expect(Kind.WORK_COMPLETE, handle, b"drow")
