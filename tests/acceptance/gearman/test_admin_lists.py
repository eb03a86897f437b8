"""The administrative listings: status, prioritystatus, workers, show jobs, show unique jobs."""

import re

import pytest

from tests.support.gearman_peer import Depart, Dial, Hire, Kind, Peer

LISTINGS = ["status", "prioritystatus", "workers", "show jobs", "show unique jobs"]


def row(rows: list[list[bytes]], first: bytes) -> list[bytes]:
    (found,) = [row for row in rows if row[0] == first]
    return found


def worker_lines(admin: Peer, name: bytes) -> list[bytes]:
    admin.text("workers")
    return [line for line in admin.block() if name in line.split(b" ")]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("command", LISTINGS)
def test_a_listing_ends_with_a_dot_and_bare_line_feeds(command: str, ending: bytes, admin: Peer) -> None:
    admin.text(command, ending).text("nonsense")
    while (line := admin.line()) != b".\n":
        assert b"\r" not in line
    assert admin.line() == b"ERR UNKNOWN_COMMAND Unknown+server+commandnonsense\r\n"


@pytest.mark.parametrize("command", ["STATUS", "Status", "WorKers", "SHOW JOBS", "Show Unique Jobs", "PriorityStatus"])
def test_case_does_not_matter(command: str, admin: Peer) -> None:
    admin.text(command).block()
    admin.silence()


@pytest.mark.parametrize("command", ["status extra", "workers a b c", "prioritystatus  x", "status   "])
def test_more_words_and_spaces_do_not_matter(command: str, admin: Peer) -> None:
    admin.text(command).block()
    admin.silence()


def test_status_counts_all_jobs_running_jobs_and_workers(
    client: Peer, admin: Peer, hire: Hire, function: bytes
) -> None:
    handles = [client.submit(function) for _ in range(3)]
    assert row(admin.listing("status"), function) == [function, b"3", b"0", b"0"]
    first = hire(function)
    hire(function)
    assert row(admin.listing("status"), function) == [function, b"3", b"0", b"2"]
    first.grab()
    assert row(admin.listing("status"), function) == [function, b"3", b"1", b"2"]
    first.send(Kind.WORK_COMPLETE, handles[0], b"")
    client.expect(Kind.WORK_COMPLETE, handles[0], b"")
    assert row(admin.listing("status"), function) == [function, b"2", b"0", b"2"]


def test_status_keeps_functions_that_nobody_uses_any_more(
    admin: Peer, hire: Hire, depart: Depart, function: bytes
) -> None:
    depart(hire(function))
    assert row(admin.listing("status"), function) == [function, b"0", b"0", b"0"]


def test_prioritystatus_counts_what_waits(client: Peer, admin: Peer, worker: Peer, function: bytes) -> None:
    counts = {Kind.SUBMIT_JOB_HIGH: 1, Kind.SUBMIT_JOB: 2, Kind.SUBMIT_JOB_LOW_BG: 3}
    for kind, count in counts.items():
        for _ in range(count):
            client.submit(function, kind=kind)
    assert row(admin.listing("prioritystatus"), function) == [function, b"1", b"2", b"3", b"1"]
    for _ in range(2):
        worker.grab()
    assert row(admin.listing("prioritystatus"), function) == [function, b"0", b"1", b"3", b"1"]


def test_workers_shows_address_name_and_functions(admin: Peer, dial: Dial, function: bytes) -> None:
    name = b"worker-of-" + function
    peer = dial().register(function, function + b"b")
    peer.send(Kind.SET_CLIENT_ID, name).silence()
    (line,) = worker_lines(admin, name)
    assert re.fullmatch(rb"[0-9]+ 127\.0\.0\.1 %b : %bb %b" % (name, function, function), line), (
        "the newest function first"
    )


def test_workers_without_a_name_show_a_dash(admin: Peer, worker: Peer, function: bytes) -> None:
    (line,) = worker_lines(admin, function)
    assert re.fullmatch(rb"[0-9]+ 127\.0\.0\.1 - : " + function, line)


def test_workers_lists_every_connection_even_the_one_that_asks(admin: Peer, dial: Dial) -> None:
    admin.send(Kind.SET_CLIENT_ID, b"asker").silence()
    dial().send(Kind.SET_CLIENT_ID, b"mere-client").silence()
    for name in (b"asker", b"mere-client"):
        (line,) = worker_lines(admin, name)
        assert re.fullmatch(rb"[0-9]+ 127\.0\.0\.1 %b :" % name, line)


def test_a_name_may_contain_spaces(admin: Peer, dial: Dial, function: bytes) -> None:
    dial().register(function).send(Kind.SET_CLIENT_ID, b"a name of " + function).silence()
    admin.text("workers")
    (line,) = [line for line in admin.block() if b"a name of " + function in line]
    assert line.endswith(b" 127.0.0.1 a name of %b : %b" % (function, function))


def test_withdrawn_functions_disappear_from_workers(admin: Peer, worker: Peer, function: bytes) -> None:
    worker.send(Kind.SET_CLIENT_ID, b"name-" + function).send(Kind.CANT_DO, function).silence()
    (line,) = worker_lines(admin, b"name-" + function)
    assert line.endswith(b" :")


def test_show_jobs(client: Peer, admin: Peer, worker: Peer, function: bytes) -> None:
    """Handle, lost workers, whether nobody waits for it any more, whether it is a background job."""
    waiting = client.submit(function, b"", b"data")
    detached = client.submit(function, b"", b"data", kind=Kind.SUBMIT_JOB_BG)
    rows = admin.listing("show jobs")
    assert row(rows, waiting) == [waiting, b"0", b"0", b"0"]
    assert row(rows, detached) == [detached, b"0", b"0", b"1"]
    worker.grab()
    assert row(admin.listing("show jobs"), waiting) == [waiting, b"0", b"0", b"0"]
    worker.send(Kind.WORK_FAIL, waiting).silence()
    assert waiting not in [row[0] for row in admin.listing("show jobs")]


def test_show_unique_jobs(client: Peer, admin: Peer, worker: Peer, function: bytes) -> None:
    unique = b"unique of " + function
    handle = client.submit(function, unique, b"data")
    assert [unique] in admin.listing("show unique jobs")
    worker.grab()
    assert [unique] in admin.listing("show unique jobs")
    worker.send(Kind.WORK_COMPLETE, handle, b"").silence()
    assert [unique] not in admin.listing("show unique jobs")
