"""Workflows of the client library: over HTTP, and over Gearman by the control function."""

import asyncio
import datetime
from collections.abc import Callable, Iterator

import pytest

import geartrain
from geartrain import Job, WorkflowJob
from tests.acceptance.library.conftest import EVERY_SERVER, PATIENCE, STARTS, plain_worker, serve
from tests.support import serving

DOORS = ("gearman", "http")


@pytest.fixture(scope="module")
def both() -> Iterator[serving.ServerProcess]:
    with serve(0, "--listen", f"http://{serving.HOST}:0") as server:
        yield server


@pytest.fixture(params=DOORS)
def url(both: serving.ServerProcess, request: pytest.FixtureRequest) -> str:
    return next(url for url in both.urls if url.startswith(request.param))


def test_members_run_in_their_order(url: str, function: str) -> None:
    ran: list[bytes] = []

    def note(job: Job) -> bytes:
        ran.append(job.payload)
        return job.payload.upper()

    with geartrain.Client(url) as client:
        workflow = client.submit_workflow(
            "import",
            [
                WorkflowJob(function, "last", after=[1, 2]),
                WorkflowJob(function, b"\xff", priority="low"),
                WorkflowJob(function, "first", priority="high", keep_for=datetime.timedelta(days=1), partition="acme"),
            ],
        )
        assert len(workflow.jobs) == 3
        assert [job.status().state for job in workflow.jobs] == ["blocked", "queued", "queued"]
        progress = workflow.progress()
        assert (progress.name, progress.state, progress.count) == ("import", "running", 3)
        assert progress.states == {"blocked": 1, "queued": 2}
        with pytest.raises(geartrain.JobTimeoutError):
            workflow.wait(timeout=0.01)
        worker = geartrain.Worker(url, concurrency=1)
        worker.register(function, note)
        with plain_worker(worker):
            assert workflow.wait(timeout=PATIENCE) == "done"
        assert ran == [b"first", b"\xff", b"last"]
        assert [job.result(timeout=PATIENCE) for job in workflow.jobs] == [b"LAST", b"\xff", b"FIRST"]
        again = client.workflow(workflow.handle)
        assert (again.wait(PATIENCE), again.jobs, again.cancel(), again.retry()) == ("done", [], False, False)
        assert repr(again) == f"<SyncWorkflow {workflow.handle}>"


def failing_once(payload: bytes) -> Callable[[Job], bytes]:
    """A function that fails once, for this payload."""
    left = [payload]

    def run(job: Job) -> bytes:
        if job.payload in left:
            left.clear()
            raise ValueError("broken")
        return b"fine"

    return run


def test_failure_and_retry(url: str, function: str) -> None:
    worker = geartrain.Worker(url)
    worker.register(function, failing_once(b"first"))
    with geartrain.Client(url) as client, plain_worker(worker):
        jobs = [
            WorkflowJob(function, "first"),
            WorkflowJob(function, "second", after=[0]),
            WorkflowJob(function, "third", after=[0], on_failure="run"),
        ]
        workflow = client.submit_workflow("broken", jobs)
        assert workflow.wait(timeout=PATIENCE) == "failed"
        assert workflow.progress().states == {"failed": 1, "cancelled": 1, "done": 1}
        assert workflow.progress().reason == f"job {workflow.jobs[0].handle} ended as failed"
        assert workflow.retry()
        assert workflow.wait(timeout=PATIENCE) == "done"
        assert workflow.jobs[1].result(timeout=PATIENCE) == b"fine"
        assert not workflow.jobs[1].retry()


def test_a_single_job_can_be_retried(url: str, function: str) -> None:
    worker = geartrain.Worker(url)
    worker.register(function, failing_once(b""))
    with geartrain.Client(url) as client, plain_worker(worker):
        job = client.submit(function, background=True)
        with pytest.raises(geartrain.JobFailedError):
            job.result(timeout=PATIENCE)
        assert job.retry()
        assert job.result(timeout=PATIENCE) == b"fine"


def test_cancelling(url: str, function: str) -> None:
    async def scenario() -> None:
        async with geartrain.AsyncClient(url) as client:
            workflow = await client.submit_workflow("w", [WorkflowJob(function), WorkflowJob(function, after=[0])])
            assert await workflow.cancel()
            assert await workflow.wait(PATIENCE) == "cancelled"
            assert [(await job.status()).state for job in workflow.jobs] == ["cancelled", "cancelled"]
            with pytest.raises(geartrain.JobFailedError):
                await workflow.job.result(PATIENCE)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("jobs", "complaint"),
    [
        ([WorkflowJob("f", after=[1])], "job 0 waits for job 1"),
        ([WorkflowJob("f", after=[1]), WorkflowJob("f", after=[0])], "waits for itself"),
        ([], "jobs"),
    ],
)
def test_what_the_server_refuses(url: str, jobs: list[WorkflowJob], complaint: str) -> None:
    with geartrain.Client(url) as client, pytest.raises(geartrain.RefusedError, match=complaint):
        client.submit_workflow("w", jobs)


def test_what_the_library_refuses(url: str) -> None:
    with geartrain.Client(url) as client:
        for job, complaint in (
            (WorkflowJob("f", on_failure="panic"), "on_failure is"),  # type: ignore[arg-type]
            (WorkflowJob("f", at=1.0, delay=1.0), "not both"),
            (WorkflowJob("f", keep_for=-1), "a result is kept for"),
            (WorkflowJob("f", expires=0), "above 0"),
            (WorkflowJob("f", partition="p" * 256), "at most 255 bytes"),
        ):
            with pytest.raises(ValueError, match=complaint):
                client.submit_workflow("w", [job])


@pytest.mark.parametrize("scheme", ["danga", "periodic", "gearmonkey", "memodb+tcp"])
def test_protocols_that_cannot_say_it(scheme: str) -> None:
    text = "does not support jobs that wait for other jobs; supported by gearman, http"
    with geartrain.Client(f"{scheme}://127.0.0.1:9") as client, pytest.raises(geartrain.UnsupportedError, match=text):
        client.submit_workflow("w", [WorkflowJob("f")])


@pytest.mark.parametrize("kind", [EVERY_SERVER[1]])
def test_another_server_has_none(kind: str) -> None:
    with (
        STARTS[kind]() as server,
        geartrain.Client(server.url) as client,
        pytest.raises(geartrain.UnsupportedError, match="is no Geartrain: it has no workflows"),
    ):
        client.submit_workflow("w", [WorkflowJob("f")])


def test_a_server_that_does_not_answer(function: str) -> None:
    with serve() as server, geartrain.Client(server.url, patience=0.0) as client:
        client.connect()
        server.kill()
        with pytest.raises((geartrain.UncertainError, geartrain.ServerGoneError)):
            client.submit_workflow("w", [WorkflowJob(function)])
