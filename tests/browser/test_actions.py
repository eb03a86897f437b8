"""Actions in the dashboard: what the page shows, and what the server did."""

from typing import Any

import pytest

from tests.browser.page_checks import PageErrors, Visit, hides, part, shows
from tests.browser.scene import ATTEMPTS, Scene, api
from tests.support.gearman_peer import Kind, Peer, worker
from tests.support.peer import until

pytestmark = pytest.mark.peer("chromium", "playwright")


def state(busy: Scene, handle: str) -> str:
    found: str = api(busy.url, f"jobs/{part(handle)}")["state"]
    return found


def test_a_job_is_found_and_cancelled(busy: Scene, visit: Visit) -> None:
    page = visit(f"{busy.url}/#/jobs")
    page.get_by_role("searchbox").fill("april")
    page.get_by_role("button", name="Queued", exact=True).click()
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    row = shows(page, "tbody tr", busy.doomed)
    row.get_by_role("button", name="Cancel").click()
    shows(page, "#notices", f"{busy.doomed} is cancelled.")
    shows(page, "h2", "No jobs match")
    assert state(busy, busy.doomed) == "cancelled"


def test_a_dead_job_is_retried_and_done(busy: Scene, visit: Visit) -> None:
    handle = busy.dead[0]
    page = visit(f"{busy.url}/#/failures?state=dead")
    page.get_by_role("link", name="gave up after # attempts").click()
    shows(page, "tbody tr", handle).get_by_role("link", name=handle).click()
    shows(page, ".timeline li", "Dead")
    assert page.locator(".timeline .step").filter(has_text="Attempt").count() == ATTEMPTS
    page.get_by_role("button", name="Retry").click()
    shows(page, "#notices", f"{handle} is queued again.")
    shows(page, ".badge", "queued")
    with worker(busy.gearman, b"import-csv") as peer:
        job = peer.grab()
        assert job.handle.decode() == handle
        sent = page.locator("pre").filter(has_text="data: row <b>1</b>")
        # Repeated, because the page does not show when its stream is open.
        until(
            lambda: bool(peer.send(Kind.WORK_DATA, job.handle, b"row <b>1</b>") and sent.count()), "the page shows it"
        )
        peer.send(Kind.WORK_COMPLETE, job.handle, b"three rows")
        shows(page, ".badge", "done")
        shows(page, "section.bytes pre", "three rows")


def test_a_group_of_dead_jobs_is_retried_at_once(busy: Scene, visit: Visit) -> None:
    page = visit(f"{busy.url}/#/failures?state=dead")
    row = shows(page, "tbody tr", "gave up after # attempts; last: worker disconnected")
    assert row.locator("td").nth(2).inner_text() == "2"  # one of three is retried already
    row.get_by_role("button", name="Retry").click()
    shows(page, "dialog", "2 jobs (gave up after 3 attempts").get_by_role("button", name="Retry all").click()
    shows(page, "#notices", "2 jobs are queued again.")
    shows(page, "h2", "No dead jobs")
    assert [state(busy, handle) for handle in busy.dead[1:]] == ["queued", "queued"]


def test_failed_jobs_are_found_by_their_reason_and_retried(busy: Scene, visit: Visit) -> None:
    with worker(busy.gearman, b"shop.ship") as peer, Peer(busy.gearman) as client:
        for number in range(3):
            client.submit(b"shop.ship", b"", b"order %d" % number, kind=Kind.SUBMIT_JOB_BG)
            peer.send(Kind.WORK_EXCEPTION, peer.grab().handle, b"no address for order %d of 'Ada'" % number)
        peer.silence()
        page = visit(f"{busy.url}/#/failures")
        row = shows(page, "tbody tr", "no address for order # of '…'")
        assert row.locator("td").nth(1).inner_text() == "3"
        row.get_by_role("link", name="no address").click()
        shows(page, "td", "no address for order 2 of 'Ada'")
        shows(page, "td", "order 1").locator("..").get_by_role("link").first.click()
        shows(page, "pre", "order 1")
        page.get_by_role("button", name="Submit again").click()
        assert page.get_by_role("textbox", name="Payload").input_value() == "order 1"
        page.get_by_role("button", name="Cancel").last.click()
        page.go_back()
        page.get_by_label("Select all rows of this page").check()
        shows(page, ".bulk", "3 jobs selected").get_by_role("button", name="Retry").click()
        shows(page, "dialog", "Retry 3 jobs?").get_by_role("button", name="Retry").click()
        shows(page, "#notices", "3 jobs are queued again.")
        shows(page, "h2", "No jobs with this reason")
        assert sorted(peer.grab().data for _ in range(3)) == [b"order 0", b"order 1", b"order 2"]


