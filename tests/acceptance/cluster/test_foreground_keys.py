"""Foreground jobs with the same unique key at several servers: one run, and everybody hears."""

import pytest

from tests.acceptance.cluster.conftest import POSTGRESQL, Pair
from tests.acceptance.cluster.test_lending import idle_worker, record, woken
from tests.support.gearman_peer import Kind, Peer, worker

pytestmark = POSTGRESQL

FUNCTION = b"f"


def test_clients_of_both_servers_hear_of_one_run(pair: Pair) -> None:
    one, two = pair
    with idle_worker(one) as taker, Peer(one.port) as first, Peer(two.port) as second:
        handle = first.submit(FUNCTION, b"key", b"payload")
        assert woken(taker).handle == handle
        assert second.submit(FUNCTION, b"key", b"other") == handle
        taker.send(Kind.WORK_STATUS, handle, b"1", b"2")
        taker.send(Kind.WORK_DATA, handle, b"part")
        taker.send(Kind.WORK_WARNING, handle, b"careful")
        taker.send(Kind.WORK_COMPLETE, handle, b"result")
        for client in (first, second):
            client.expect(Kind.WORK_STATUS, handle, b"1", b"2")
            client.expect(Kind.WORK_DATA, handle, b"part")
            client.expect(Kind.WORK_WARNING, handle, b"careful")
            client.expect(Kind.WORK_COMPLETE, handle, b"result")
        taker.send(Kind.GRAB_JOB).expect(Kind.NO_JOB)


@pytest.mark.parametrize("word", [Kind.WORK_FAIL, Kind.WORK_EXCEPTION])
def test_failure(pair: Pair, word: Kind) -> None:
    one, two = pair
    with idle_worker(one) as taker, Peer(one.port) as first, Peer(two.port) as second:
        second.send(Kind.OPTION_REQ, b"exceptions").expect(Kind.OPTION_RES, b"exceptions")
        handle = first.submit(FUNCTION, b"key")
        assert woken(taker).handle == handle
        assert second.submit(FUNCTION, b"key") == handle
        arguments = (handle,) if word is Kind.WORK_FAIL else (handle, b"why")
        taker.send(word, *arguments)
        second.expect(word, *arguments)


def test_joins_a_background_job_of_the_other_server(pair: Pair) -> None:
    one, two = pair
    with Peer(one.port) as first, Peer(two.port) as second:
        handle = first.submit(FUNCTION, b"key", b"payload", kind=Kind.SUBMIT_JOB_BG)
        assert second.submit(FUNCTION, b"key") == handle
        with worker(two.port, FUNCTION) as taker:
            taker.send(Kind.PRE_SLEEP)
            job = woken(taker)
            assert (job.handle, job.data) == (handle, b"payload")
            taker.send(Kind.WORK_COMPLETE, handle, b"result")
        second.expect(Kind.WORK_COMPLETE, handle, b"result")
        assert record(one, handle)["state"] == "done"


def test_key_is_free_again_after_the_end(pair: Pair) -> None:
    one, two = pair
    handles = set()
    with idle_worker(one) as taker:
        for server in (one, two, one):
            with Peer(server.port) as client:
                handle = client.submit(FUNCTION, b"key")
                assert woken(taker).handle == handle
                taker.send(Kind.WORK_COMPLETE, handle, b"").send(Kind.PRE_SLEEP)
                client.expect(Kind.WORK_COMPLETE, handle, b"")
                handles.add(handle)
    assert len(handles) == 3


def test_job_is_cancelled_with_the_last_client_of_all_servers(pair: Pair) -> None:
    one, two = pair
    with Peer(one.port) as first, Peer(two.port) as second:
        handle = first.submit(FUNCTION, b"key")
        assert second.submit(FUNCTION, b"key") == handle
        first.close()
        with idle_worker(one) as taker:
            assert woken(taker).handle == handle
            taker.send(Kind.WORK_COMPLETE, handle, b"result")
            second.expect(Kind.WORK_COMPLETE, handle, b"result")


def test_home_is_lost_and_the_job_is_submitted_again(own_pair: Pair) -> None:
    one, two = own_pair
    with Peer(one.port) as first, Peer(two.port) as second:
        handle = first.submit(FUNCTION, b"key", b"payload")
        assert second.submit(FUNCTION, b"key", b"payload") == handle
        one.kill()
        with idle_worker(two) as taker:
            job = woken(taker)
            assert job.data == b"payload"
            taker.send(Kind.WORK_COMPLETE, job.handle, b"result")
        second.expect(Kind.WORK_COMPLETE, handle, b"result")


def test_many_equal_keys_at_once(pair: Pair) -> None:
    """Each key runs as often as it would at one server: once while anybody waits for it."""
    one, two = pair
    keys = [b"many %d" % number for number in range(50)]
    with Peer(one.port) as first, Peer(two.port) as second:
        for client in (first, second):
            for key in keys:
                client.send(Kind.SUBMIT_JOB, FUNCTION, key, b"")
        created = [[client.body(Kind.JOB_CREATED) for _ in keys] for client in (first, second)]
        assert created[0] == created[1]
        ran = []
        with worker(one.port, FUNCTION) as taker:
            for _ in keys:
                ran.append(taker.grab().handle)
                taker.send(Kind.WORK_COMPLETE, ran[-1], b"")
            taker.send(Kind.GRAB_JOB).expect(Kind.NO_JOB)
        assert sorted(ran) == sorted(created[0])
        for client in (first, second):
            ended = {client.body(Kind.WORK_COMPLETE).rstrip(b"\0") for _ in keys}
            assert ended == set(created[0])
