"""The browser, a busy server, and page errors, which fail a test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser import scene
from tests.browser.page_checks import ARGUMENTS, CHROMIUM, PATIENCE, WIDE, PageErrors, Visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. One per module: while it runs, no other event loop can run in this process."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def busy() -> Iterator[scene.Scene]:
    with scene.busy_server() as running:
        yield running


@pytest.fixture
def errors() -> Iterator[PageErrors]:
    errors = PageErrors()
    yield errors
    assert errors.seen == []


@pytest.fixture
def visit(browser: Browser, errors: PageErrors) -> Iterator[Visit]:
    """`visit(url, **options)` opens a page in a window of its own; all are closed with the test."""
    contexts = []

    def open_page(url: str, **options: object) -> Page:
        context = browser.new_context(**{"viewport": WIDE, "reduced_motion": "reduce", **options})
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        errors.watch(page)
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
