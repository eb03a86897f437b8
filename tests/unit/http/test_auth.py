"""Access control: hosts, cross-site requests, and scopes."""

import functools

import pytest

from geartrain import rights
from geartrain.doors.http import auth, tokens
from geartrain.doors.http.auth import Guard
from geartrain.doors.http.connection import HttpConnection
from geartrain.doors.http.problems import Refusal
from geartrain.doors.http.request import Request
from geartrain.rights import Identity
from tests.support import http_requests

SECRET = "a-secret-of-sixteen"
ANONYMOUS = Identity("anonymous", rights.parse([]))


@functools.cache
def connection() -> HttpConnection:
    return http_requests.connection(ANONYMOUS)


def request(method: str = "GET", **headers: str) -> Request:
    return http_requests.request(method, connection=connection(), **headers)


def fence(*words: str, hosts: tuple[str, ...] = ()) -> Guard:
    return Guard(tokens.Keyring(tokens.read(words), lambda: 0.0), hosts)


@pytest.mark.parametrize("host", ["localhost:4780", "127.0.0.1:4780", "[::1]:4780", "localhost", "box.lan:80"])
def test_names_of_this_machine_are_accepted(host: str) -> None:
    fence(hosts=("Box.lan",)).check_host(request(host=host))


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.nip.io:4780", "", "[::2]:4780", "[::1].evil.example"])
def test_other_names_are_refused(host: str) -> None:
    with pytest.raises(Refusal) as refused:
        fence().check_host(request(host=host))
    assert refused.value.kind == "misdirected"


def test_any_name_is_accepted_where_a_token_is_required() -> None:
    fence(f"read:{SECRET}").check_host(request(host="jobs.example"))


def test_any_name_is_accepted_where_the_door_is_open_to_all() -> None:
    made = fence()
    made.everywhere = True
    made.check_host(request(host="jobs.example"))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://localhost:4780", "host": "localhost:4780"},
        {"origin": "https://jobs.example", "host": "jobs.example"},
        {"sec_fetch_site": "same-origin"},
        {"sec_fetch_site": "none"},
    ],
)
def test_same_site_changes_are_accepted(headers: dict[str, str]) -> None:
    fence().check_origin(request("POST", **headers))


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example", "host": "localhost:4780"},
        {"origin": "http://localhost:8000", "host": "localhost:4780"},
        {"origin": "null", "host": "localhost:4780"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_cross_site_changes_are_refused(method: str, headers: dict[str, str]) -> None:
    with pytest.raises(Refusal) as refused:
        fence().check_origin(request(method, **headers))
    assert refused.value.kind == "forbidden"


def test_cross_site_reads_are_accepted() -> None:
    fence().check_origin(request("GET", sec_fetch_site="cross-site"))


def test_identity_of_the_connection() -> None:
    assert fence().identity(request()) is ANONYMOUS


def test_identity_of_a_token() -> None:
    made = fence(f"read:{SECRET}")
    for scheme in ("Bearer", "bearer"):
        identity = made.identity(request(authorization=f"{scheme} {SECRET}"))
        assert identity is not None
        assert str(identity.rights) == "read"
    assert made.identity(request()) is ANONYMOUS


@pytest.mark.parametrize("word", ["Bearer wrong", f"Basic {SECRET}", SECRET, "Bearer"])
def test_an_unknown_token_is_refused(word: str) -> None:
    with pytest.raises(Refusal) as refused:
        fence(f"read:{SECRET}").identity(request(authorization=word))
    assert refused.value.kind == "unauthorized"
    assert refused.value.headers == {"WWW-Authenticate": 'Bearer realm="geartrain"'}


def test_a_session_has_the_identity_of_its_token() -> None:
    made = fence(f"read:{SECRET}")
    identity = made.keyring.by_token(SECRET)
    session = made.keyring.log_in(identity)
    assert made.identity(request(cookie=f"{auth.COOKIE}={session}")) is identity
    assert made.identity(request(cookie=f"{auth.COOKIE}=other")) is ANONYMOUS


def test_one_of_the_scopes_is_enough() -> None:
    submitter = Identity("submitter", rights.parse(["submit:mail.*"]))
    fence().require(submitter, frozenset({rights.READ, rights.SUBMIT}))
    fence().require(ANONYMOUS, frozenset())
    fence().require(None, frozenset({rights.ADMIN}))


@pytest.mark.parametrize(("may", "kind"), [([], "unauthorized"), (["read"], "forbidden")])
def test_the_wrong_scope_is_refused(may: list[str], kind: str) -> None:
    with pytest.raises(Refusal) as refused:
        fence().require(Identity("client", rights.parse(may)), frozenset({rights.ADMIN}))
    assert refused.value.kind == kind
