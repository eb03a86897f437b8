"""Every page of the dashboard, on a busy server."""

import base64
import json
from typing import Any

import pytest

from geartrain.app.codecs import CborCodec, Codec, JsonCodec, MsgpackCodec
from geartrain.app.envelope import Envelope
from tests.browser.page_checks import PageErrors, Visit, part, shows
from tests.browser.scene import HOSTILE, Scene, api, serve
from tests.support.gearman_peer import Kind, Peer, worker
from tests.support.peer import until

pytestmark = pytest.mark.peer("chromium", "playwright")

# A page's address, its heading, and a text that only a page that has loaded its data shows.
PAGES = (
    ("overview", "Overview", "invoice-pdf"),
    ("functions", "Functions", "invoice-pdf"),
    ("functions/invoice-pdf", "invoice-pdf", "march"),
    ("jobs?state=queued", "Jobs", "invoice-pdf"),
    ("workflows", "Workflows", "No workflows yet"),
    ("failures", "Failed and dead jobs", "import-csv"),
    ("dead?function=import-csv", "Failed and dead jobs", "import-csv"),
    ("workers", "Workers", "transcoder-1"),
    ("schedules", "Schedules", "No schedules yet"),
    ("audit", "Audit log", "start"),
    ("system", "System", "gearman://127.0.0.1"),
)


def test_deep_links_open_their_pages(busy: Scene, visit: Visit) -> None:
    page = visit("about:blank")
    for place, heading, text in PAGES:
        page.goto("about:blank")  # so that the next address is not only a step within the page
        page.goto(f"{busy.url}/#/{place}")
        shows(page, "h1", heading)
        shows(page, "main *", text)
        assert heading in page.title()
        assert page.locator("nav a[aria-current=page]").count() == 1


def test_the_navigation_leads_to_every_page(busy: Scene, visit: Visit) -> None:
    page = visit(busy.url)
    shows(page, "nav a", "System")  # the last one
    names = page.locator("nav li:not(.cluster-only) a").evaluate_all(
        "links => links.map((link) => link.firstChild.textContent)"
    )
    assert names == [
        *("Overview", "Functions", "Jobs", "Workflows", "Failed and dead"),
        *("Workers", "Schedules", "Audit log", "System"),
    ]
    for name in names:
        page.locator("nav a").filter(has_text=name).first.click()
        shows(page, "h1", name)


def test_the_navigation_counts_failed_and_dead_jobs_together(visit: Visit) -> None:
    with serve("--max-attempts", "1") as (_, url, port), Peer(port) as client:
        for function in (b"lost", b"faulty", b"faulty"):
            client.submit(function, b"", b"", kind=Kind.SUBMIT_JOB_BG)
        with worker(port, b"lost") as leaving:
            leaving.grab()
        until(lambda: api(url, "overview")["dead"] == 1, "one job is dead")
        page = visit(url)
        shows(page, "nav a", "Failed and dead 1")
        with worker(port, b"faulty") as peer:
            for _ in range(2):
                peer.send(Kind.WORK_FAIL, peer.grab().handle)
            peer.take()
        shows(page, "nav a", "Failed and dead 3")
        api(url, "jobs/bulk", {"action": "delete", "filter": {"state": "failed"}})
        page.reload()
        shows(page, "nav a", "Failed and dead 1")


def test_charts_move(busy: Scene, visit: Visit) -> None:
    page = visit(busy.url)
    line = page.locator("figure.chart").first.locator("path.line").first
    page.wait_for_function("line => (line.getAttribute('d') ?? '').length > 40", arg=line.element_handle())
    before = line.get_attribute("d")
    page.wait_for_function("([line, before]) => line.getAttribute('d') !== before", arg=[line.element_handle(), before])
    summary = page.locator(".plot").first.get_attribute("aria-label")
    assert summary is not None
    assert summary.startswith("Jobs per second")
    assert "highest" in summary


def test_a_function_has_charts_when_its_page_opens(busy: Scene, visit: Visit) -> None:
    drawn = "() => document.querySelectorAll('.function-charts path.line[d*=L]').length >= 6"
    # The server takes a sample every 15 seconds: another page waits until there are two.
    visit(f"{busy.url}/#/functions/thumbnail").wait_for_function(drawn, timeout=60_000)
    page = visit("about:blank")
    answers: list[str] = []
    page.on("response", lambda response: answers.append(response.url))
    page.goto(f"{busy.url}/#/functions/thumbnail")
    page.wait_for_function(drawn)
    assert len([url for url in answers if "/history" in url]) == 1
    figures = page.locator(".percentiles .figure")
    assert figures.count() == 6
    assert "ms" in figures.nth(3).inner_text()


