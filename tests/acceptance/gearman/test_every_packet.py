"""Each packet type from 1 to 42 as a request on a fresh connection: what comes back, byte for byte."""

import re
from typing import NamedTuple

import pytest

from tests.support.gearman_peer import Kind, Peer, request

NOTHING = None  # the request has no answer
HANDLE = b"<handle>"  # stands for a handle that the server makes up
NOT_EXPECTED = (Kind.ERROR, b"INVALID_COMMAND\0Command not expected")
NO_RESULT_JOB = (Kind.ERROR, b"JOB_NOT_FOUND\0Job given in work result not found")
NO_DATA_JOB = (Kind.ERROR, b"JOB_NOT_FOUND\0Job does not exist on server")
NO_EXCEPTION_JOB = (Kind.ERROR, b"JOB_NOT_FOUND\0An exception was received for a job that does not exist")
CREATED = (Kind.JOB_CREATED, HANDLE)
NO_JOB = (Kind.NO_JOB, b"")


class Case(NamedTuple):
    kind: Kind
    body: bytes
    answer: tuple[Kind, bytes] | None
    ours: bool = False  # gearmand answers otherwise


CASES = [
    Case(Kind.CAN_DO, b"f", NOTHING),
    Case(Kind.CANT_DO, b"f", NOTHING),
    Case(Kind.RESET_ABILITIES, b"", NOTHING),
    Case(Kind.PRE_SLEEP, b"", NOTHING),
    Case(Kind.UNUSED, b"", NOT_EXPECTED),
    Case(Kind.NOOP, b"", NOT_EXPECTED),
    Case(Kind.SUBMIT_JOB, b"f\0u7\0data", CREATED),
    Case(Kind.JOB_CREATED, b"H:x:1", NOT_EXPECTED),
    Case(Kind.GRAB_JOB, b"", NO_JOB),
    Case(Kind.NO_JOB, b"", NOT_EXPECTED),
    Case(Kind.JOB_ASSIGN, b"H:x:1\0f\0data", NOT_EXPECTED),
    Case(Kind.WORK_STATUS, b"H:x:1\0001\0002", NO_RESULT_JOB),
    Case(Kind.WORK_COMPLETE, b"H:x:1\0data", NO_RESULT_JOB),
    Case(Kind.WORK_FAIL, b"H:x:1", NO_RESULT_JOB),
    Case(Kind.GET_STATUS, b"H:x:1", (Kind.STATUS_RES, b"H:x:1\0000\0000\0000\0000")),
    Case(Kind.ECHO_REQ, b"a\0b\0", (Kind.ECHO_RES, b"a\0b\0")),
    Case(Kind.ECHO_RES, b"a", NOT_EXPECTED),
    Case(Kind.SUBMIT_JOB_BG, b"f\0u18\0data", CREATED),
    Case(Kind.ERROR, b"CODE\0text", NOT_EXPECTED),
    Case(Kind.STATUS_RES, b"H:x:1\0000\0000\0000\0000", NOT_EXPECTED),
    Case(Kind.SUBMIT_JOB_HIGH, b"f\0u21\0data", CREATED),
    Case(Kind.SET_CLIENT_ID, b"me", NOTHING),
    Case(Kind.CAN_DO_TIMEOUT, b"f\0001000", NOTHING),
    Case(Kind.ALL_YOURS, b"", NOTHING, ours=True),
    Case(Kind.WORK_EXCEPTION, b"H:x:1\0data", NO_EXCEPTION_JOB),
    Case(Kind.OPTION_REQ, b"exceptions", (Kind.OPTION_RES, b"exceptions")),
    Case(Kind.OPTION_RES, b"exceptions", NOT_EXPECTED),
    Case(Kind.WORK_DATA, b"H:x:1\0data", NO_DATA_JOB),
    Case(Kind.WORK_WARNING, b"H:x:1\0data", NO_DATA_JOB),
    Case(Kind.GRAB_JOB_UNIQ, b"", NO_JOB),
    Case(Kind.JOB_ASSIGN_UNIQ, b"H:x:1\0f\0u\0data", NOT_EXPECTED),
    Case(Kind.SUBMIT_JOB_HIGH_BG, b"f\0u32\0data", CREATED),
    Case(Kind.SUBMIT_JOB_LOW, b"f\0u33\0data", CREATED),
    Case(Kind.SUBMIT_JOB_LOW_BG, b"f\0u34\0data", CREATED),
    Case(Kind.SUBMIT_JOB_SCHED, b"f\0u35\0\0\0\0\0\0data", CREATED, ours=True),
    Case(Kind.SUBMIT_JOB_EPOCH, b"f\0u36\0000\0data", CREATED),
    Case(Kind.SUBMIT_REDUCE_JOB, b"f\0u37\0reducer\0000\0data", CREATED),
    Case(Kind.SUBMIT_REDUCE_JOB_BG, b"f\0u38\0reducer\0000\0data", CREATED),
    Case(Kind.GRAB_JOB_ALL, b"", NO_JOB),
    Case(Kind.JOB_ASSIGN_ALL, b"H:x:1\0f\0u\0reducer\0data", NOT_EXPECTED),
    Case(Kind.GET_STATUS_UNIQUE, b"none", (Kind.STATUS_RES_UNIQUE, b"none\0000\0000\0000\0000\0000")),
    Case(Kind.STATUS_RES_UNIQUE, b"u\0000\0000\0000\0000\0000", NOT_EXPECTED),
]


def test_the_table_leaves_no_type_out() -> None:
    assert [case.kind for case in CASES] == list(range(1, 43))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.kind.name, marks=[pytest.mark.differs_from_gearmand] if case.ours else [])
        for case in CASES
    ],
)
def test_request(case: Case, client: Peer) -> None:
    client.send(case.kind, case.body)
    if case.answer is not None:
        kind, body = case.answer
        if body == HANDLE:
            assert re.fullmatch(rb"H:[^:\0]+:[1-9][0-9]*", client.body(kind))
        else:
            client.expect(kind, body)
    client.silence()


@pytest.mark.parametrize("kind", [case.kind for case in CASES], ids=lambda kind: kind.name)
def test_response_magic_is_refused_and_the_connection_goes_on(kind: Kind, client: Peer) -> None:
    body = next(case.body for case in CASES if case.kind == kind)
    client.raw(b"\0RES" + kind.to_bytes(4, "big") + len(body).to_bytes(4, "big") + body)
    client.expect(Kind.ERROR, b"INVALID_MAGIC", b"Request magic expected")
    client.silence()


@pytest.mark.parametrize(
    "kind", [Kind.PRE_SLEEP, Kind.RESET_ABILITIES, Kind.GRAB_JOB, Kind.GRAB_JOB_UNIQ], ids=lambda k: k.name
)
def test_a_body_where_none_belongs_is_ignored(kind: Kind, client: Peer) -> None:
    client.send(kind, b"hello")
    if kind in (Kind.GRAB_JOB, Kind.GRAB_JOB_UNIQ):
        client.expect(Kind.NO_JOB)
    client.silence()


def test_requests_in_one_write_are_answered_in_order(client: Peer, function: bytes) -> None:
    count = 300
    client.raw(
        b"".join(
            request(Kind.ECHO_REQ, b"%d" % number) + request(Kind.SUBMIT_JOB_BG, function, b"", b"data")
            for number in range(count)
        )
    )
    numbers = []
    for number in range(count):
        client.expect(Kind.ECHO_RES, b"%d" % number)
        numbers.append(int(client.body(Kind.JOB_CREATED).rpartition(b":")[2]))
    assert numbers == sorted(set(numbers))
