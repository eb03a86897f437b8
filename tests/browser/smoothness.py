"""How smooth the pages are on a server with very many functions and jobs.

    python -m tests.browser.smoothness [functions] [jobs]

prints, per page: how long its first data took; then, while it is watched, the work that the browser had with it each
second (script, style and layout) and the longest task, which a person could feel when it is over 50 ms. On a machine
that is busy with other things the longest task says more about those. Nothing is asserted.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from tests.browser import scene
from tests.browser.page_checks import ARGUMENTS, CHROMIUM, PATIENCE, WIDE
from tests.support.gearman_peer import Kind, Peer, request

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page

FUNCTIONS = 10_000
JOBS = 1_000_000
WATCHED = 6.0  # seconds on each page
SETTLED = 1.0  # seconds after its first data, which are not counted
PLACES = ("overview", "functions", "functions?sort=queued", "jobs", "jobs?state=queued", "workers", "failures")
BATCH = 500
WORK = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")

_OBSERVE = """() => {
  window.longTasks = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.longTasks.push(entry.duration);
  }).observe({ type: "longtask", buffered: true });
}"""


class Smoothness(NamedTuple):
    """Of one page; milliseconds."""

    place: str
    first: float  # until its data was there
    work: float  # for each second
    longest: float  # task; 0 if none was over 50


def fill(port: int, functions: int, jobs: int) -> Peer:
    """A worker that offers that many functions, and that many jobs spread over them; close the worker afterwards."""
    worker = Peer(port)
    for start in range(0, functions, BATCH):
        names = range(start, min(start + BATCH, functions))
        worker.raw(b"".join(request(Kind.CAN_DO, b"function-%05d" % number) for number in names))
    worker.silence()
    with Peer(port) as client:
        for start in range(0, jobs, BATCH):
            numbers = range(start, min(start + BATCH, jobs))
            client.raw(b"".join(_order(number, functions) for number in numbers))
            for _ in numbers:
                client.body(Kind.JOB_CREATED, timeout=60)
    return worker


def _order(number: int, functions: int) -> bytes:
    function = b"function-%05d" % (number * number % functions)
    return request(Kind.SUBMIT_JOB_BG, function, b"", b'{"number": %d}' % number)


def measure(page: Page, url: str, place: str, seconds: float) -> Smoothness:
    """Open a page, and watch it for a while."""
    page.goto("about:blank")
    page.add_init_script(f"({_OBSERVE})()")
    page.goto(f"{url}/#/{place}")
    first = page.evaluate(
        """() => new Promise((resolve) => {
          const look = () => document.querySelector("main td, main .empty, main path.line[d]")
            ? resolve(performance.now()) : requestAnimationFrame(look);
          look();
        })"""
    )
    _pass_time(page, SETTLED)
    page.evaluate("window.longTasks = []")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    before = _work(session)
    _pass_time(page, seconds)
    work = (_work(session) - before) * 1000 / seconds
    session.detach()
    return Smoothness(place, first, work, max(page.evaluate("window.longTasks"), default=0))


def _pass_time(page: Page, seconds: float) -> None:
    until = page.evaluate("performance.now()") + seconds * 1000
    # Looked at now and then, not in every frame: that would be most of the work.
    passed = "until => performance.now() > until"
    page.wait_for_function(passed, arg=until, polling=500, timeout=PATIENCE + seconds * 1000)


def _work(session: CDPSession) -> float:
    """Seconds that went into the page so far."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return sum(metric["value"] for metric in metrics if metric["name"] in WORK)


def table(rows: list[Smoothness]) -> str:
    lines = [f"{'page':<24}{'first data':>12}{'work each second':>18}{'longest task':>14}  (ms)"]
    lines += [f"{row.place:<24}{row.first:>12.0f}{row.work:>18.1f}{row.longest:>14.0f}" for row in rows]
    return "\n".join(lines)


def main(functions: int = FUNCTIONS, jobs: int = JOBS) -> None:
    from playwright.sync_api import sync_playwright

    with scene.serve("--store", "memory") as (_, url, port), fill(port, functions, jobs), sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        page = browser.new_page(viewport=WIDE)
        print(f"{functions:,} functions, {jobs:,} jobs, {WATCHED:g} seconds on each page")
        print(table([measure(page, url, place, WATCHED) for place in PLACES]))
        browser.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
