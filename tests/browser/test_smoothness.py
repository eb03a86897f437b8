"""Pages on a server with ten thousand functions; their timings are printed."""

import pytest

from tests.browser import scene, smoothness
from tests.browser.page_checks import PageErrors, Visit, shows

pytestmark = pytest.mark.peer("chromium", "playwright")

FUNCTIONS = 10_000
JOBS = 10_000


def test_ten_thousand_functions(visit: Visit, errors: PageErrors, capsys: pytest.CaptureFixture[str]) -> None:
    with scene.serve("--store", "memory") as (_, url, port), smoothness.fill(port, FUNCTIONS, JOBS):
        page = visit(url)
        rows = [smoothness.measure(page, url, place, 1.0) for place in ("overview", "functions", "jobs")]
        page.goto(f"{url}/#/functions")
        shows(page, ".pager", "100 of 10,000 functions")
        page.get_by_role("button", name="Next").click()
        shows(page, ".pager", "Page 2")
        shows(page, "tbody tr:first-child", "function-00100")
        page.get_by_role("searchbox").fill("function-0987")
        page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 10")
        assert page.locator("tbody tr").count() <= 100
        errors.expected = ("Failed to load resource", "ERR_")
    with capsys.disabled():
        print(f"\n{smoothness.table(rows)}")
