"""`geartrain tail` over every protocol: events as they happen, or a clear error at once."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.acceptance.cli.conftest import SCHEMES, Geartrain, run
from tests.support import process, serving
from tests.support.gearman_peer import worker

SUPPORTED = ("gearman", "periodic", "http")
CODE_NO_SERVER = 5

Tail = Callable[..., process.Process]


@pytest.fixture
def tail(tmp_path: Path) -> Iterator[Tail]:
    """Starts `geartrain tail`; what is started ends with the test."""
    started: list[process.Process] = []

    def tail(url: str, *words: str, program: Sequence[str] = ()) -> process.Process:
        folder = tmp_path / f"tail{len(started)}"
        folder.mkdir()
        command = [*program, str(serving.installed_command()), "tail", "--server", url, *words]
        started.append(process.Process(command, folder))
        return started[-1]

    yield tail
    for tailing in started:
        tailing.kill()
        assert "Traceback" not in tailing.stderr


def submit_until_seen(tailing: process.Process, server: str, function: str) -> None:
    """Submit jobs until the first line: `tail` does not say when it has begun to listen."""
    for _ in range(100):
        if tailing.lines:
            return
        run(server, "submit", function)
    raise AssertionError(tailing.account())


def wait_for(tailing: process.Process, pattern: str) -> None:
    tailing.wait_until(lambda lines: any(re.fullmatch(pattern, line) for line in lines), pattern)


@pytest.mark.parametrize("scheme", SUPPORTED)
def test_events_of_a_gearman_job(server: serving.ServerProcess, tail: Tail, scheme: str) -> None:
    function = f"told-{scheme}"
    tailing = tail(server.urls[SCHEMES.index(scheme)], "--function", function)
    submit_until_seen(tailing, server.url, function)
    run(server.url, "submit", "another-function")
    with worker(server.port, function.encode()) as peer:
        handle = peer.grab().handle.decode()
        wait_for(tailing, rf"\S+  started    {handle}  {function}  gearman")
    wait_for(tailing, rf"\S+  requeued   {handle}  {function}  gearman  .+")
    assert re.fullmatch(rf"\S+  submitted  \S+  {function}  gearman", tailing.lines[0])
    assert all(function in line for line in tailing.lines)


@pytest.mark.parametrize("scheme", SUPPORTED)
def test_only_some_events_as_json(server: serving.ServerProcess, tail: Tail, scheme: str) -> None:
    function = f"chosen-{scheme}"
    tailing = tail(server.urls[SCHEMES.index(scheme)], "--what", "submitted", "--what", "cancelled", "--json")
    submit_until_seen(tailing, server.url, function)
    handle = run(server.url, "submit", function).text.strip()
    run(server.url, "cancel", handle)
    tailing.wait_until(lambda lines: any('"cancelled"' in line and handle in line for line in lines), "cancelled")


@pytest.mark.parametrize("scheme", [scheme for scheme in SCHEMES if scheme not in SUPPORTED])
def test_other_protocols_are_refused_at_once(server: serving.ServerProcess, scheme: str) -> None:
    outcome = run(server.urls[SCHEMES.index(scheme)], "tail", code=1)
    assert outcome.out == b""
    assert "use gearman://, periodic://, periodic+unix:// or http://" in outcome.err


def test_help_names_the_urls_that_work(geartrain: Geartrain) -> None:
    text = " ".join(geartrain("tail", "--help").text.split())
    assert "It works over gearman://, periodic://, periodic+unix:// and http://." in text


@pytest.mark.parametrize("scheme", SUPPORTED)
def test_an_unknown_event_is_refused(server: serving.ServerProcess, scheme: str) -> None:
    outcome = run(server.urls[SCHEMES.index(scheme)], "tail", "--what", "nonsense", code=1)
    assert "unknown event 'nonsense'" in outcome.err


@pytest.mark.parametrize("scheme", SUPPORTED)
@pytest.mark.parametrize(("end", "code"), [("stop", 0), ("kill", CODE_NO_SERVER)])
def test_the_end_of_the_server_ends_it(tail: Tail, scheme: str, end: str, code: int) -> None:
    listen = ["--listen", "gearman://127.0.0.1:0", "--listen", f"{scheme}://127.0.0.1:0"]
    with serving.serve("--store", "memory", *listen) as server:
        tailing = tail(server.urls[1])
        submit_until_seen(tailing, server.url, "seen")
        getattr(server, end)()
        assert tailing.wait() == code
        assert ("was lost" in tailing.stderr) is (code != 0)


def test_a_socket_file(tail: Tail, tmp_path: Path) -> None:
    listen = ["--listen", "gearman://127.0.0.1:0", "--listen", f"periodic+unix://{tmp_path}/socket"]
    with serving.serve("--store", "memory", *listen) as server:
        submit_until_seen(tail(server.urls[1]), server.url, "seen")


def test_an_http_server_with_tokens(tail: Tail) -> None:
    listen = ["--listen", "gearman://127.0.0.1:0", "--listen", "http://127.0.0.1:0"]
    with serving.serve("--store", "memory", *listen, "--http-tokens", "read:a-token-of-16-characters") as server:
        assert "token" in run(server.urls[1], "tail", code=1).err
        tailing = tail(server.urls[1], program=["env", "GEARTRAIN_HTTP_TOKEN=a-token-of-16-characters"])
        submit_until_seen(tailing, server.url, "seen")
