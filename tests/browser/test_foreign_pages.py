"""A page of another site posts to every door: nothing of it is carried out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.page_checks import PageErrors, Visit
from tests.browser.site import site
from tests.support import serving
from tests.support.gearman_peer import Kind, Peer, request
from tests.support.peer import until

pytestmark = pytest.mark.peer("chromium", "playwright")

DOORS = ("gearman", "danga", "periodic", "memodb+tcp", "gearmonkey")
# Posts a body, as text or as bytes, and resolves when the browser has an answer or has given up.
POST = """
([url, body]) => fetch(url, {
  method: "POST", mode: "no-cors", body: typeof body === "string" ? body : new Blob([new Uint8Array(body)]),
}).then(() => "answered", () => "failed")
"""
SET_BY_RESP = b"*3\r\n$5\r\nLPUSH\r\n$13\r\nqueue:evil:id\r\n$1\r\n1\r\n"
BODIES = [
    pytest.param("shutdown\n", id="shutdown"),
    pytest.param("\nmaxqueue evil 1\ncreate function evil\n", id="create function"),
    pytest.param(list(request(Kind.SUBMIT_JOB_BG, b"evil", b"", b"data")), id="SUBMIT_JOB_BG"),
    pytest.param(list(request(Kind.CAN_DO, b"evil") + request(Kind.GRAB_JOB)), id="CAN_DO"),
    pytest.param("\r\nSET evil evil\r\nSHUTDOWN\r\n", id="inline commands of Redis"),
    pytest.param(list(SET_BY_RESP), id="a command of Redis"),
]


@pytest.fixture(scope="module")
def foreign() -> Iterator[str]:
    with site() as origin:
        yield origin


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    listen = [word for door in DOORS for word in ("--listen", f"{door}://127.0.0.1:0")]
    with serving.serve("--store", "memory", *listen) as running:
        yield running


@pytest.mark.parametrize("body", BODIES)
def test_nothing_that_a_page_posts_is_carried_out(
    server: serving.ServerProcess, visit: Visit, errors: PageErrors, foreign: str, body: str | list[int]
) -> None:
    errors.expected = ("Failed to load resource",)
    page = visit(foreign)
    for url in server.urls:
        page.evaluate(POST, [f"http://{url.rpartition('/')[2]}/", body])
    with Peer(server.port) as admin:
        admin.text("status")
        assert admin.block() == []
        admin.text("show jobs")
        assert admin.block() == []


def test_the_page_reaches_the_doors(
    server: serving.ServerProcess, visit: Visit, errors: PageErrors, foreign: str
) -> None:
    """Without this, the test above would pass with a browser that refuses to connect."""
    errors.expected = ("Failed to load resource",)
    visit(foreign).evaluate(POST, [f"http://127.0.0.1:{server.port}/", "status"])
    until(lambda: "does not speak HTTP" in server.stderr, "the Gearman door saw an HTTP request")