def test_a_chart_shows_single_values(busy: Scene, visit: Visit) -> None:
    page = visit(busy.url)
    plot = page.locator(".plot").first
    page.wait_for_function("plot => plot.getAttribute('aria-label')?.includes('highest')", arg=plot.element_handle())
    plot.hover(position={"x": 300, "y": 60})
    shows(page, ".tip:not([hidden])", "completed")
    plot.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    shows(page, "figure.chart [aria-live]", "failed")
    page.locator("figure.chart summary").first.click()
    page.locator("figure.chart details[open] tbody tr").nth(3).wait_for()


def test_a_job_shows_the_log_that_its_worker_has_kept(visit: Visit) -> None:
    with serve() as (_, url, port), Peer(port) as client, worker(port, b"resize") as peer:
        handle = client.submit(b"resize", b"", b"", kind=Kind.SUBMIT_JOB_BG).decode()
        job = peer.grab()
        page = visit(f"{url}/#/jobs/{part(handle)}")
        shows(page, ".badge", "running")
        assert page.locator("section[aria-label=Log]").count() == 0
        lines = "attempt 1\n2030-01-01T12:00:00.000Z INFO shop: <b>bold</b>\n"
        order = {"do": "add_log", "handle": handle, "lines": lines}
        client.submit(b"geartrain.control", b"", json.dumps(order).encode())
        client.body(Kind.WORK_COMPLETE)
        peer.send(Kind.WORK_COMPLETE, job.handle, b"")
        shows(page, "section[aria-label=Log] pre", "INFO shop: <b>bold</b>")


def test_a_job_shows_where_it_came_from_and_what_happened(busy: Scene, visit: Visit) -> None:
    page = visit(f"{busy.url}/#/jobs/{part(busy.running)}")
    shows(page, ".route", "gearman")
    shows(page, ".badge", "running")
    shows(page, ".timeline li.current", "Attempt 1 by transcoder-1 (gearman)")
    assert page.locator("progress").get_attribute("value") == "3"
    shows(page, "pre", '"file": "holiday.mov"')
    page.get_by_role("button", name="Hex").click()
    shows(page, "pre", "7b 22 66 69 6c 65 22")
    page.get_by_role("button", name="Text", exact=True).click()
    shows(page, "pre", '{"file": "holiday.mov"}')


def test_a_task_shows_its_arguments(busy: Scene, visit: Visit) -> None:
    call = {
        "v": 1,
        "args": [4711, "Ada"],
        "kwargs": {"urgent": True, "lines": [{"cents": 1900}]},
        "id": "5f2c9a1e7b3d-1",
    }
    handle = api(busy.url, "jobs", {"function": "shop.charge", "payload": json.dumps(call)})["handle"]
    page = visit(f"{busy.url}/#/jobs/{part(handle)}")
    pre = shows(page, "pre", "4711")
    assert pre.inner_text() == '4711,\n"Ada",\nurgent = true,\nlines = [\n  {\n    "cents": 1900\n  }\n]'
    page.get_by_role("button", name="JSON").click()
    shows(page, "pre", "5f2c9a1e7b3d-1")
    page.get_by_role("button", name="Submit again").click()
    assert json.loads(page.get_by_role("textbox", name="Payload").input_value()) == call
    page.goto(f"{busy.url}/#/jobs?function=shop.charge")
    shows(page, "td", '4711, "Ada", urgent = true, lines = [{"cents":1900}]')


ARGUMENTS: list[Any] = [
    *(0, 1, -1, 127, 128, -32, -33, 255, 256, -129, 65536, -70000, 2**31, -(2**31), 2**40, -(2**40), 2**64 - 1),
    *(True, None, 1.5, -0.25, 1e300, "", "Ada", "ü" * 40, "x" * 300, [1, [2]], list(range(20)), {"a": {"b": []}}),
    {str(number): number for number in range(20)},
]


