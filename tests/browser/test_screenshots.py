"""The screenshots of the README and the documentation, taken with UPDATE_SCREENSHOTS=1."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.page_checks import Visit, part, shows
from tests.browser.scene import Scene, api
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


def _wait_for_rates(page: Page) -> None:
    """Wait for a second sample, from which the page computes rates."""
    until = page.evaluate("performance.now() + 6000")
    page.wait_for_function("until => performance.now() > until", arg=until)
