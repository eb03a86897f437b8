"""The screenshots of the README and the documentation, taken with UPDATE_SCREENSHOTS=1."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.page_checks import Visit, part, shows
from tests.browser.scene import Scene, api, serve
from tests.support.gearman_peer import Kind, worker
from tests.support.peer import until

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.peer("chromium", "playwright"),
    pytest.mark.skipif(
        os.environ.get("UPDATE_SCREENSHOTS") != "1", reason="screenshots are taken only with UPDATE_SCREENSHOTS=1"
    ),
]

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SIZE = {"width": 1280, "height": 880}
PHONE = {"width": 390, "height": 800}
ENOUGH = 100  # seconds of history, for charts that show something


def test_take_screenshots(busy: Scene, visit: Visit) -> None:
    IMAGES.mkdir(exist_ok=True)
    schedule = {"expression": "0 3 * * *", "function": "daily-report", "payload": "{}", "timezone": "Europe/Berlin"}
    api(busy.url, "schedules/nightly-report", schedule, "PUT")
    until(lambda: len(api(busy.url, "history?seconds=3600")) >= ENOUGH, "enough history", 2 * ENOUGH)
    places = {
        "overview": ("overview", "figure.chart", "Jobs per second"),
        "functions": ("functions?sort=queued", "tbody tr", "invoice-pdf"),
        "function": ("functions/thumbnail", "figure.chart", "Run time"),
        "failures": ("failures", "tbody tr", "no space on disk"),
        "job": (f"jobs/{part(busy.dead[0])}", "pre", "customers"),
    }
    for scheme in ("light", "dark"):
        page = visit(busy.url, viewport=SIZE, color_scheme=scheme)
        for name, (place, selector, text) in places.items():
            page.goto(f"{busy.url}/#/{place}")
            shows(page, selector, text)
            _wait_for_rates(page)
            page.screenshot(path=IMAGES / f"{name}-{scheme}.png")
    page = visit(f"{busy.url}/#/overview", viewport=PHONE, color_scheme="dark", device_scale_factor=2)
    shows(page, "figure.chart", "Jobs per second")
    _wait_for_rates(page)
    page.screenshot(path=IMAGES / "phone-dark.png")


def _nightly_report() -> list[dict[str, object]]:
    """The jobs of a workflow: a list of shops, what is fetched for each of them, and what is made of it."""
    orders, stock = range(1, 1001), range(1001, 1041)
    steps = (
        ("list-shops", [], 1), ("fetch-orders", [0], len(orders)), ("fetch-stock", [0], len(stock)),
        ("check-totals", [*orders], 1), ("merge", [1041, *stock], 1), ("render", [1042], 1), ("index", [1042], 1),
    )  # fmt: skip
    jobs: list[dict[str, object]] = [
        {"function": name, "after": after} for name, after, count in steps for _ in range(count)
    ]
    return [*jobs, {"function": "clean-up", "after": [1043, 1044], "on_failure": "run"}]


def test_take_screenshots_of_a_workflow(visit: Visit) -> None:
    IMAGES.mkdir(exist_ok=True)
    with serve() as (_, url, port):
        handle = api(url, "workflows", {"name": "nightly report", "jobs": _nightly_report()})["handle"]
        for function, count in ((b"list-shops", 1), (b"fetch-stock", 40), (b"fetch-orders", 640)):
            with worker(port, function) as peer:
                for _ in range(count):
                    peer.send(Kind.WORK_COMPLETE, peer.grab().handle, b"")
                peer.silence()
        with worker(port, b"fetch-orders") as peer:
            peer.grab()
            place = f"{url}/#/workflows/{part(handle)}"
            views = {
                "workflow-light": {"viewport": {"width": 1280, "height": 720}, "color_scheme": "light"},
                "workflow-phone-dark": {"viewport": PHONE, "color_scheme": "dark", "device_scale_factor": 2},
            }
            for name, options in views.items():
                page = visit(place, **options)
                shows(page, ".graph-node[data-tone=running]", "fetch-orders")
                shows(page, "#live-text", "live")
                page.screenshot(path=IMAGES / f"{name}.png")
                page.goto("about:blank")


def test_take_a_screenshot_of_limits(visit: Visit) -> None:
    """A tenant with many jobs beside one with few, at their limits."""
    IMAGES.mkdir(exist_ok=True)
    with serve() as (_, url, port), worker(port, b"invoices") as peer, worker(port, b"invoices") as another:
        limits = {"max_running": 10, "max_running_per_partition": 1, "rate": "100/m", "burst": 20}
        api(url, "functions/invoices/limits", limits, "PATCH")
        for tenant, count in (("acme", 480), ("bits", 10)):
            jobs = [{"function": "invoices", "payload": f"{tenant} {n}", "partition": tenant} for n in range(count)]
            api(url, "jobs/batch", {"jobs": jobs})
        assert [peer.grab().data, another.grab().data] == [b"acme 0", b"bits 0"]
        page = visit(f"{url}/#/functions/invoices", viewport={"width": 1280, "height": 720}, color_scheme="light")
        shows(page, ".tile", "10 at once")
        page.get_by_role("button", name="Concurrency").click()
        shows(page, "dialog", "Jobs that run at once")
        page.screenshot(path=IMAGES / "limits-light.png")


def _wait_for_rates(page: Page) -> None:
    """Wait for a second sample, from which the page computes rates."""
    until = page.evaluate("performance.now() + 6000")
    page.wait_for_function("until => performance.now() > until", arg=until)
