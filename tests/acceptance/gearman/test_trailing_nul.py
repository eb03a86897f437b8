"""A peer written in C may count the NUL that ends its string: the only argument of a packet may end with one."""

import pytest

from tests.support.gearman_peer import Dial, Kind, Peer


def test_work_fail_ends_the_job(client: Peer, worker: Peer, function: bytes) -> None:
    """The client gets what the worker sent, or the handle alone; the worker gets no ERROR."""
    handle = client.submit(function, b"", b"data")
    worker.grab()
    worker.send(Kind.WORK_FAIL, handle + b"\0").silence()
    assert client.body(Kind.WORK_FAIL) in (handle, handle + b"\0")
    assert client.status(handle) == (0, 0, 0, 0)


def test_get_status_finds_the_job(client: Peer, worker: Peer, function: bytes) -> None:
    handle = client.submit(function, b"", b"data")
    worker.grab()
    client.send(Kind.GET_STATUS, handle + b"\0")
    client.expect(Kind.STATUS_RES, handle, b"1", b"1", b"0", b"0")


def test_get_status_unique_finds_the_job(client: Peer, function: bytes) -> None:
    unique = b"unique of " + function
    client.submit(function, unique, b"data")
    client.send(Kind.GET_STATUS_UNIQUE, unique + b"\0")
    client.expect(Kind.STATUS_RES_UNIQUE, unique, b"1", b"0", b"0", b"0", b"1")


@pytest.mark.parametrize("option", [b"exceptions\0", b"EXCEPTIONS\0"])
def test_option_req_is_echoed_as_sent(option: bytes, client: Peer) -> None:
    client.send(Kind.OPTION_REQ, option)
    client.expect(Kind.OPTION_RES, option)


@pytest.mark.parametrize("command", ["status", "prioritystatus"])
def test_lists_of_functions_show_a_name_up_to_its_nul(command: str, admin: Peer, dial: Dial, function: bytes) -> None:
    dial().register(function + b"\0")
    rows = admin.listing(command)
    assert [row[-1] for row in rows if row[0] == function] == [b"1"]
    assert not [row for row in rows if b"\0" in row[0]]


def test_workers_shows_names_up_to_their_nul(admin: Peer, dial: Dial, function: bytes) -> None:
    name = b"name-" + function
    dial().register(function + b"\0", function + b" other").send(Kind.SET_CLIENT_ID, name + b"\0").silence()
    admin.text("workers")
    (line,) = [line for line in admin.block() if name in line]
    assert line.endswith(b" 127.0.0.1 %b : %b other %b" % (name, function, function))