def test_selected_jobs_are_cancelled(busy: Scene, visit: Visit) -> None:
    payloads = [f"letter {number}" for number in range(6)]
    handles = [api(busy.url, "jobs", {"function": "letters", "payload": payload})["handle"] for payload in payloads]
    page = visit(f"{busy.url}/#/jobs?function=letters&state=queued")
    shows(page, "td", "letter 5")
    boxes = page.locator("tbody input[type=checkbox]")  # the newest job comes first
    boxes.nth(1).check()
    boxes.nth(3).click(modifiers=["Shift"])
    shows(page, ".bulk", "3 jobs selected")
    assert [boxes.nth(index).is_checked() for index in range(6)] == [False, True, True, True, False, False]
    boxes.nth(2).focus()
    page.keyboard.press("x")
    shows(page, ".bulk", "2 jobs selected").get_by_role("button", name="Cancel", exact=True).click()
    shows(page, "dialog", "Cancel 2 jobs?").get_by_role("button", name="Cancel", exact=True).click()
    shows(page, "#notices", "2 jobs are cancelled.")
    hides(page, "td", "letter 4")
    states = [state(busy, handle) for handle in reversed(handles)]
    assert states == ["queued", "cancelled", "queued", "cancelled", "queued", "queued"]
    page.get_by_label("Select all rows of this page").check()
    shows(page, ".bulk", "4 jobs selected")
    page.get_by_role("button", name="Clear selection").click()
    assert page.locator("tbody input:checked").count() == 0
    shows(page, ".bulk", "Cancel all")


def test_all_that_match_are_selected_over_all_pages(busy: Scene, visit: Visit) -> None:
    with Peer(busy.gearman) as client:
        for _ in range(130):
            client.submit(b"leaflets", b"", b"x", kind=Kind.SUBMIT_JOB_BG)
    page = visit(f"{busy.url}/#/jobs?function=leaflets&state=queued")
    shows(page, ".pager", "100 of 130 jobs")
    page.get_by_label("Select all rows of this page").check()
    shows(page, ".bulk", "100 jobs selected")
    page.get_by_role("button", name="Select all that match (130 jobs)").click()
    page.get_by_role("button", name="Cancel all").click()
    shows(page, "dialog", "130 jobs").get_by_role("button", name="Cancel all").click()
    shows(page, "#notices", "130 jobs are cancelled.")
    shows(page, "h2", "No jobs match")


def test_a_function_is_paused_and_resumed(busy: Scene, visit: Visit) -> None:
    page = visit(f"{busy.url}/#/functions?search=invoice")
    shows(page, "tbody tr", "invoice-pdf").get_by_role("button", name="Pause").click()
    shows(page, "tbody .badge", "paused")
    with worker(busy.gearman, b"invoice-pdf") as peer:
        assert peer.take() is None
    shows(page, "tbody tr", "invoice-pdf").get_by_role("button", name="Resume").click()
    hides(page, "tbody .badge", "paused")
    assert api(busy.url, "functions/invoice-pdf")["paused"] is False


