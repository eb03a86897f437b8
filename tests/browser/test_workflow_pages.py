"""Workflows in the dashboard: the list, the graph while workers run, and the buttons."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.browser.page_checks import Visit, hides, part, shows
from tests.browser.scene import api, serve
from tests.support.gearman_peer import Kind, worker
from tests.support.peer import until

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.peer("chromium", "playwright")

WIDTHS = (1280, 1024, 390)
GROUPS_SHOWN = 500
THOUSAND = "\N{MULTIPLICATION SIGN} 1,000"


class Server(NamedTuple):
    """A server whose jobs are dead when their first worker is lost."""

    url: str
    gearman: int

    def submit(self, name: str, *jobs: dict[str, Any]) -> str:
        handle: str = api(self.url, "workflows", {"name": name, "jobs": list(jobs)})["handle"]
        return handle

    def address(self, handle: str) -> str:
        return f"{self.url}/#/workflows/{part(handle)}"

    def states(self, handle: str) -> dict[str, int]:
        states: dict[str, int] = api(self.url, f"workflows/{part(handle)}")["states"]
        return states

    def finish(self, function: str, count: int = 1, end: Kind = Kind.WORK_COMPLETE) -> None:
        """Run so many jobs of a function, to this end."""
        with worker(self.gearman, function.encode()) as peer:
            for _ in range(count):
                handle = peer.grab().handle
                peer.send(end, handle, *((b"",) if end is Kind.WORK_COMPLETE else ()))
            peer.silence()

    def lose(self, function: str) -> None:
        """Let the worker of a job be lost."""
        with worker(self.gearman, function.encode()) as peer:
            peer.grab()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve("--max-attempts", "1") as (_, url, port):
        yield Server(url, port)


def job(function: str, *after: int, **more: Any) -> dict[str, Any]:
    return {"function": function, "after": list(after), **more}


def diamond(name: str) -> list[dict[str, Any]]:
    """Four jobs of functions of their own."""
    return [job(f"{name}-fetch"), job(f"{name}-parse", 0), job(f"{name}-check", 0), job(f"{name}-store", 1, 2)]


def node(page: Page, name: str) -> Locator:
    return page.locator(".graph-node").filter(has_text=name)


def becomes(page: Page, name: str, state: str) -> None:
    """Wait until the node of a job shows the state, in words and by its colour."""
    page.locator(f".graph-node[data-tone={state}]").filter(has_text=name).filter(has_text=state).wait_for()


def boxes(page: Page) -> list[dict[str, float]]:
    """Where the nodes are, in the order of the document."""
    found: list[dict[str, float]] = page.locator(".graph-node").evaluate_all(
        "nodes => nodes.map((node) => node.getBoundingClientRect().toJSON())"
    )
    return found


def test_a_diamond_is_a_graph_that_changes_while_workers_run(server: Server, visit: Visit) -> None:
    handle = server.submit("import", *diamond("live"))
    page = visit(server.address(handle))
    shows(page, "h1", "import")
    shows(page, ".head .badge", "running")
    assert page.title().startswith("import")
    becomes(page, "live-fetch", "queued")
    becomes(page, "live-store", "blocked")
    fetch, parse, check, store = boxes(page)
    assert fetch["right"] < parse["left"] == check["left"] < check["right"] < store["left"]
    assert parse["bottom"] < check["top"]
    assert page.locator(".graph svg path").count() == 3  # from each that another one waits for
    assert not page.locator(".graph path[data-tone]").count()
    with worker(server.gearman, b"live-fetch") as peer:
        running = peer.grab()
        becomes(page, "live-fetch", "running")
        peer.send(Kind.WORK_COMPLETE, running.handle, b"")
        becomes(page, "live-fetch", "done")
        becomes(page, "live-parse", "queued")
        page.locator(".graph path[data-tone=done]").wait_for(state="attached")
    shows(page, ".workflow-percent", "25%")
    shows(page, ".workflow-progress", "1 of 4 jobs has ended")
    server.finish("live-parse")
    server.finish("live-check")
    server.finish("live-store")
    shows(page, ".head .badge", "done")
    shows(page, ".workflow-percent", "100%")
    shows(page, ".workflow-progress", "took")
    assert page.locator(".graph-node[data-tone=done]").count() == 4
    assert not page.get_by_role("button", name="Cancel").count()


def test_nodes_are_reached_by_keyboard_and_have_names(server: Server, visit: Visit) -> None:
    handle = server.submit("keys", *diamond("keys"))
    page = visit(server.address(handle))
    page.get_by_role("link", name="keys-fetch: queued", exact=True).focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.ariaLabel") == "keys-parse: blocked, after keys-fetch"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.ariaLabel") == "keys-store: blocked, after keys-parse, keys-check"
    page.keyboard.press("Enter")
    shows(page, ".facts dd", "keys-store")
    page.go_back()
    shows(page, "h1", "keys")


def test_a_failed_workflow_is_retried(server: Server, visit: Visit) -> None:
    handle = server.submit("billing", *diamond("bill"))
    server.finish("bill-fetch")
    server.finish("bill-parse", end=Kind.WORK_FAIL)
    page = visit(server.address(handle))
    shows(page, ".workflow-note", "the workflow fails when all have ended")
    becomes(page, "bill-store", "cancelled")
    server.finish("bill-check")
    shows(page, ".head .badge", "failed")
    becomes(page, "bill-parse", "failed")
    shows(page, ".workflow-note", "ended as failed")
    page.get_by_role("button", name="Retry").click()
    shows(page, "#notices", f"{handle} is queued again.")
    becomes(page, "bill-parse", "queued")
    becomes(page, "bill-store", "blocked")
    becomes(page, "bill-fetch", "done")
    server.finish("bill-parse")
    server.finish("bill-store")
    shows(page, ".head .badge", "done")
    hides(page, ".workflow-note", "failed")


def test_a_workflow_is_cancelled_after_a_question(server: Server, visit: Visit) -> None:
    handle = server.submit("reindex", *diamond("index"))
    page = visit(server.address(handle))
    page.get_by_role("button", name="Cancel").click()
    shows(page, "dialog", "Cancel the workflow reindex?")
    page.keyboard.press("Escape")
    hides(page, "dialog", "reindex")
    assert "cancelled" not in server.states(handle)
    page.get_by_role("button", name="Cancel").click()
    shows(page, "dialog", "cannot be retried").get_by_role("button", name="Cancel").last.click()
    shows(page, ".head .badge", "cancelled")
    becomes(page, "index-store", "cancelled")
    assert server.states(handle) == {"cancelled": 4}


def test_dead_jobs_are_retried_from_their_node_and_their_row(server: Server, visit: Visit) -> None:
    handle = server.submit("thumbnails", job("thumb"), job("mark"), job("join", 0, 1))
    server.lose("thumb")
    server.lose("mark")
    until(lambda: server.states(handle).get("dead") == 2, "both are dead")
    page = visit(server.address(handle))
    shows(page, ".workflow-note", "2 jobs gave up")
    node(page, "thumb").get_by_role("button", name="Retry").click()
    becomes(page, "thumb", "queued")
    assert not node(page, "thumb").get_by_role("button").count()
    page.get_by_role("button", name="1 dead").click()
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    shows(page, "tbody tr", "mark").get_by_role("button", name="Retry").click()
    becomes(page, "mark", "queued")
    hides(page, ".workflow-note", "gave up")
    assert server.states(handle) == {"queued": 2, "blocked": 1}


def test_many_jobs_that_are_alike_are_one_node(server: Server, visit: Visit) -> None:
    places = range(1, 1001)
    many = [job("load", 0) for _ in places]
    handle = server.submit("many", job("list"), *many, job("sum", *places), job("tidy", 1001, on_failure="run"))
    server.finish("list")
    server.finish("load", 3)
    page = visit(server.address(handle))
    group = node(page, "load")
    shows(page, ".graph-node", THOUSAND)
    assert page.locator(".graph-node").count() == 4
    group.locator(".state-bar i[data-tone=done]").wait_for()
    group.get_by_role("button", name=f"load {THOUSAND}: 3 done, 997 queued, after list", exact=True).wait_for()
    assert page.locator(".graph path.anyway").count() == 1
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 100")
    assert page.locator("tbody tr").first.inner_text().split()[2] == "list"
    group.get_by_role("button").click()
    shows(page, ".workflow-jobs button", f"load {THOUSAND}")
    shows(page, ".pager", "100 of 1,000 jobs")
    assert page.locator("tbody tr").filter(has_text="list").count() == 0
    page.get_by_role("button", name="4 done", exact=True).click()
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 3")
    page.reload()  # the choice is part of the address
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 3")
    page.locator(".workflow-jobs button", has_text=f"load {THOUSAND}").click()
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 4")
    page.get_by_role("button", name="4 done", exact=True).click()
    page.get_by_role("button", name="Next").click()
    shows(page, "tbody tr:first-child", "100")
    server.finish("load", 997)
    becomes(page, "load", "done")
    becomes(page, "sum", "queued")


def test_more_groups_than_can_be_drawn_are_said(server: Server, visit: Visit) -> None:
    names = [f"step-{number % 2}" for number in range(GROUPS_SHOWN + 20)]
    handle = server.submit("long", *(job(name, *([number - 1] if number else [])) for number, name in enumerate(names)))
    page = visit(server.address(handle))
    shows(page, ".graph", "The first 500 groups are shown, with 500 of 520 jobs.")
    assert page.locator(".graph-node").count() == GROUPS_SHOWN
    api(server.url, f"jobs/{part(handle)}/cancel", {}, "POST")


LEVELS = [
    *(job(f"begin-{number}") for number in range(3)),
    *(job(f"a-middle-with-a-rather-long-name-{number}", number % 3, (number + 1) % 3) for number in range(4)),
    *(job(f"late-{number}", 3 + number, 6 - number, 0) for number in range(3)),
    job("end", 7, 8, 9, 1),
    job("report", 10, 0, on_failure="run"),
]


@pytest.mark.parametrize("width", WIDTHS)
def test_graphs_fit_every_window(server: Server, visit: Visit, width: int) -> None:
    broken = server.submit("a workflow that has failed", job(f"broken-{width}"))  # its row has the most buttons
    server.finish(f"broken-{width}", end=Kind.WORK_FAIL)
    until(lambda: server.states(broken) == {"failed": 1}, "it has failed")
    handle = server.submit("levels", *LEVELS)
    page = visit(server.address(handle), viewport={"width": width, "height": 844})
    becomes(page, "report", "blocked")
    shows(page, "tbody tr", "report")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    places = boxes(page)
    assert len(places) == len(LEVELS)
    for index, one in enumerate(places):  # no two of them overlap
        for other in places[index + 1 :]:
            beside = one["right"] < other["left"] or other["right"] < one["left"]
            assert beside or one["bottom"] < other["top"] or other["bottom"] < one["top"]
    begin, end = ("top", "bottom") if width == 390 else ("left", "right")
    layers = [places[:3], places[3:7], places[7:10], places[10:11], places[11:]]
    for before, behind in itertools.pairwise(layers):
        assert max(box[end] for box in before) < min(box[begin] for box in behind)
    api(server.url, f"jobs/{part(handle)}/cancel", {}, "POST")
    page.goto(f"{server.url}/#/workflows")
    shows(page, "tbody tr", "levels")
    too_wide = "[...document.querySelectorAll('html, .table-wrap')].some((box) => box.scrollWidth > box.clientWidth)"
    assert not page.evaluate(too_wide)


def test_the_list_has_workflows_with_their_progress(server: Server, visit: Visit) -> None:
    handle = server.submit("<b>listed</b>", *diamond("list"))
    nameless = server.submit("", job("list-nothing"))
    server.finish("list-fetch")
    page = visit(f"{server.url}/#/workflows")
    row = shows(page, "tbody tr", handle)
    shows(page, "tbody tr", "<b>listed</b>")
    assert [text for text in row.inner_text().split() if text != handle][:4] == ["<b>listed</b>", "running", "4", "25%"]
    shows(page, "tbody tr", nameless)
    page.get_by_role("button", name="Done", exact=True).click()
    hides(page, "tbody tr", handle)
    assert page.url.endswith("#/workflows?state=done")
    for function in ("list-parse", "list-check", "list-store"):
        server.finish(function)
    shows(page, "tbody tr", handle).get_by_role("link").first.click()
    shows(page, "h1", "<b>listed</b>")
    page.get_by_role("link", name=handle).click()
    shows(page, ".facts dd", "geartrain.workflow")
    assert not page.get_by_role("button", name="Submit again").is_visible()
    page.get_by_role("link", name="Show the workflow").click()
    shows(page, "h1", "<b>listed</b>")


def test_a_server_without_workflows_shows_what_to_do(visit: Visit) -> None:
    with serve("--store", "memory") as (_, url, _):
        page = visit(f"{url}/#/workflows")
        shows(page, ".empty h2", "No workflows yet")
        shows(page, ".command", f"geartrain workflow submit -s {url} -")
        page.goto("about:blank")