@pytest.mark.parametrize("codec", [JsonCodec(), MsgpackCodec(), CborCodec()], ids=lambda codec: codec.name)
def test_arguments_are_shown_in_every_format_of_tasks(busy: Scene, visit: Visit, codec: Codec) -> None:
    payload = codec.encode(Envelope(1, ARGUMENTS, {"urgent": True, "at": 7}, "5f2c9a1e7b3d-1"))
    encoded = {"base64": base64.b64encode(payload).decode()}
    handle = api(busy.url, "jobs", {"function": "shop.all", "payload": encoded})["handle"]
    page = visit(f"{busy.url}/#/jobs/{part(handle)}")
    text = shows(page, "pre", "urgent = true").inner_text()
    values, _, named = text.rpartition(",\nurgent")
    # A number that the browser's own numbers cannot represent is a text in the binary formats.
    numbers = [value for value in ARGUMENTS if value != 2**64 - 1]
    assert [value for value in json.loads(f"[{values}]") if str(value) != str(2**64 - 1)] == numbers
    assert str(2**64 - 1) in values
    assert named == " = true,\nat = 7"
    page.goto(f"{busy.url}/#/jobs?function=shop.all")
    shows(page, "tbody tr", handle)


def test_bytes_that_begin_like_a_task_are_hex(busy: Scene, visit: Visit) -> None:
    for payload in (
        b"\x83\xa1v\x01\xa4args\xdd\xff\xff\xff\xff",
        b"\xa2av\x01dargs\x9f\x01",
        b"\xd8" * 2000,
        b"\x82\xff",
    ):
        encoded = {"base64": base64.b64encode(payload).decode()}
        handle = api(busy.url, "jobs", {"function": "shop.odd", "payload": encoded})["handle"]
        page = visit(f"{busy.url}/#/jobs/{part(handle)}")
        shows(page, "pre.hex", payload[:2].hex(" "))
        assert page.get_by_role("button", name="Arguments").count() == 0


def test_a_payload_that_only_resembles_a_task_is_shown_whole(busy: Scene, visit: Visit) -> None:
    payload = '{"v": 1, "args": [1], "other": 2}'
    handle = api(busy.url, "jobs", {"function": "shop.charge", "payload": payload})["handle"]
    page = visit(f"{busy.url}/#/jobs/{part(handle)}")
    shows(page, "pre", '"other": 2')
    assert page.get_by_role("button", name="Arguments").count() == 0


TRACEBACK = """Traceback (most recent call last):
  File "/srv/tasks.py", line 41, in charge
    gateway.charge(order)
ConnectionError: cannot reach 10.0.0.7:443"""


def test_a_failed_job_shows_its_traceback(busy: Scene, visit: Visit) -> None:
    with worker(busy.gearman, b"shop.ship") as peer, Peer(busy.gearman) as client:
        handle = client.submit(b"shop.ship", b"", b"1", kind=Kind.SUBMIT_JOB_BG)
        peer.send(Kind.SET_CLIENT_ID, b"shipper-1")
        peer.send(Kind.WORK_EXCEPTION, peer.grab().handle, TRACEBACK.encode())
        peer.silence()
    page = visit(f"{busy.url}/#/jobs/{part(handle.decode())}")
    card = shows(page, "section", "Traceback").locator("pre.traceback")
    assert card.inner_text().strip() == TRACEBACK
    assert card.locator(".trace-error").inner_text().strip() == "ConnectionError: cannot reach 10.0.0.7:443"
    shows(page, ".facts dd", "ConnectionError: cannot reach 10.0.0.7:443")
    shows(page, ".timeline li", "Attempt 1 by shipper-1 (gearman)")
    kept = page.locator("dt", has_text="Kept until").locator("+ dd")
    assert "(in 6d 23h)" in kept.inner_text()  # keep_failed_for is seven days


def test_markup_in_a_payload_is_text(busy: Scene, visit: Visit) -> None:
    page = visit(f"{busy.url}/#/jobs/{part(busy.hostile)}")
    shows(page, "pre", HOSTILE.decode())
    assert page.locator("main script, main pre *").count() == 0
    page.goto(f"{busy.url}/#/jobs?function=webhook")
    shows(page, "td", "<script>")
    assert page.locator("main script").count() == 0
    assert "taken over" not in page.title()


def test_functions_are_searched_and_sorted_by_the_server(busy: Scene, visit: Visit) -> None:
    page = visit(f"{busy.url}/#/functions")
    page.get_by_role("button", name="Oldest").click()
    shows(page, "th[aria-sort=descending]", "Oldest")
    shows(page, "tbody tr:first-child", "invoice-pdf")
    page.get_by_role("searchbox").fill("video")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    shows(page, "tbody tr", "video-transcode")
    assert "search=video" in page.url
    assert "sort=oldest" in page.url


def test_an_unknown_job_shows_an_error(busy: Scene, visit: Visit, errors: PageErrors) -> None:
    errors.expected = ("404",)
    page = visit(f"{busy.url}/#/jobs/H%3Anowhere%3A1")
    shows(page, ".problem", "H:nowhere:1")
