"""One picture of the cluster from any of its servers: lists, totals, single jobs, settings, bulk actions."""

import hashlib
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cluster.conftest import POSTGRESQL, Pair, member
from tests.support import serving
from tests.support.gearman_peer import Kind, Peer, woken, worker
from tests.support.http_peer import Answer
from tests.support.http_peer import Peer as HttpPeer
from tests.support.waiting import wait_for

pytestmark = POSTGRESQL

FUNCTION = b"view"
UNANSWERED = "geartrain-unanswered"


class PatientPeer(HttpPeer):
    """Asks again if one of the servers has not answered within the second that it has: the machine may be busy."""

    def get(self, path: str) -> Any:
        answers: list[Answer] = []

        def everybody_answers() -> bool:
            answers.append(self.call("GET", path))
            return UNANSWERED not in answers[-1].headers

        wait_for(everybody_answers, f"all servers answer to {path}")
        assert answers[-1].status == 200, answers[-1]
        return answers[-1].json


def http(server: serving.ServerProcess) -> PatientPeer:
    return PatientPeer(server.urls[1])


def submit(server: serving.ServerProcess, count: int = 1, function: bytes = FUNCTION) -> list[str]:
    with Peer(server.port) as client:
        return [
            client.submit(function, b"", b"%d" % number, kind=Kind.SUBMIT_JOB_BG).decode() for number in range(count)
        ]


def fail(server: serving.ServerProcess, count: int, function: bytes = FUNCTION) -> None:
    """Let jobs that are queued at this server fail."""
    with worker(server.port, function) as taker:
        for _ in range(count):
            taker.send(Kind.WORK_FAIL, taker.grab().handle)
        taker.silence()


@pytest.fixture
def linked(own_pair: Pair) -> Pair:
    """Two servers that have a link."""
    for server in own_pair:
        wait_for_link(server)
    return own_pair


def wait_for_link(server: serving.ServerProcess) -> None:
    def others_answer() -> bool:
        nodes = http(server).get("/cluster")
        return len(nodes) == 2 and all(node["jobs"] is not None for node in nodes)

    wait_for(others_answer, "the servers have a link")


@contextmanager
def stopped(server: serving.ServerProcess) -> Iterator[None]:
    """The server does not answer, although it is there."""
    server.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.signal(signal.SIGCONT)


def test_totals_and_functions_are_added(linked: Pair) -> None:
    one, two = linked
    submit(one, 2)
    submit(two, 3)
    submit(two, 2, b"other")
    with worker(two.port, b"other") as taker:
        taker.grab()
        for server in linked:
            overview = http(server).get("/overview")
            assert (overview["queued"], overview["running"], overview["workers"]) == (6, 1, 1)
            page = http(server).get("/functions?sort=queued")
            counts = {item["name"]: (item["queued"], item["running"], item["workers"]) for item in page["items"]}
            assert counts == {"view": (5, 0, 0), "other": (1, 1, 1)}
            assert [item["name"] for item in page["items"]] == ["view", "other"]
            assert (page["after"], page["total"]) == ("", 2)
            assert http(server).get("/functions/view")["queued"] == 5
        assert http(one).get("/overview?local=true")["queued"] == 2
        assert http(two).get("/functions/other?local=true")["queued"] == 1
        assert http(one).get("/functions/other?local=true")["queued"] == 0
        assert http(one).get("/functions/other")["queued"] == 1


def test_pages_of_jobs(linked: Pair) -> None:
    """Newest first, whichever server has them, and whether they have ended or not."""
    one, two = linked
    handles = []
    for _ in range(3):
        handles += submit(one) + submit(two)
    with worker(one.port, FUNCTION) as taker:
        taker.send(Kind.WORK_COMPLETE, taker.grab().handle, b"")
    done = "/jobs?state=done"
    wait_for(lambda: len(http(two).get(done)["items"]) == 1, "the other server has the record")
    for server in linked:
        seen: list[Any] = []
        after = ""
        while True:
            page = http(server).get(f"/jobs?limit=2&after={after}")
            assert len(page["items"]) <= 2
            seen += page["items"]
            after = page["after"]
            if not after:
                break
        assert [job["handle"] for job in seen] == handles[::-1]
        servers = [job["server"] for job in seen if job["state"] == "queued"]
        assert sorted(servers) == ["one", "one", "two", "two", "two"]
        assert http(server).get("/jobs?state=queued")["total"] == 5
        assert http(server).call("GET", "/jobs?after=cx").status == 400
        assert http(server).call("GET", "/jobs?after=c1_2&local=true").status == 400
    assert {job["handle"] for job in http(one).get("/jobs?local=true&state=queued")["items"]} <= set(handles[0::2])


def test_pages_of_workers(linked: Pair) -> None:
    one, two = linked
    with worker(one.port, FUNCTION), worker(two.port, FUNCTION), worker(two.port, b"other"):
        for server in linked:
            first = http(server).get("/workers?limit=2")
            second = http(server).get(f"/workers?limit=2&after={first['after']}")
            found = [worker["server"] for worker in (*first["items"], *second["items"])]
            assert (sorted(found), first["total"], second["after"]) == (["one", "two", "two"], 3, "")
            assert len(http(server).get("/workers?search=other")["items"]) == 1
        assert len(http(one).get("/workers?local=true")["items"]) == 1


