"""Results of finished jobs by every way that can ask for them: whole, cut at `result_max`, or gone."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.acceptance.cli.conftest import run
from tests.acceptance.gearmonkey import redis_py_peer
from tests.support import danga_peer, redis_server, serving
from tests.support.http_peer import Peer

LARGEST = 200_000
LARGE = bytes(range(256)) * 500  # 128,000 bytes
DOORS = ("http", "gearman", "danga", "gearmonkey")


class Place(NamedTuple):
    """A server."""

    peer: Peer
    urls: dict[str, str]

    def finished(self, function: str, result: bytes) -> str:
        """The handle of a job that has ended with this result."""
        handle: str = self.peer.submit(function)["handle"]
        worker = self.peer.worker(function)
        worker.complete(worker.claim()["handle"], result)
        worker.leave()
        return handle

    def port(self, door: str) -> int:
        return int(self.urls[door].rpartition(":")[2])


def serve(*options: str) -> Iterator[Place]:
    listens = [word for door in DOORS for word in ("--listen", f"{door}://{serving.HOST}:0")]
    with serving.serve(*options, "--result-max", str(LARGEST), *listens) as running:
        urls = dict(zip(DOORS, running.urls, strict=True))
        yield Place(Peer(urls["http"]), urls)


@pytest.fixture(scope="module", params=["sqlite", "memory"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("store")
    yield from serve("--store", "memory" if request.param == "memory" else f"sqlite://{folder}/jobs.db")


def test_large_result_is_whole(place: Place, function: str) -> None:
    handle = place.finished(function, LARGE)
    job = place.peer.get(f"/jobs/{handle}")
    assert (job["result_size"], job["result_kept"]) == (len(LARGE), len(LARGE))
    assert place.peer.call("GET", f"/jobs/{handle}/result").data == LARGE
    assert run(place.urls["gearman"], "show", handle, "--result").out == LARGE
    with danga_peer.Peer(place.port("danga")) as application:
        assert application.result(handle.encode()) == (1, 0, LARGE)


def test_result_above_the_maximum_is_cut(place: Place, function: str) -> None:
    result = b"x" * (LARGEST + 1)
    handle = place.finished(function, result)
    job = place.peer.get(f"/jobs/{handle}")
    assert (job["state"], job["result_size"], job["result_kept"]) == ("done", LARGEST + 1, LARGEST)
    answer = place.peer.call("GET", f"/jobs/{handle}/result")
    assert (answer.status, answer.json["kind"]) == (410, "result-cut")
    assert "the first 200,000 of 200,001 bytes are kept" in answer.json["detail"]
    assert place.peer.call("GET", f"/jobs/{handle}/result?part=true").data == result[:LARGEST]


def test_command_says_that_a_result_was_cut(place: Place, function: str) -> None:
    handle = place.finished(function, b"x" * (LARGEST + 1))
    assert "200,001 bytes), cut: only the first 200,000 bytes are kept" in run(
        place.urls["gearman"], "show", handle
    ).text.replace("\n", " ")
    assert "was cut" in run(place.urls["gearman"], "show", handle, "--result", code=1).err
    assert run(place.urls["gearman"], "show", handle, "--result", "--part").out == b"x" * LARGEST


def test_danga_application_does_not_take_a_part_for_the_whole(place: Place, function: str) -> None:
    handle = place.finished(function, b"x" * (LARGEST + 1))
    with danga_peer.Peer(place.port("danga")) as application:
        completion = application.result(handle.encode())
    assert (completion.code, completion.result) == (254, b"the result was cut: 200000 of 200001 bytes are kept")


@pytest.mark.peer("redis-server")
def test_redis_cli_reads_the_output_of_a_job_of_another_door(place: Place, function: str) -> None:
    handle = place.finished(function, b"x" * 128_000)
    key = f"job:{function}:{handle.rpartition(':')[2]}"
    assert redis_cli(place, "HGET", key, "output") == b"x" * 128_000 + b"\n"
    cut = place.finished(function, b"x" * (LARGEST + 1))
    key = f"job:{function}:{cut.rpartition(':')[2]}"
    assert redis_cli(place, "HGET", key, "status") == b"success\n"
    assert redis_cli(place, "HGET", key, "output").startswith(b"RESULTCUT ")
    assert redis_cli(place, "HGETALL", key).startswith(b"RESULTCUT ")


def redis_cli(place: Place, *words: str) -> bytes:
    command = [redis_server.program("redis-cli"), "-p", str(place.port("gearmonkey")), *words]
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout


def test_result_that_is_gone(place: Place, function: str) -> None:
    foreground = place.peer.call("POST", "/jobs", {"function": function, "background": False, "wait": 0.01})
    assert foreground.status == 504
    handle: str = place.peer.submit(function)["handle"]
    prefix, _, number = handle.rpartition(":")
    answer = place.peer.call("GET", f"/jobs/{prefix}:{int(number) - 1}/result")
    assert (answer.status, answer.json["kind"]) == (410, "result-gone")
    answer = place.peer.call("GET", f"/jobs/{prefix}:{int(number) + 1000}/result")
    assert (answer.status, answer.json["kind"]) == (404, "not-found")


def test_result_that_was_never_kept(place: Place, function: str) -> None:
    with danga_peer.Peer(place.port("danga")) as application, danga_peer.Peer(place.port("danga")) as worker:
        handle = application.create(function.encode(), type=danga_peer.THROW_AWAY).decode()
        worker.connect(function.encode()).grab()
        worker.finish(b"thrown away")
        application.result(handle.encode())
    answer = place.peer.call("GET", f"/jobs/{handle}/result")
    assert (answer.status, answer.json["kind"]) == (410, "result-gone")
    assert "without keeping its result" in run(place.urls["gearman"], "show", handle, "--result", code=4).err


def test_oldest_large_results_make_room(tmp_path: Path, function: str) -> None:
    """The record stays, with the beginning of the result."""
    store = f"sqlite://{tmp_path}/jobs.db"
    for place in serve("--store", store, "--keep-results", "150000"):
        handles = [place.finished(function, LARGE) for _ in range(3)]
        kept = [place.peer.get(f"/jobs/{handle}")["result_kept"] for handle in handles]
        assert kept == [65536, len(LARGE), len(LARGE)]
        answer = place.peer.call("GET", f"/jobs/{handles[0]}/result")
        assert (answer.status, answer.json["kind"]) == (410, "result-cut")


def test_outputs_of_gearmonkey_jobs_are_whole_after_many_others(tmp_path: Path) -> None:
    """The door has 64 MiB of hashes in memory; the others are read from the records, also after a restart."""
    store, size = f"sqlite://{tmp_path}/jobs.db", 3_000_000
    numbers: list[int] = []
    options = ("--store", store, "--result-max", "4MiB", "--listen", f"gearmonkey://{serving.HOST}:0")
    with serving.serve(*options) as server, redis_py_peer.connect(server.port) as raw:
        for count in range(30):
            number = raw.incr("uid:f")
            raw.hset(f"job:f:{number}", mapping={"status": "idle", "input": ""})
            raw.lpush("queue:f:normal", number)
            assert raw.rpop("queue:f:normal") == b"%d" % number
            raw.hset(f"job:f:{number}", mapping={"status": "success", "output": b"%02d" % count * (size // 2)})
            numbers.append(number)
        assert raw.hget(f"job:f:{numbers[0]}", "output") == b"00" * (size // 2)
        with raw.pipeline(transaction=True) as pipeline:
            for number in numbers[:10]:
                pipeline.hget(f"job:f:{number}", "output")
            outputs = pipeline.execute()
        assert [output[:2] for output in outputs] == [b"%02d" % count for count in range(10)]
        assert {len(output) for output in outputs} == {size}
        server.kill()
    with serving.serve(*options) as server, redis_py_peer.connect(server.port) as raw:
        for count in (0, 17, 28):
            assert raw.hget(f"job:f:{numbers[count]}", "output") == b"%02d" % count * (size // 2)
