"""Gearman's `status` and `workers` are about all servers of a cluster; events of all are heard at each."""

import json

from tests.acceptance.cluster.conftest import POSTGRESQL, Pair, member
from tests.acceptance.cluster.test_views import FUNCTION, http, linked, submit, wait_for_link
from tests.support import serving
from tests.support.gearman_peer import Kind, Peer, worker
from tests.support.waiting import wait_for

pytestmark = POSTGRESQL

__all__ = ("linked",)


def lines(server: serving.ServerProcess, command: bytes) -> list[bytes]:
    with Peer(server.port) as admin:
        return admin.text(command).block()


def test_jobs_and_workers_are_added_up(linked: Pair) -> None:
    one, two = linked
    submit(one, 2)
    submit(two, 3)
    submit(two, 2, b"other")
    with Peer(two.port) as taker:
        taker.send(Kind.SET_CLIENT_ID, b"bob").send(Kind.CAN_DO, b"other")
        handle = taker.grab().handle
        expected = [b"other\t2\t1\t1", b"view\t5\t0\t0"]
        for server in linked:
            wait_for(lambda server=server: sorted(lines(server, b"status")) == expected, "sums")  # type: ignore[misc]
            found = sorted(lines(server, b"prioritystatus"))
            assert found == [b"other\t0\t1\t0\t1", b"view\t0\t5\t0\t0"]
            listed = [line for line in lines(server, b"workers") if b" bob : other" in line]
            assert len(listed) == 1
        taker.send(Kind.WORK_COMPLETE, handle, b"")
    wait_for(lambda: b"other\t1\t0\t0" in lines(one, b"status"), "the worker has left")


def test_a_lent_job_is_counted_once(linked: Pair) -> None:
    one, two = linked
    with worker(two.port, FUNCTION) as taker:
        taker.send(Kind.PRE_SLEEP)
        (handle,) = submit(one)
        taker.expect(Kind.NOOP)
        assert taker.grab().handle.decode() == handle
        for server in linked:
            wait_for(lambda server=server: lines(server, b"status") == [b"view\t1\t1\t1"], "once")  # type: ignore[misc]
            overview = http(server).get("/overview")
            assert (overview["queued"], overview["running"], overview["workers"]) == (0, 1, 1)
            (job,) = http(server).get("/jobs")["items"]
            assert (job["handle"], job["server"], job["state"]) == (handle, "one", "running")
            nodes = {node["name"]: node for node in http(server).get("/cluster")}
            assert (nodes["one"]["jobs"], nodes["one"]["lent"], nodes["one"]["borrowed"]) == (1, 1, 0)
            assert (nodes["two"]["jobs"], nodes["two"]["lent"], nodes["two"]["borrowed"]) == (0, 0, 1)
        taker.send(Kind.WORK_COMPLETE, handle.encode(), b"")


def test_for_monitors_that_add_up_themselves(schema_url: str) -> None:
    own = ("--lease", "60s", "--cluster-status", "server")
    with member(schema_url, "one", *own) as one, member(schema_url, "two", *own) as two:
        wait_for_link(one)
        submit(one, 2)
        submit(two, 1)
        with worker(two.port, FUNCTION):
            wait_for(lambda: http(one).get("/functions/view")["workers"] == 1, "it knows of the worker")
            assert lines(one, b"status") == [b"view\t2\t0\t0"]
            assert lines(two, b"status") == [b"view\t1\t0\t1"]


def test_events_of_all_servers_over_http(linked: Pair) -> None:
    one, two = linked
    with http(one).stream("/events?jobs=1") as stream, http(one).stream("/events?jobs=1&local=true") as local:
        assert stream.next("overview")["queued"] == 0  # the other server has answered, so it knows of the interest
        assert local.next("overview")["queued"] == 0
        (theirs,) = submit(two)
        event = stream.next("job")
        assert (event["handle"], event["what"], event["server"]) == (theirs, "submitted", "two")
        (mine,) = submit(one)
        for listener in (stream, local):
            event = listener.next("job")
            assert (event["handle"], event["what"], event["server"]) == (mine, "submitted", "")


def test_events_of_a_lent_job_come_from_its_home(linked: Pair) -> None:
    one, two = linked
    with Peer(two.port) as tail, Peer(two.port) as admin, worker(two.port, FUNCTION) as taker:
        taker.send(Kind.PRE_SLEEP)
        following = tail.submit(b"geartrain.control", data=b'{"do": "tail"}')
        asking = admin.submit(b"geartrain.control", data=b'{"do": "overview"}')
        assert admin.body(Kind.WORK_COMPLETE).startswith(asking)  # and the other server knows of the interest
        (handle,) = submit(one)
        taker.expect(Kind.NOOP)
        taker.send(Kind.WORK_COMPLETE, taker.grab().handle, b"")
        events: list[dict[str, str]] = []
        while not events or events[-1]["what"] != "done":
            data = tail.body(Kind.WORK_DATA).removeprefix(following + b"\0")
            events += map(json.loads, data.splitlines())
    assert [(event["what"], event["handle"], event["server"]) for event in events] == [
        (what, handle, "one") for what in ("submitted", "started", "done")
    ]
