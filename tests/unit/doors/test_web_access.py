"""Web access: which Host and Origin headers are accepted, and a parser that takes no foreign name for this machine."""

import ipaddress
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geartrain.doors.web_access import WebAccess, host_of, is_loopback, is_origin
from geartrain.errors import WireError

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?(\.[a-z0-9]{1,8}){0,3}", fullmatch=True)
HOSTS = st.one_of(NAMES, st.ip_addresses(v=4).map(str), st.ip_addresses(v=6).map(lambda address: f"[{address}]"))
PORTS = st.one_of(st.just(""), st.integers(0, 0xFFFF).map(lambda port: f":{port}"))
LOOPBACKS = st.sampled_from(["localhost", "127.0.0.1", "[::1]", "127.0.0.1:80", "[::1]:80", "localhost:4780"])
TAILS = st.text(alphabet="0123456789abcdef.:[]@/%#?\\ -\t\r\n\0evil", min_size=1, max_size=20)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "::1"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "localhost.example.com", "", "127.0.0.1.nip.io"])
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "authority",
    [
        "[::1].evil.example",
        "[::1]evil.example",
        "127.0.0.1:80.evil.example",
        "localhost:80@evil.example",
        "localhost:x",
        "localhost:65536",
        "localhost:80:80",
        "user@localhost",
        "localhost/",
        "localhost ",
        "local\u017fhost",
        "127.0.0.1%.evil.example",
        "[::1%.evil.example]",
        "[127.0.0.1]",
        "::1",
        "[::1",
        "[]",
        ":80",
        "",
    ],
)
def test_a_malformed_host_is_none(authority: str) -> None:
    assert host_of(authority) == ""


@given(HOSTS, PORTS)
def test_a_host_is_read_without_its_port(host: str, port: str) -> None:
    found = host_of(host + port)
    assert found == urlsplit(f"//{host}{port}").hostname or ipaddress.ip_address(found) == ipaddress.ip_address(
        host.strip("[]")
    )
    assert host_of((host + port).upper()) == found


@given(LOOPBACKS, TAILS)
def test_nothing_can_be_appended_to_a_loopback_address(authority: str, tail: str) -> None:
    """What is accepted ends with a port, or is another address of the loopback, as a browser would read it."""
    host = host_of(authority + tail)
    if is_loopback(host):
        assert urlsplit(f"//{authority}{tail}").hostname == host
        assert (authority + tail).startswith((f"{host}", f"[{host}]"))
        rest = (authority + tail).removeprefix(f"[{host}]").removeprefix(host)
        assert rest in ("", ":") or (rest[0] == ":" and rest[1:].isdecimal() and rest.isascii())


@given(st.text(max_size=40))
def test_any_text_is_a_host_or_none(text: str) -> None:
    host = host_of(text)
    assert host == "" or (host.isascii() and not set(host) & set("[]@/%#?\\ "))


def test_names_of_the_settings_are_compared_like_headers() -> None:
    access = WebAccess(hosts=("Box.lan", "FD00:0::5", "[fd00::6]"))
    for authority in ("box.LAN:80", "[fd00::5]:4780", "[FD00:0:0::6]", "localhost"):
        assert access.host_error(authority, everywhere=True) == ""
    assert "http_hosts" in access.host_error("other.lan", everywhere=True)


@pytest.mark.parametrize(
    ("origin", "authority"),
    [
        ("http://localhost:4780", "localhost:4780"),
        ("https://jobs.example", "jobs.example"),
        ("https://jobs.example", "jobs.example:443"),
        ("http://jobs.example:80", "jobs.example"),
        ("HTTPS://App.example", "127.0.0.1"),
    ],
)
def test_own_and_allowed_origins(origin: str, authority: str) -> None:
    assert WebAccess(origins=("https://app.example",)).origin_error(origin, authority) == ""


@pytest.mark.parametrize(
    ("origin", "authority"),
    [
        ("http://evil.example", "localhost"),
        ("http://localhost:8000", "localhost:4780"),
        ("http://localhost", "localhost:4780"),
        ("null", "localhost"),
        ("", ""),
        ("http://", ""),
        ("http://app.example", "localhost"),
        ("https://app.example.evil.example", "localhost"),
        ("http://localhost/", "localhost"),
    ],
)
def test_foreign_origins(origin: str, authority: str) -> None:
    assert "another site" in WebAccess(origins=("https://app.example",)).origin_error(origin, authority)


def refusal(access: WebAccess, authority: str, origin: str | None, everywhere: bool = False) -> str:
    """The code with which a WebSocket is refused; empty if it is not."""
    try:
        access.admit(everywhere, authority, origin)
    except WireError as error:
        return error.code
    return ""


def test_websockets_of_programs_need_only_a_name_of_this_server() -> None:
    access = WebAccess()
    assert refusal(access, "127.0.0.1:12704", None) == ""
    assert refusal(access, "evil.example", None) == "MISDIRECTED"
    assert refusal(access, "lap.lan", None, everywhere=True) == ""


def test_websockets_of_pages_need_an_origin_too() -> None:
    access = WebAccess(origins=("https://app.example",))
    assert refusal(access, "127.0.0.1:12704", "https://app.example") == ""
    assert refusal(access, "127.0.0.1:12704", "http://127.0.0.1:12704") == ""
    assert refusal(access, "127.0.0.1:12704", "https://evil.example") == "FORBIDDEN"
    assert refusal(access, "127.0.0.1:12704", "null") == "FORBIDDEN"


def test_a_rebound_name_is_refused_although_other_machines_may_connect() -> None:
    access = WebAccess(origins=("https://app.example",))
    assert refusal(access, "evil.example:12704", "http://evil.example:12704", everywhere=True) == "MISDIRECTED"
    assert refusal(access, "lap.lan:12704", "https://app.example", everywhere=True) == ""


def test_what_an_origin_is() -> None:
    assert all(
        map(is_origin, ("https://app.example", "http://127.0.0.1:8000", "http://[::1]:80", "moz-extension://ab"))
    )
    assert not any(map(is_origin, ("app.example", "*", "null", "https://", "https://app.example/path")))