def test_a_function_is_limited(busy: Scene, visit: Visit) -> None:
    page = visit(f"{busy.url}/#/functions/webhook")
    page.get_by_role("button", name="Limits").click()
    page.get_by_label("Normal").fill("1")
    page.get_by_role("button", name="Save").click()
    shows(page, ".tile", "∞ / 1 / ∞")
    with Peer(busy.gearman) as client:
        client.send(Kind.SUBMIT_JOB_BG, b"webhook", b"", b"one more")
        assert client.packet()[0] == Kind.ERROR


def test_the_running_jobs_of_a_function_are_limited(busy: Scene, visit: Visit, errors: PageErrors) -> None:
    errors.expected = ("400",)
    with Peer(busy.gearman) as client:  # before the page asks for a function that there would not be
        client.send(Kind.SUBMIT_JOB_BG, b"tenants", b"acme:1", b"one")
        client.send(Kind.SUBMIT_JOB_BG, b"tenants", b"acme:2", b"two")
        handles = [client.packet()[1] for _ in range(2)]
    page = visit(f"{busy.url}/#/functions/tenants")
    page.get_by_role("button", name="Concurrency").click()
    page.get_by_label("Jobs that run at once").fill("1")
    page.get_by_label("Starts, such as 100/m").fill("often")
    page.get_by_role("button", name="Save").click()
    shows(page, "dialog", "'often' is not a rate such as 5/s")
    page.get_by_label("Starts, such as 100/m").fill("100/m")
    page.get_by_role("button", name="Save").click()
    shows(page, ".tile", "1 at once, 100/m")
    limits = api(busy.url, "functions/tenants")["running_limits"]
    assert (limits["max_running"], limits["rate"], limits["burst"]) == (1, "100/m", None)
    with worker(busy.gearman, b"tenants") as peer:
        assert peer.grab().data == b"one"
        assert peer.take() is None
        shows(page, ".head", "waits for one of 1 running jobs to end (max_running)")
        page.goto(f"{busy.url}/#/jobs/{part(handles[1].decode())}")
        shows(page, "main", "one of 1 running jobs to end (max_running)")


def test_a_function_has_settings(busy: Scene, visit: Visit) -> None:
    page = visit(f"{busy.url}/#/functions/webhook")
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Background jobs that fail").select_option("dead")
    page.get_by_label("Keep failed jobs").fill("60")
    page.get_by_role("button", name="Save").click()
    shows(page, "#notices", "Settings of webhook saved.")
    settings = api(busy.url, "functions/webhook")["settings"]
    assert settings == {"failures": "dead", "keep_for": None, "keep_failed_for": 60.0, "max_run": None}
    page.get_by_role("button", name="Settings").click()
    assert page.get_by_label("Keep failed jobs").input_value() == "60"
    page.get_by_label("Keep failed jobs").fill("")
    page.get_by_label("Background jobs that fail").select_option("default")
    page.get_by_role("button", name="Save").click()
    until(lambda: not any(api(busy.url, "functions/webhook")["settings"].values()), "the server's settings apply")


def test_bytes_are_submitted_again_as_they_are(busy: Scene, visit: Visit) -> None:
    with Peer(busy.gearman) as client:
        handle = client.submit(b"pixels", b"", b"\xff\x00text\n", kind=Kind.SUBMIT_JOB_BG).decode()
    page = visit(f"{busy.url}/#/jobs/{part(handle)}")
    shows(page, "pre.hex", "ff 00 74 65")
    page.get_by_role("button", name="Submit again").click()
    page.get_by_role("button", name="Submit", exact=True).click()
    shows(page, "#notices", "Submitted")
    with worker(busy.gearman, b"pixels") as peer:
        assert [peer.grab().data for _ in range(2)] == [b"\xff\x00text\n"] * 2


def test_a_function_has_no_buttons_before_it_is_loaded(busy: Scene, visit: Visit) -> None:
    page = visit(busy.url)
    held: list[Any] = []
    released = False
    page.route("**/functions/webhook", lambda route: route.continue_() if released else held.append(route))
    page.goto(f"{busy.url}/#/functions/webhook")
    shows(page, "h1", "webhook")
    limits = page.get_by_role("button", name="Limits")
    assert not limits.is_visible()
    until(lambda: page.evaluate("true") and bool(held), "the page asks for the function")
    released = True
    for route in held:  # it asks again when something happens meanwhile
        route.continue_()
    limits.click()
    page.get_by_label("Normal").wait_for()


