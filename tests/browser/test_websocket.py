"""A page of another site cannot open a WebSocket to MemoDB's door; a page of an allowed site can, and works."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.page_checks import PageErrors, Visit
from tests.browser.site import site
from tests.support import memodb_peer, serving
from tests.support.gearman_peer import Kind, Peer

pytestmark = pytest.mark.peer("chromium", "playwright")

# A worker of one service: it resolves to the payload of its first job, or to "refused".
WORK = """
([url, ready]) => new Promise((resolve) => {
  const socket = new WebSocket(url, "rep.sp.nanomsg.org");
  socket.binaryType = "arraybuffer";
  socket.onopen = () => socket.send(new Uint8Array(ready));
  socket.onmessage = (message) => resolve(new TextDecoder("latin1").decode(message.data));
  socket.onerror = () => resolve("refused");
})
"""


@pytest.fixture(scope="module")
def allowed() -> Iterator[str]:
    with site() as origin:
        yield origin


@pytest.fixture(scope="module")
def foreign() -> Iterator[str]:
    with site() as origin:
        yield origin


@pytest.fixture(scope="module")
def server(allowed: str) -> Iterator[serving.ServerProcess]:
    doors = ["--listen", "memodb+ws://127.0.0.1:0/memo", "--listen", "gearman://127.0.0.1:0"]
    with serving.serve("--store", "memory", *doors, "--memodb-origins", allowed) as running:
        yield running


def ready(service: str) -> list[int]:
    return list(b"\x80\0\0\1" + memodb_peer.header(memodb_peer.READY, b"", [service]))


def submit(server: serving.ServerProcess, function: bytes, payload: bytes) -> None:
    with Peer(int(server.urls[1].rpartition(":")[2])) as client:
        client.submit(function, data=payload, kind=Kind.SUBMIT_JOB_BG)


def test_a_page_of_an_allowed_site_works(server: serving.ServerProcess, visit: Visit, allowed: str) -> None:
    submit(server, b"mail", b"a letter")
    page = visit(allowed)
    assert page.evaluate(WORK, [server.urls[0].removeprefix("memodb+"), ready("mail")]).endswith("a letter")


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_page_of_another_site_gets_nothing(
    server: serving.ServerProcess, visit: Visit, errors: PageErrors, foreign: str, name: str
) -> None:
    errors.expected = ("WebSocket connection to",)
    submit(server, b"secret", b"a secret")
    page = visit(foreign)
    url = server.urls[0].removeprefix("memodb+").replace("127.0.0.1", name)
    assert page.evaluate(WORK, [url, ready("secret")]) == "refused"


def test_a_page_without_an_origin_gets_nothing(
    server: serving.ServerProcess, visit: Visit, errors: PageErrors, allowed: str
) -> None:
    """A sandboxed frame has the origin `null`, also inside a page of an allowed site."""
    errors.expected = ("WebSocket connection to",)
    submit(server, b"hidden", b"a secret")
    page = visit(allowed)
    page.set_content("<iframe sandbox='allow-scripts' srcdoc='<p>A frame</p>'></iframe>")
    page.frame_locator("iframe").locator("p").wait_for()
    frame = page.frames[1]
    assert frame.evaluate(WORK, [server.urls[0].removeprefix("memodb+"), ready("hidden")]) == "refused"
