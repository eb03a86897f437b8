"""What only PHP's extension does: it is libgearman, with the packets that the document does not have."""

import pytest

from tests.interop.libraries import PHP
from tests.interop.peer import Ask, Dial
from tests.support.gearman_peer import Kind

pytestmark = pytest.mark.peer("php")


def test_status_by_unique_key(ask: Ask, dial: Dial, function: str) -> None:
    unique = f"key-of-{function}"

    def status() -> list[str]:
        return ask(PHP, "status-of-unique", unique).heard()

    assert status() == ["status 0 0 0/0"]
    ask(PHP, "background", function, b"job", unique=unique).handle()
    assert status() == ["status 1 0 0/0"]
    worker = dial().register(function.encode())
    job = worker.grab()
    worker.send(Kind.WORK_STATUS, job.handle, b"2", b"5").silence()
    assert status() == ["status 1 1 2/5"]
    worker.send(Kind.WORK_COMPLETE, job.handle, b"").silence()
    assert status() == ["status 0 0 0/0"]


def test_ping(ask: Ask) -> None:
    assert ask(PHP, "ping", "unused", b"are you there").heard() == ["pong true"]


def test_each_background_job_has_a_unique_key_of_its_own(ask: Ask, dial: Dial, function: str) -> None:
    """The library makes them up, so that equal jobs stay two."""
    handles = {ask(PHP, "background", function, b"same").handle() for _ in range(2)}
    worker = dial().register(function.encode())
    jobs = [worker.grab(Kind.GRAB_JOB_UNIQ) for _ in range(2)]
    assert {job.handle.decode() for job in jobs} == handles
    assert len({job.unique for job in jobs} - {b""}) == 2
