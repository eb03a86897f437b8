"""The dashboard of a server in a cluster: the page of servers, where jobs and workers are, and who does not answer."""

import signal
from collections.abc import Iterator

import pytest

from tests.acceptance.cluster.conftest import Pair, members
from tests.browser.page_checks import PageErrors, Visit, hides, shows
from tests.browser.scene import api
from tests.support import postgres_programs
from tests.support.gearman_peer import Kind, Peer, worker
from tests.support.postgres_fixtures import cluster as cluster
from tests.support.postgres_fixtures import clusters as clusters
from tests.support.postgres_fixtures import schema as schema
from tests.support.postgres_fixtures import schema_url as schema_url
from tests.support.waiting import wait_for

pytestmark = pytest.mark.peer("chromium", "playwright", postgres_programs.PEERS[postgres_programs.NEWEST])

PHONE = {"width": 390, "height": 844}
UNKNOWN = "\u2013"
ROWS = "table[aria-label=Servers] tbody tr"


@pytest.fixture
def servers(schema_url: str) -> Iterator[Pair]:
    """Two servers; a job of the first is run by a worker of the second."""
    with members(schema_url) as pair, Peer(pair[0].port) as client, worker(pair[1].port, b"mail") as taker:
        taker.send(Kind.SET_CLIENT_ID, b"bob").send(Kind.PRE_SLEEP)
        client.submit(b"mail", b"", b"run there", kind=Kind.SUBMIT_JOB_BG)
        taker.expect(Kind.NOOP)
        taker.grab()
        client.submit(b"bill", b"", b"waits here", kind=Kind.SUBMIT_JOB_BG)
        yield pair


@pytest.mark.parametrize("viewport", [None, PHONE], ids=["wide", "phone"])
def test_servers_jobs_and_workers(visit: Visit, servers: Pair, errors: PageErrors, viewport: dict[str, int]) -> None:
    errors.expected = ("Failed to load resource", "ERR_")  # the servers stop before the page
    url = servers[1].urls[1].rstrip("/")
    wait_for(lambda: all(node["jobs"] is not None for node in api(url, "cluster")), "they have a link")
    page = visit(f"{url}/#/servers", **({"viewport": viewport} if viewport else {}))
    shows(page, "nav a", "Servers")
    one = shows(page, ROWS, "one")
    two = shows(page, ROWS, "this one")
    assert "leader" in one.inner_text()
    numbers = [row.locator("td.number").all_inner_texts()[:4] for row in (one, two)]
    assert numbers == [["2", "1", "0", "0"], ["0", "0", "1", "1"]]  # jobs, lent, borrowed, workers
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow == 0
    page.goto(f"{url}/#/workers")
    assert "two" in shows(page, "table[aria-label=Workers] tbody tr", "bob").inner_text()
    page.goto(f"{url}/#/jobs")
    job = shows(page, "table tbody tr", "bill")
    assert "one" in job.locator("td.cluster-only").inner_text()
    job.get_by_role("button", name="Cancel").click()
    shows(page, "table tbody tr", "cancelled")


def test_a_server_that_does_not_answer(visit: Visit, servers: Pair, errors: PageErrors) -> None:
    errors.expected = ("Failed to load resource", "ERR_")
    one, two = servers
    page = visit(f"{one.urls[1].rstrip('/')}/#/servers")
    shows(page, ROWS, "two")
    two.signal(signal.SIGSTOP)
    try:
        shows(page, "#unanswered", "No answer from two")
        page.reload()  # after a slow answer, a page waits longer before it asks again
        assert shows(page, ROWS, "two").locator("td.number").first.inner_text() == UNKNOWN
    finally:
        two.signal(signal.SIGCONT)
    hides(page, "#unanswered", "No answer")
