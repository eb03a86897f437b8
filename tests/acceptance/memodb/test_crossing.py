"""Jobs that enter by one door and are run behind the other."""

from collections.abc import Callable

import pytest

from tests.support.gearman_peer import Kind, Peer
from tests.support.memodb_peer import JOB, Pipe


def test_a_gearman_worker_runs_a_memodb_job(client: Pipe, gearman: Callable[[], Peer], service: str) -> None:
    worker = gearman().register(service.encode())
    request = client.job(service, b"payload\0with a NUL")
    job = worker.grab()
    assert (job.function, job.data) == (service.encode(), b"payload\0with a NUL")
    worker.send(Kind.WORK_STATUS, job.handle, b"1", b"2")  # of these a MemoDB client hears nothing
    worker.send(Kind.WORK_DATA, job.handle, b"a part")
    worker.send(Kind.WORK_WARNING, job.handle, b"a warning")
    worker.send(Kind.WORK_COMPLETE, job.handle, b"result")
    assert client.reply(request).payload == b"result"


@pytest.mark.parametrize("kind", [Kind.SUBMIT_JOB, Kind.SUBMIT_JOB_HIGH, Kind.SUBMIT_JOB_LOW])
def test_a_memodb_worker_runs_a_gearman_job(
    worker: Pipe, gearman: Callable[[], Peer], service: str, kind: Kind
) -> None:
    client = gearman()
    asked = worker.ready(service)
    handle = client.submit(service.encode(), b"", b"payload", kind=kind)
    assigned = worker.reply(asked)
    assert (assigned.kind, assigned.payload) == (JOB, b"payload")
    assert assigned.rest == [service, 2**31 - 1]  # as long as it takes
    worker.result(assigned.id, b"result")
    client.expect(Kind.WORK_COMPLETE, handle, b"result")


def test_a_background_job(worker: Pipe, gearman: Callable[[], Peer], service: str) -> None:
    client = gearman()
    handle = client.submit(service.encode(), b"", b"payload", kind=Kind.SUBMIT_JOB_BG)
    assigned = worker.assigned(worker.ready(service))
    assert client.status(handle) == (1, 1, 0, 0)
    asked = worker.result(assigned.id, b"nobody waits for it")
    worker.silence()
    assert client.status(handle) == (0, 0, 0, 0)
    assert asked


def test_a_name_that_is_text_but_not_ascii(worker: Pipe, client: Pipe, gearman: Callable[[], Peer]) -> None:
    name = "größe-✓"
    asked = worker.ready(name)
    gearman().submit(name.encode(), b"", b"from Gearman")
    assigned = worker.assigned(asked)
    assert (assigned.rest[0], assigned.payload) == (name, b"from Gearman")


def test_a_name_that_is_not_text_stays_with_gearman(worker: Pipe, gearman: Callable[[], Peer], service: str) -> None:
    name = b"\xff" + service.encode()
    asked = worker.ready(service, f"\N{REPLACEMENT CHARACTER}{service}")
    client = gearman()
    handle = client.submit(name)
    client.silence()
    worker.silence()
    client.submit(service.encode(), b"", b"but this is for it")
    assert worker.reply(asked).payload == b"but this is for it"
    assert gearman().register(name).grab().handle == handle


@pytest.mark.parametrize("report", [(Kind.WORK_FAIL,), (Kind.WORK_EXCEPTION, b"it broke")])
def test_a_failure_is_silence_and_the_pipe_stays(
    client: Pipe, gearman: Callable[[], Peer], service: str, report: tuple[Kind, ...]
) -> None:
    kind, *words = report
    worker = gearman().register(service.encode())
    request = client.job(service, b"payload")
    job = worker.grab()
    worker.send(kind, job.handle, *words)
    worker.silence()
    client.silence()
    client.job(service, b"payload", number=request)  # the client's own resend is another try
    again = worker.grab()
    worker.send(Kind.WORK_COMPLETE, again.handle, b"this time")
    assert client.reply(request).payload == b"this time"


def test_a_gearman_worker_that_vanishes(client: Pipe, gearman: Callable[[], Peer], service: str) -> None:
    dying, other = gearman().register(service.encode()), gearman().register(service.encode())
    request = client.job(service, b"payload")
    dying.grab()
    dying.close()
    job = other.grab()
    other.send(Kind.WORK_COMPLETE, job.handle, b"rescued")
    assert client.reply(request).payload == b"rescued"


def test_a_memodb_worker_that_vanishes(dial: Callable[[], Pipe], gearman: Callable[[], Peer], service: str) -> None:
    dying, other, client = dial(), dial(), gearman()
    handle = client.submit(service.encode(), b"", b"payload")
    dying.assigned(dying.ready(service))
    dying.close()
    assigned = other.assigned(other.ready(service))
    other.result(assigned.id, b"rescued")
    client.expect(Kind.WORK_COMPLETE, handle, b"rescued")


def test_a_cancelled_job_does_not_cost_its_worker(worker: Pipe, gearman: Callable[[], Peer], service: str) -> None:
    client, admin = gearman(), gearman()
    handle = client.submit(service.encode())
    assigned = worker.assigned(worker.ready(service))
    admin.text(b"cancel job " + handle)
    assert admin.line() == b"OK\r\n"
    client.expect(Kind.WORK_FAIL, handle)
    asked = worker.result(assigned.id, b"in vain")
    worker.silence()
    client.submit(service.encode(), b"", b"next")
    following = worker.reply(asked)
    assert (following.id, following.payload) == (assigned.id, b"next")
    client.silence()