def test_a_job_is_submitted_and_run_before_its_time(busy: Scene, visit: Visit) -> None:
    page = visit(busy.url)
    page.get_by_role("button", name="Submit a job").click()
    page.get_by_label("Function").fill("geocode")
    page.get_by_label("Payload").fill("Töpferstraße 1")
    page.get_by_label("Delay").fill("3600")
    page.get_by_role("button", name="Submit", exact=True).click()
    page.get_by_role("link", name="Show job").click()
    shows(page, ".badge", "scheduled")
    shows(page, "pre", "Töpferstraße 1")
    page.get_by_role("button", name="Run now").click()
    shows(page, ".badge", "queued")
    page.get_by_role("button", name="Submit again").click()
    assert page.get_by_role("textbox", name="Payload").input_value() == "Töpferstraße 1"
    page.get_by_role("button", name="Cancel").last.click()
    with worker(busy.gearman, b"geocode") as peer:
        assert peer.grab().data == "Töpferstraße 1".encode()


def test_a_refused_form_shows_the_error_and_stays_open(busy: Scene, visit: Visit, errors: PageErrors) -> None:
    page = visit(f"{busy.url}/#/schedules")
    page.get_by_role("button", name="New schedule").click()
    page.get_by_label("Name").fill("nightly")
    page.get_by_label("Cron expression").fill("61 * * * *")
    page.get_by_label("Function").fill("report")
    errors.expected = ("400",)
    page.get_by_role("button", name="Save").click()
    page.wait_for_function("() => document.querySelector('dialog .form-error').textContent.length > 10")
    assert page.get_by_label("Cron expression").input_value() == "61 * * * *"


def test_a_schedule_from_creation_to_removal(busy: Scene, visit: Visit) -> None:
    page = visit(f"{busy.url}/#/schedules")
    page.get_by_role("button", name="New schedule").click()
    for label, value in {
        "Name": "nightly-report",
        "Cron expression": "0 3 * * *",
        "Function": "report",
        "Payload": "{}",
    }.items():
        page.get_by_label(label).fill(value)
    page.get_by_role("button", name="Save").click()
    row = shows(page, "tbody tr", "nightly-report")
    row.get_by_role("button", name="Run now").click()
    page.get_by_role("link", name="Show job").click()
    shows(page, "main", "report")
    page.go_back()
    shows(page, "tbody tr", "nightly-report").get_by_role("button", name="Pause").click()
    shows(page, "tbody .badge", "paused")
    shows(page, "tbody tr", "nightly-report").get_by_role("button", name="Remove").click()
    shows(page, "dialog", "Remove the schedule").get_by_role("button", name="Remove").click()
    shows(page, "h2", "No schedules yet")
    until(lambda: api(busy.url, "schedules") == [], "it is gone")


def test_a_job_waits_for_another_one(busy: Scene, visit: Visit) -> None:
    with Peer(busy.gearman) as client:
        parent = client.submit(b"chapters", b"", b"one", kind=Kind.SUBMIT_JOB_BG).decode()
    child = api(busy.url, "jobs", {"function": "chapters", "payload": "two", "after": [parent]})["handle"]
    page = visit(f"{busy.url}/#/jobs?state=blocked")
    shows(page, "tbody tr", child).get_by_role("link", name=child).click()
    shows(page, ".timeline li", f"Blocked: it waits for job {parent} to end")
    with worker(busy.gearman, b"chapters") as taker:
        taker.send(Kind.WORK_COMPLETE, taker.grab().handle, b"")
        shows(page, ".badge", "queued")
        taker.send(Kind.WORK_COMPLETE, taker.grab().handle, b"")
    shows(page, ".badge", "done")
