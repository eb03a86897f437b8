"""The administrative commands that answer with one line, byte for byte, and how lines are read."""

import importlib.metadata
import re

import pytest

from tests.support import serving
from tests.support.gearman_peer import Dial, Hire, Kind, Peer, request

UNKNOWN = b"ERR UNKNOWN_COMMAND Unknown+server+command"
INCOMPLETE = b"ERR INVALID_ARGUMENTS An+incomplete+set+of+arguments+was+sent+to+this+command+"

ANSWERS = [
    ("", UNKNOWN),
    (" version", UNKNOWN),
    ("help", UNKNOWN + b"help"),
    ("gladiator", UNKNOWN + b"gladiator"),
    ("jobs", UNKNOWN + b"jobs"),
    ("clients all", UNKNOWN + b"clients"),
    ("Nonsense here", UNKNOWN + b"Nonsense"),
    ("show", UNKNOWN + b"show"),
    ("show nothing", b"ERR UNKNOWN_SHOW_ARGUMENTS"),
    ("show jobs extra", b"ERR UNKNOWN_SHOW_ARGUMENTS"),
    ("show unique jobs extra", b"ERR UNKNOWN_SHOW_ARGUMENTS"),
    ("show unique", b"ERR UNKNOWN_SHOW_ARGUMENTS"),
    ("cancel", UNKNOWN + b"cancel"),
    ("cancel job", UNKNOWN + b"cancel"),
    ("cancel foo bar", b"ERR UNKNOWN_ERROR"),
    ("cancel job H:nobody:1", b"ERR UNKNOWN_JOB"),
    ("cancel job H:nobody:1 extra", b"ERR UNKNOWN_ERROR"),
    ("create", INCOMPLETE + b"create"),
    ("create function", INCOMPLETE + b"create"),
    ("create other name", INCOMPLETE + b"create"),
    ("create function name extra", INCOMPLETE + b"create"),
    ("drop", INCOMPLETE + b"drop"),
    ("drop function", INCOMPLETE + b"drop"),
    ("drop other name", INCOMPLETE + b"drop"),
    ("drop function name extra", INCOMPLETE + b"drop"),
    ("drop function nobody-knows-it", b"ERR function not found"),
    ("maxqueue", INCOMPLETE + b"maxqueue"),
    ("maxqueue nobody-knows-it", b"OK"),
    ("maxqueue nobody-knows-it 1", b"OK"),
    ("maxqueue nobody-knows-it 1 2 3", b"OK"),
]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize(("command", "answer"), ANSWERS, ids=[command or "empty" for command, _ in ANSWERS])
def test_answers(command: str, answer: bytes, ending: bytes, admin: Peer) -> None:
    assert admin.text(command, ending).line() == answer + b"\r\n"
    admin.silence()


def test_version(admin: Peer) -> None:
    """It begins with the gearmand whose place the server takes: scripts compare it."""
    assert re.fullmatch(rb"OK 1\.1\.20\S*\n", admin.text("version").line())


@pytest.mark.differs_from_gearmand
def test_version_names_ours(admin: Peer) -> None:
    version = importlib.metadata.version("geartrain").encode()
    assert admin.text("version").line() == b"OK 1.1.20+geartrain.%b\n" % version


def test_getpid(admin: Peer, server: serving.ServerProcess) -> None:
    assert admin.text("getpid").line() == b"OK %d\n" % server.pid


def test_verbose(admin: Peer) -> None:
    assert re.fullmatch(rb"OK [A-Z]+\n", admin.text("verbose").line())


@pytest.mark.parametrize(
    "command", ["VERSION", "Version", "version extra words here", "version  ", "GetPid x", "VERBOSE y"]
)
def test_case_and_more_words_do_not_matter(command: str, admin: Peer) -> None:
    assert admin.text(command).line().startswith(b"OK ")
    admin.silence()


