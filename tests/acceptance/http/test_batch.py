"""Submitting many jobs with one request, and the library that does so."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

import geartrain
from geartrain.doors.http.submission import MOST_JOBS
from geartrain.errors import RefusedError
from tests.acceptance.http.conftest import HTTP
from tests.support import serving
from tests.support.http_peer import Peer
from tests.support.protocol_ends import async_test

TOKEN = "gt_a-token-for-the-tests-of-batches"


def batch(peer: Peer, *jobs: Any) -> Any:
    return peer.post("/jobs/batch", {"jobs": jobs})


def test_every_job_gets_its_handle_in_order(peer: Peer, function: str) -> None:
    answer = batch(peer, *({"function": function, "payload": f"{number}", "priority": "low"} for number in range(50)))
    assert (answer["accepted"], answer["refused"]) == (50, 0)
    jobs = [peer.get(f"/jobs/{item['handle']}") for item in answer["items"]]
    assert [(job["payload"], job["priority"]) for job in jobs] == [(f"{number}", "low") for number in range(50)]
    worker = peer.worker(function)
    assert [worker.claim()["payload"] for _ in range(3)] == ["0", "1", "2"]


def test_a_refused_job_says_why_and_harms_no_other(peer: Peer, function: str) -> None:
    assert peer.call("PUT", f"/functions/{function}/limits", {"high": 2, "normal": 2, "low": 2}).status == 200
    wrong = [
        {"function": ""},
        {"function": function, "background": False, "wait": 1},
        {"function": function, "wait": 1},
        {"function": function, "payload_base64": "***"},
        {"function": function, "delay": 10, "expires": 5},
    ]
    right = {"function": function}
    answer = batch(peer, right, *wrong, right, right)
    kinds = [item["problem"]["kind"] if item["problem"] else None for item in answer["items"]]
    assert kinds == [None, *["bad-request"] * len(wrong), None, "queue-full"]
    assert [item["handle"] is None for item in answer["items"]] == [kind is not None for kind in kinds]
    assert (answer["accepted"], answer["refused"]) == (2, 6)
    assert peer.get(f"/functions/{function}")["queued"] == 2


def test_equal_unique_keys_are_one_job(peer: Peer, function: str) -> None:
    answer = batch(peer, *[{"function": function, "unique": "same"}] * 3)
    assert len({item["handle"] for item in answer["items"]}) == 1
    assert peer.get(f"/functions/{function}")["queued"] == 1


@pytest.mark.parametrize("jobs", [[], [{"function": "many"}] * (MOST_JOBS + 1), [{"function": "a"}, {"priority": 1}]])
def test_an_invalid_batch_submits_nothing(peer: Peer, jobs: Any) -> None:
    before = peer.get("/overview")["submitted"]
    answer = peer.call("POST", "/jobs/batch", {"jobs": jobs})
    assert (answer.status, answer.json["kind"]) == (400, "bad-request")
    assert peer.get("/overview")["submitted"] == before


def test_a_batch_survives_a_kill(tmp_path: Path) -> None:
    store = ("--store", f"sqlite:///{tmp_path}/jobs.db", "--listen", HTTP)
    with serving.serve(*store) as server:
        handles = [item["handle"] for item in batch(Peer(server.url), *[{"function": "mail"}] * 300)["items"]]
        server.kill()
    with serving.serve(*store) as server:
        assert Peer(server.url).get("/functions/mail")["queued"] == 300
        assert Peer(server.url).get(f"/jobs/{handles[-1]}")["state"] == "queued"


def test_rights_and_quotas_are_those_of_single_jobs(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    users.write_text(
        f'[mailer]\nmay = ["submit:mail*"]\ntokens = [{{ digest = "sha256:{digest}" }}]\nmax_queued_jobs = 2\n'
    )
    with serving.serve("--store", "memory", "--users-file", str(users), "--listen", f"{HTTP}?may=none") as server:
        mailer = Peer(server.url, TOKEN)
        answer = batch(mailer, {"function": "mail"}, {"function": "report"}, {"function": "mail"}, {"function": "mail"})
        assert [item["problem"] and item["problem"]["kind"] for item in answer["items"]] == [
            None,
            "forbidden",
            None,
            "queue-full",
        ]
        assert Peer(server.url).call("POST", "/jobs/batch", {"jobs": [{"function": "mail"}]}).status == 401


@async_test
async def test_the_library_submits_many_with_few_requests(server: serving.ServerProcess, peer: Peer) -> None:
    before = peer.get("/overview")["submitted"]
    async with geartrain.AsyncClient(server.urls[1]) as client:
        orders = [client.order("many", f"{number}", background=True) for number in range(1200)]
        jobs = await client.submit_many(orders)
        connections = peer.get("/connections")
    assert peer.get("/overview")["submitted"] == before + 1200
    assert len({job.handle for job in jobs}) == 1200
    assert peer.get(f"/jobs/{jobs[777].handle}")["payload"] == "777"
    # One connection for each request that is under way: a request for each job would have used the most.
    assert next(door["connections"] for door in connections if door["protocol"] == "http") < 10


@async_test
async def test_the_library_names_the_job_that_was_refused(server: serving.ServerProcess, peer: Peer) -> None:
    assert peer.call("PUT", "/functions/narrow/limits", {"high": 1, "normal": 1, "low": 1}).status == 200
    async with geartrain.AsyncClient(server.urls[1]) as client:
        orders = [client.order(function, background=True) for function in ("narrow", "narrow", "wide")]
        first, second, third = await client.submit_many(orders, return_exceptions=True)
    assert isinstance(second, RefusedError)
    assert not isinstance(first, Exception)
    assert not isinstance(third, Exception)
