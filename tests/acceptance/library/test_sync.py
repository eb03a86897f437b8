"""The plain twins: the same API without await, for any number of threads."""

import concurrent.futures
import os
import threading

import pytest

import geartrain
from geartrain.client.job_events import Completed, Data, Progressed, Warned
from tests.acceptance.library import functions
from tests.acceptance.library.conftest import PATIENCE, free_port, plain_worker, serve
from tests.support import serving
from tests.support.client_threads import client_threads


def test_client_and_worker(server: serving.ServerProcess, function: str) -> None:
    worker = geartrain.Worker(server.url, concurrency=2, name="plain")
    assert worker.name == "plain"

    @worker.function(function)
    def talk(job: geartrain.Job) -> bytes:
        return functions.talk(job)

    worker.register(f"{function}-fail", functions.fail)
    with plain_worker(worker), geartrain.Client(server.url) as client:
        assert client.protocol == "gearman"
        assert client.capabilities.priority
        assert client.run(function, "abc") == b"cba"
        job = client.submit(function, "abc", priority="high")
        assert list(job.events()) == [Progressed(1, 2), Data(b"part"), Warned(b"careful"), Completed(b"cba")]
        assert job.result(PATIENCE) == b"cba"
        assert job.done
        assert (job.function, job.unique, job.background, job.server) == (function, "", False, server.url)
        assert job.handle in repr(job)
        with pytest.raises(geartrain.JobFailedError, match="KeyError"):
            client.run(f"{function}-fail")
        jobs = client.submit_many(client.order(function, str(n)) for n in range(100))
        assert [job.result() for job in jobs] == [str(n)[::-1].encode() for n in range(100)]


def test_background_jobs(server: serving.ServerProcess, function: str) -> None:
    with geartrain.Client(server.url) as client:
        client.connect()
        job = client.submit(function, background=True, unique="key")
        assert job.status().known
        assert client.job(job.handle).cancel()
        # gearmand has neither results nor events of background jobs.
        expected = geartrain.JobFailedError if job.status().state == "cancelled" else geartrain.UnsupportedError
        with pytest.raises(expected):
            job.result()
        waiting = client.submit(function)
        with pytest.raises(geartrain.JobTimeoutError):
            waiting.result(0.01)
        waiting.forget()
        with pytest.raises(geartrain.ClientError, match="not waited for"):
            waiting.result()


def test_events_can_be_left_early(ours: serving.ServerProcess, function: str) -> None:
    with (
        plain_worker(geartrain.Worker(ours.url)) as worker,
        geartrain.Client(ours.url) as client,
    ):
        worker.register(function, functions.talk)
        job = client.submit(function, "abc")
        for event in job.events():
            assert event == Progressed(1, 2)
            break
        assert next(iter(job.events())) == Data(b"part")
        assert job.result() == b"cba"


def test_threads_share_a_client(ours: serving.ServerProcess, function: str) -> None:
    worker = geartrain.Worker(ours.url, concurrency=4)
    worker.register(function, functions.talk)
    with (
        plain_worker(worker),
        geartrain.Client(ours.url) as client,
        concurrent.futures.ThreadPoolExecutor(8) as pool,
    ):
        results = list(pool.map(lambda n: client.run(function, str(n)), range(200)))
    assert results == [str(n)[::-1].encode() for n in range(200)]


def test_functions_come_and_go_while_it_works(ours: serving.ServerProcess, function: str) -> None:
    with plain_worker(geartrain.Worker(ours.url)) as worker, geartrain.Client(ours.url) as client:
        job = client.submit(function, "abc")
        worker.register(function, functions.talk)
        assert job.result(PATIENCE) == b"cba"
        worker.unregister(function)


def test_closing(ours: serving.ServerProcess, function: str) -> None:
    before = client_threads()
    client = geartrain.Client(ours.url)
    job = client.submit(function)
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            job.result()
        except geartrain.ClientError as error:
            raised.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    client.close()
    waiting.join(PATIENCE)
    assert len(raised) == 1
    assert client_threads() <= before
    for call in (lambda: client.run(function), job.status):
        with pytest.raises(geartrain.ClientError, match="closed"):
            call()
    client.close()


def test_a_client_that_never_connected_closes() -> None:
    geartrain.Client("gearman://127.0.0.1:9").close()


def test_no_server() -> None:
    with (
        geartrain.Client(f"gearman://{serving.HOST}:{free_port()}", patience=0) as client,
        pytest.raises(geartrain.ServerGoneError),
    ):
        client.submit("f")


def test_a_forked_child_is_told_to_make_its_own_client(ours: serving.ServerProcess, function: str) -> None:
    with geartrain.Client(ours.url) as client:
        client.submit(function, background=True).cancel()
        child = os.fork()
        if child == 0:
            try:
                client.submit(function)
            except geartrain.ClientError as error:
                os._exit(0 if "fork" in str(error) else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert client.submit(function, background=True).cancel()


def test_a_server_that_comes_back(function: str) -> None:
    port = free_port()
    url = f"gearman://{serving.HOST}:{port}"
    worker = geartrain.Worker(url)
    worker.register(function, functions.talk)
    with geartrain.Client(url) as client:
        with serve(port) as first, plain_worker(worker):
            assert client.run(function, "abc") == b"cba"
            first.kill()
        with serve(port), plain_worker(worker):
            assert client.run(function, "def", resubmit=True) == b"fed"


def test_stopping_before_it_runs(ours: serving.ServerProcess, function: str) -> None:
    worker = geartrain.Worker(ours.url)
    worker.register(function, functions.talk)
    worker.stop()
    worker.run(signals=False)
