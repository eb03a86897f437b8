"""The page of docs/web-frameworks.md that follows a task, in the browser."""

from __future__ import annotations

from pathlib import Path

from tests.browser.page_checks import Visit, shows
from tests.support import pages, serving
from tests.support.web_programs import UVICORN, task_worker, web_server


def test_a_page_of_fastapi_follows_a_task(visit: Visit, tmp_path: Path) -> None:
    with serving.serve("--store=memory", "--listen=gearman://127.0.0.1:0") as server:
        pages.write_files("web-frameworks.md", tmp_path, _4730=server.url)
        with web_server(tmp_path, *UVICORN, "images:api") as web:
            page = visit(f"http://{web.host}:{web.port}/")
            page.get_by_role("button", name="Resize the cat").click()
            with task_worker(tmp_path, "images:tasks"):
                shows(page, "#result", "done: cat.small")
            assert page.locator("#bar").evaluate("bar => bar.value") == 100
