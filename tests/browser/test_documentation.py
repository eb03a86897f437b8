"""The documentation site builds without a warning and works in a browser; `visit` fails if it loads from elsewhere."""

import functools
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.page_checks import Visit

ROOT = Path(__file__).parents[2]
PAGES = (
    "index.html",
    "from-gearmand.html",
    "python-api.html",
    "settings.html",
    "protocols/gearman.html",
)
SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
OVERFLOW = "document.documentElement.scrollWidth - innerWidth"

pytestmark = pytest.mark.peer("chromium", "playwright")


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the test shows what matters."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the site, which is built for these tests."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(ROOT / "tools" / "build_site.py"), "--output", str(folder)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    handler = functools.partial(QuietHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("size", SIZES)
def test_pages_fit_the_window(site: str, visit: Visit, size: str) -> None:
    page = visit(f"{site}/index.html", viewport=SIZES[size])
    for name in PAGES:
        page.goto(f"{site}/{name}")
        assert page.locator("h1").first.is_visible(), name
        assert page.evaluate(OVERFLOW) <= 0, f"{name} is wider than a {size}"


def test_search_finds_a_page(site: str, visit: Visit) -> None:
    page = visit(f"{site}/index.html")
    page.get_by_role("textbox", name="Search").fill("worker_lease")
    page.keyboard.press("Enter")
    page.locator("#search-results a", has_text="Settings").first.click()
    assert page.url.startswith(f"{site}/settings.html")


def test_dark_mode(site: str, visit: Visit) -> None:
    page = visit(f"{site}/index.html", color_scheme="light")
    shade = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(shade)
    dark = visit(f"{site}/index.html", color_scheme="dark").evaluate(shade)
    assert dark != light
    page.locator(".theme-toggle:visible").first.click()  # from the system's choice to dark or light
    page.locator(".theme-toggle:visible").first.click()
    assert page.evaluate("document.body.dataset.theme") in ("light", "dark")
