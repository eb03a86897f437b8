"""Access control: tokens and scopes, sessions of the dashboard, hosts, cross-site requests."""

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from geartrain import rights
from geartrain.doors.http import route, routes
from tests.acceptance.http.conftest import HTTP
from tests.support import serving
from tests.support.http_peer import Peer

TOKENS = {scope: f"{scope}-secret-0123456789" for scope in rights.SCOPES}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that wants tokens."""
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    file.write_text(f"submit:{TOKENS['submit']}\nwork:{TOKENS['work']}\n")
    flags = ["--http-tokens", f"read:{TOKENS['read']}", "--http-tokens", f"admin:{TOKENS['admin']}"]
    with serving.serve("--store", "memory", "--listen", HTTP, *flags, "--http-tokens-file", str(file)) as server:
        yield server.url


def filled(path: str) -> str:
    return path.replace("{name}", "x").replace("{handle}", "x").replace("{id}", "x")


# An answer without an end has a test of its own.
ENDING = [wanted for wanted in routes.ROUTES if wanted.path != f"{route.API}/events"]


@pytest.mark.parametrize("wanted", ENDING, ids=lambda wanted: wanted.operation)
def test_every_route_requires_its_scopes(locked: str, wanted: route.Route) -> None:
    body = b"{}" if wanted.body is not None else None
    for scope, token in TOKENS.items():
        status = Peer(locked, token).ask(wanted.method, filled(wanted.path), body, JSON).status
        allowed = scope == rights.ADMIN or not wanted.scopes or scope in wanted.scopes
        assert (status == 403) is not allowed, (scope, status)
    without = Peer(locked).ask(wanted.method, filled(wanted.path), body, JSON).status
    if wanted.scopes:
        assert without == 401


def test_events_require_the_scope_read(locked: str) -> None:
    assert Peer(locked).call("GET", "/events").status == 401
    assert Peer(locked, TOKENS["work"]).call("GET", "/events").status == 403
    with Peer(locked, TOKENS["read"]).stream("/events") as stream:
        assert stream.next("overview")


def test_a_wrong_token_is_refused(locked: str) -> None:
    answer = Peer(locked, "nonsense").call("GET", "/overview")
    assert (answer.status, answer.json["kind"]) == (401, "unauthorized")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_verbs_of_the_control_function_require_their_scopes(locked: str) -> None:
    for verb, error in (("ping", None), ("overview", "forbidden"), ("crons", "forbidden")):
        order = {"function": "geartrain.control", "payload": json.dumps({"do": verb}), "background": False, "wait": 15}
        answer = Peer(locked, TOKENS["submit"]).call("POST", "/jobs", order)
        assert answer.status == 200
        assert json.loads(answer.json["result"]).get("error", {}).get("kind") == error


def test_health_needs_no_token(locked: str) -> None:
    assert Peer(locked).ask("GET", "/healthz").json["status"] == "ok"
    assert Peer(locked).ask("GET", "/readyz").status == 200


def test_logging_in_and_out(locked: str) -> None:
    peer = Peer(locked)
    nothing = {"scopes": [], "rights": [], "version": "", "user": "anonymous", "logged_in": False}
    assert peer.get("/session") == {"locked": True, **nothing}
    answer = peer.call("POST", "/login", {"token": TOKENS["read"]})
    assert answer.json["scopes"] == ["read"]
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert TOKENS["read"] not in cookie
    session = {"Cookie": cookie.partition(";")[0]}
    assert peer.ask("GET", "/api/v1/overview", headers=session).status == 200
    assert peer.ask("POST", "/api/v1/functions/f/pause", headers=session).status == 403
    assert peer.ask("POST", "/api/v1/logout", headers=session).status == 204
    assert peer.ask("GET", "/api/v1/overview", headers=session).status == 401


FORWARDED = {**JSON, "X-Forwarded-Proto": "https"}


def cookies(url: str) -> tuple[str, str]:
    """The cookies that a login and a logout through a proxy set."""
    peer = Peer(url)
    login = peer.ask("POST", "/api/v1/login", b'{"token": "%b"}' % TOKENS["read"].encode(), FORWARDED)
    return login.headers["set-cookie"], peer.ask("POST", "/api/v1/logout", b"", FORWARDED).headers["set-cookie"]


def test_a_client_cannot_say_that_it_is_a_proxy(locked: str) -> None:
    assert not any("Secure" in cookie for cookie in cookies(locked))


def test_a_trusted_proxy_says_that_its_client_uses_tls() -> None:
    flags = ("--http-tokens", f"read:{TOKENS['read']}", "--http-trusted-proxies", "127.0.0.0/8")
    with serving.serve("--store", "memory", "--listen", HTTP, *flags) as server:
        assert all("Secure" in cookie for cookie in cookies(server.url))


def test_logging_in_with_a_wrong_token(locked: str) -> None:
    answer = Peer(locked).call("POST", "/login", {"token": "nonsense"})
    assert answer.status == 401
    assert "set-cookie" not in answer.headers


def test_without_tokens_every_client_has_all_scopes(peer: Peer) -> None:
    session = peer.get("/session")
    assert (session["locked"], session["scopes"]) == (False, list(rights.SCOPES))


@pytest.mark.parametrize("path", ["/", "/api/v1/overview", "/metrics", "/healthz"])
def test_a_foreign_host_is_refused(peer: Peer, path: str) -> None:
    answer = peer.ask("GET", path, headers={"Host": "evil.example"})
    assert (answer.status, answer.json["kind"]) == (421, "misdirected")


def test_a_host_can_be_added() -> None:
    with serving.serve("--store", "memory", "--listen", HTTP, "--http-hosts", "jobs.example") as server:
        peer = Peer(server.url)
        assert peer.ask("GET", "/api/v1/overview", headers={"Host": "jobs.example"}).status == 200
        assert peer.ask("GET", "/api/v1/overview", headers={"Host": "evil.example"}).status == 421


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_cross_site_changes_are_refused(peer: Peer, function: str, headers: dict[str, str]) -> None:
    body = b'{"function": "%b"}' % function.encode()
    answer = peer.ask("POST", "/api/v1/jobs", body, {**JSON, **headers})
    assert (answer.status, answer.json["kind"]) == (403, "forbidden")
    assert peer.call("GET", f"/functions/{function}").status == 404
    assert "access-control-allow-origin" not in answer.headers


def test_same_site_changes_are_accepted(peer: Peer, function: str) -> None:
    headers = {"Origin": f"http://127.0.0.1:{peer.port}", "Sec-Fetch-Site": "same-origin"}
    body = b'{"function": "%b"}' % function.encode()
    assert peer.ask("POST", "/api/v1/jobs", body, {**JSON, **headers}).status == 201


def test_a_cross_site_form_is_refused(peer: Peer, function: str) -> None:
    body = b'{"function": "%b"}' % function.encode()
    answer = peer.ask("POST", "/api/v1/jobs", body, {"Content-Type": "text/plain"})
    assert (answer.status, answer.json["kind"]) == (415, "unsupported-media-type")


def test_every_answer_has_the_security_headers(peer: Peer) -> None:
    for path in ("/", "/api/v1/overview", "/api/v1/none", "/metrics"):
        headers = peer.ask("GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "server" not in headers


def serve_in_vain(home: Path, *arguments: str) -> str:
    """What a server says that cannot start so."""
    command = [str(serving.installed_command()), "serve", "--store", "memory", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=home, timeout=60, check=False)
    assert ended.returncode != 0, ended
    assert "Traceback" not in ended.stderr
    return ended.stderr


def test_a_public_address_requires_tokens(tmp_path: Path) -> None:
    assert "no token is configured" in serve_in_vain(tmp_path, "--listen", "http://0.0.0.0:0")


@pytest.mark.parametrize(
    "flags", [("--http-tokens", f"read:{TOKENS['read']}"), ("--http-without-token",)], ids=["token", "without"]
)
def test_a_public_address_without_tokens_can_be_allowed(flags: tuple[str, ...]) -> None:
    with serving.serve("--store", "memory", "--listen", "http://0.0.0.0:0", *flags) as server:
        peer = Peer(f"http://127.0.0.1:{server.port}")
        assert peer.ask("GET", "/healthz", headers={"Host": socket.gethostname()}).status == 200
        assert peer.call("GET", "/overview").status == (200 if "without" in flags[0] else 401)


def test_a_bad_token_stops_the_start_and_is_not_quoted(tmp_path: Path) -> None:
    said = serve_in_vain(tmp_path, "--listen", HTTP, "--http-tokens", "reader:very-secret-0123456789")
    assert "http_tokens, token 1" in said
    assert "very-secret" not in said
