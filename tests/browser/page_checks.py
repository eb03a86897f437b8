"""Waiting for elements of a page, and recording its errors."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # if it is missing, every test here is skipped
    from playwright.sync_api import Locator, Page

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE = {"width": 1360, "height": 860}
PATIENCE = 60_000  # milliseconds; a passing test never waits so long

Visit = Callable[..., "Page"]


class PageErrors:
    """Console errors, violations of the policy, and requests to other hosts."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.expected: tuple[str, ...] = ()  # parts of messages that a test causes on purpose

    def watch(self, page: Page) -> None:
        page.on("console", lambda message: self._hear(message.type, message.text))
        page.on("pageerror", lambda error: self.seen.append(f"an exception: {error}"))
        page.on("request", lambda request: self._see(request.url))

    def _hear(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not any(part in text for part in self.expected):
            self.seen.append(f"{kind} in the console: {text}")

    def _see(self, url: str) -> None:
        place = urllib.parse.urlsplit(url)
        if place.scheme not in ("about", "data", "blob") and place.hostname != "127.0.0.1":
            self.seen.append(f"a request to {url}")


def part(handle: str) -> str:
    """A handle as a part of an address."""
    return urllib.parse.quote(handle, safe="")


def shows(page: Page, selector: str, text: str) -> Locator:
    """Wait until an element with this text can be seen."""
    found = page.locator(selector).filter(has_text=text).first
    found.wait_for(state="visible")
    return found


def hides(page: Page, selector: str, text: str) -> None:
    """Wait until no element with this text can be seen."""
    page.locator(selector).filter(has_text=text).first.wait_for(state="hidden")