@pytest.mark.differs_from_gearmand
def test_many_words_do_no_harm(admin: Peer) -> None:
    """gearmand closes the connection at the sixth."""
    assert admin.text("version" + " word" * 20).line().startswith(b"OK ")
    admin.silence()


def test_commands_in_one_write_are_answered_in_order(admin: Peer) -> None:
    admin.raw(b"version\r\ngetpid\nnonsense\nshow unique jobs\nverbose\n")
    assert admin.line().startswith(b"OK 1.1.20")
    assert re.fullmatch(rb"OK [0-9]+\n", admin.line())
    assert admin.line() == UNKNOWN + b"nonsense\r\n"
    admin.block()
    assert re.fullmatch(rb"OK [A-Z]+\n", admin.line())


def test_text_and_packets_on_one_connection(admin: Peer, function: bytes) -> None:
    admin.raw(
        request(Kind.ECHO_REQ, b"1")
        + b"verbose\n"
        + request(Kind.SUBMIT_JOB_BG, function, b"", b"data\n")
        + b"nonsense\r\n"
        + request(Kind.GET_STATUS, b"H:x:1")
        + b"verbose\r\n"
    )
    admin.expect(Kind.ECHO_RES, b"1")
    assert admin.line().startswith(b"OK ")
    admin.body(Kind.JOB_CREATED)
    assert admin.line() == UNKNOWN + b"nonsense\r\n"
    admin.expect(Kind.STATUS_RES, b"H:x:1", b"0", b"0", b"0", b"0")
    assert admin.line().startswith(b"OK ")


def test_a_line_may_come_byte_by_byte(admin: Peer, client: Peer) -> None:
    for letter in b"maxqueue\r\n":
        admin.raw(bytes([letter]))
        client.silence()
    assert admin.line() == INCOMPLETE + b"maxqueue\r\n"


@pytest.mark.differs_from_gearmand
@pytest.mark.parametrize("command", ["status", "workers", "version", "nonsense", "show jobs"])
def test_an_administrator_that_half_closes_at_once_is_answered(command: str, dial: Dial) -> None:
    """`printf 'status\\n' | nc -N`: gearmand mostly closes without an answer."""
    for _ in range(10):
        admin = dial()
        admin.text(command).half_close()
        assert admin.rest().endswith(b"\n")


@pytest.mark.parametrize(
    ("command", "ending"),
    [
        ("create function", b"\r\n"),
        pytest.param("create function", b"\n", marks=pytest.mark.differs_from_gearmand),
    ],
    ids=["CRLF", "LF"],
)
def test_create_function(command: str, ending: bytes, admin: Peer, function: bytes) -> None:
    """With a bare LF gearmand loses the last letter of the name."""
    assert admin.text(command.encode() + b" " + function, ending).line() == b"OK\r\n"
    assert [row for row in admin.listing("status") if function.startswith(row[0])] == [[function, b"0", b"0", b"0"]]


def test_drop_function(admin: Peer, function: bytes) -> None:
    admin.text(b"create function " + function, b"\r\n").line()
    assert admin.text(b"drop function " + function).line() == b"OK\r\n"
    assert function not in [row[0] for row in admin.listing("status")]
    assert admin.text(b"drop function " + function).line() == b"ERR function not found\r\n"


def test_a_function_with_workers_is_not_dropped(admin: Peer, hire: Hire, function: bytes) -> None:
    hire(function)
    answer = admin.text(b"drop function " + function).line()
    assert answer == b"ERR there are still connected workers or executing clients\r\n"
    assert [function, b"0", b"0", b"1"] in admin.listing("status")


@pytest.mark.differs_from_gearmand
def test_a_function_with_waiting_jobs_is_not_dropped(admin: Peer, client: Peer, hire: Hire, function: bytes) -> None:
    """gearmand frees it under its jobs."""
    handle = client.submit(function, b"", b"data")
    answer = admin.text(b"drop function " + function).line()
    assert answer == b"ERR there are still connected workers or executing clients\r\n"
    assert hire(function).grab().handle == handle