def test_a_job_at_its_home(linked: Pair) -> None:
    """Shown, cancelled and deleted through the server that does not have it."""
    one, two = linked
    (handle,) = submit(two)
    shown = http(one).get(f"/jobs/{handle}")
    assert (shown["state"], shown["payload"]) == ("queued", "0")
    assert http(one).call("GET", f"/jobs/{handle}/payload").data == b"0"
    assert http(one).post(f"/jobs/{handle}/cancel")["state"] == "cancelled"
    assert http(two).get(f"/jobs/{handle}")["state"] == "cancelled"
    missing = http(one).call("GET", f"/jobs/{handle[:-1]}9")
    assert missing.status == 404


def test_failed_jobs_are_retried_at_their_home(linked: Pair) -> None:
    one, two = linked
    handles = [*submit(one, 2), *submit(two, 2)]
    fail(one, 4)
    wait_for(lambda: len(http(two).get("/jobs?state=failed")["items"]) == 4, "all have failed")
    assert http(two).get("/failures")["groups"][0]["failed"] == 4
    assert http(one).post(f"/jobs/{handles[2]}/retry")["state"] == "queued"
    assert http(two).get("/overview?local=true")["queued"] == 1
    report = http(one).post("/jobs/bulk", {"action": "retry", "filter": {"state": "failed"}})
    assert report == {"done": 3, "refused": 0, "more": False}
    for server in linked:
        assert http(server).get("/overview?local=true")["queued"] == 2


def test_bulk_actions_reach_all_jobs(linked: Pair) -> None:
    one, two = linked
    submit(one, 2)
    submit(two, 3)
    report = http(two).post("/jobs/bulk", {"action": "cancel", "filter": {"state": "queued"}})
    assert report == {"done": 5, "refused": 0, "more": False}
    assert http(one).get("/overview")["queued"] == 0


def test_a_pause_holds_everywhere_when_it_is_acknowledged(linked: Pair) -> None:
    one, two = linked
    submit(two)
    for number in range(5):
        function = b"pause%d" % number
        submit(two, 1, function)
        assert http(one).post(f"/functions/{function.decode()}/pause")["paused"]
        with worker(two.port, function) as taker:
            taker.send(Kind.GRAB_JOB).expect(Kind.NO_JOB)
        http(two).post(f"/functions/{function.decode()}/resume")
        assert not http(one).get(f"/functions/{function.decode()}?local=true")["paused"]


def test_a_function_is_dropped_everywhere(linked: Pair) -> None:
    one, two = linked
    (handle,) = submit(two, 1, b"dropped")
    submit(one, 1, b"stays")
    assert http(one).call("DELETE", "/functions/dropped").status == 409
    http(one).post(f"/jobs/{handle}/cancel")
    assert http(one).call("DELETE", "/functions/dropped").status == 204
    assert [function["name"] for function in http(two).get("/functions")["items"]] == ["stays"]


def test_a_server_that_does_not_answer_is_named(tmp_path: Path, linked: Pair) -> None:
    one, two = linked
    submit(one, 1)
    (handle,) = submit(two, 2)[:1]
    with stopped(two):
        for path in ("/overview", "/functions", "/jobs", "/workers", "/failures", "/history", "/cluster"):
            answer = http(one).call("GET", path)
            assert (answer.status, answer.headers[UNANSWERED]) == (200, "two"), path
        assert http(one).call("GET", "/overview").json["queued"] == 1
        paused = http(one).call("POST", "/functions/view/pause")
        assert (paused.status, paused.headers[UNANSWERED]) == (200, "two")
        refused = http(one).call("GET", f"/jobs/{handle}")
        assert (refused.status, "two" in refused.json["detail"]) == (503, True)
        done = serving.run_command(tmp_path, "status", "--server", one.url)
        assert (done.returncode, "two" in done.stderr) == (0, True)
    wait_for_link(one)
    assert http(one).get("/overview")["queued"] == 3
    wait_for(lambda: http(two).get("/functions/view?local=true")["paused"], "it learns of the pause")


def test_commands_show_the_cluster(tmp_path: Path, linked: Pair) -> None:
    one, two = linked
    submit(one, 1)
    submit(two, 2)

    def run(*words: str) -> str:
        done = serving.run_command(tmp_path, *words, "--server", one.url)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def queued(*words: str) -> int:
        overview: dict[str, int] = json.loads(run("status", "--json", *words))["overview"]
        return overview["queued"]

    assert (queued(), queued("--local")) == (3, 1)
    assert "SERVER" in run("jobs")
    assert len(run("jobs", "--local").splitlines()) == 2
    with worker(two.port, FUNCTION):
        assert "two" in run("workers").splitlines()[1]
        assert run("workers", "--local") == "no workers\n"


def test_a_job_of_another_server_is_followed(linked: Pair) -> None:
    """Over HTTP, and by the verb `watch`: what its worker reports, and its end with the result."""
    one, two = linked
    (handle,) = submit(two)
    with Peer(one.port) as follower, worker(two.port, FUNCTION) as taker:
        with http(one).stream(f"/jobs/{handle}/events") as stream:
            watch = json.dumps({"do": "watch", "handle": handle}).encode()
            asked = follower.submit(b"geartrain.control", data=watch)
            taker.grab()
            taker.send(Kind.WORK_STATUS, handle.encode(), b"1", b"4")
            assert stream.next("progress") == {"numerator": 1, "denominator": 4}
            follower.expect(Kind.WORK_DATA, asked, b'{"what":"progress","numerator":1,"denominator":4}\n')
            taker.send(Kind.WORK_DATA, handle.encode(), b"part")
            taker.send(Kind.WORK_WARNING, handle.encode(), b"careful")
            assert stream.next("data") == {"data": "part"}
            assert stream.next("warning") == {"data": "careful"}
            follower.expect(Kind.WORK_DATA, asked, b'{"what":"data","data":"part"}\n')
            follower.expect(Kind.WORK_DATA, asked, b'{"what":"warning","data":"careful"}\n')
            taker.send(Kind.WORK_COMPLETE, handle.encode(), b"result")
            assert stream.next("done")["result"] == "result"
        answer = json.loads(follower.body(Kind.WORK_COMPLETE).removeprefix(asked + b"\0"))["answer"]
        assert (answer["job"]["state"], answer["result"]) == ("done", "result")


def test_a_foreground_job_of_another_server_is_followed(linked: Pair) -> None:
    """Nothing is kept of it, so its end is known from the event alone."""
    one, two = linked
    with Peer(two.port) as client, worker(two.port, FUNCTION) as taker:
        handle = client.submit(FUNCTION)
        taker.grab()
        with http(one).stream(f"/jobs/{handle.decode()}/events") as stream:
            taker.send(Kind.WORK_STATUS, handle, b"1", b"4")
            stream.next("progress")
            taker.send(Kind.WORK_COMPLETE, handle, b"result")
            ended = stream.next("done")
        assert (ended["state"], ended["result"], ended["background"]) == ("done", "result", False)


def test_a_job_is_followed_to_its_next_home(schema_url: str) -> None:
    """Its server dies, and the one that is asked takes it over."""
    with member(schema_url, "one", "--lease", "2s") as one, member(schema_url, "two", "--lease", "2s") as two:
        wait_for_link(one)
        (handle,) = submit(two)
        with http(one).stream(f"/jobs/{handle}/events") as stream, worker(two.port, FUNCTION) as taker:
            taker.grab()
            taker.send(Kind.WORK_STATUS, handle.encode(), b"1", b"4")
            assert stream.next("progress") == {"numerator": 1, "denominator": 4}
            two.kill()
            with worker(one.port, FUNCTION) as other:
                other.send(Kind.PRE_SLEEP)
                assert woken(other).handle == handle.encode()
                other.send(Kind.WORK_STATUS, handle.encode(), b"2", b"4")
                assert stream.next("progress") == {"numerator": 2, "denominator": 4}
                other.send(Kind.WORK_DATA, handle.encode(), b"part")
                assert stream.next("data") == {"data": "part"}
                other.send(Kind.WORK_COMPLETE, handle.encode(), b"result")
                assert stream.next("done")["result"] == "result"


def test_rights_hold_for_what_other_servers_have(schema_url: str, tmp_path: Path) -> None:
    token = "gt_a-token-for-the-tests-of-a-cluster"
    users = tmp_path / "users.toml"
    digest = hashlib.sha256(token.encode()).hexdigest()
    users.write_text(f'[mailer]\nmay = ["read:mail.*"]\ntokens = [{{ digest = "sha256:{digest}" }}]\n')
    options = ("--lease", "60s", "--users-file", str(users))
    with member(schema_url, "one", *options) as one, member(schema_url, "two", *options) as two:
        wait_for_link(one)
        (mail,) = submit(two, 1, b"mail.send")
        (bill,) = submit(two, 1, b"bill")
        with worker(two.port, b"mail.send"), worker(two.port, b"bill"):
            mailer = HttpPeer(one.urls[1], token)
            assert [function["name"] for function in mailer.get("/functions")["items"]] == ["mail.send"]
            assert [job["handle"] for job in mailer.get("/jobs")["items"]] == [mail]
            assert [worker["functions"] for worker in mailer.get("/workers")["items"]] == [["mail.send"]]
            assert mailer.get(f"/jobs/{mail}")["state"] == "queued"
            assert mailer.call("GET", f"/jobs/{bill}").status == 403
            assert mailer.call("POST", f"/jobs/{mail}/cancel").status == 403
            with mailer.stream("/events?jobs=1") as stream:
                stream.next("overview")
                submit(two, 1, b"bill")
                submit(two, 1, b"mail.send")
                assert stream.next("job")["function"] == "mail.send"
