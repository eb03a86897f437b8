"""The dashboard of users with different rights: what they see, which buttons they have, and logging in and out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.browser.page_checks import PageErrors, Visit, part, shows
from tests.support import certificates, serving
from tests.support.gearman_peer import Kind, Peer

if TYPE_CHECKING:
    from playwright.sync_api import Page

RIGHTS = {
    "reader": ["read"],
    "mail": ["read:mail.*"],
    "postmaster": ["read", "submit:mail.*", "admin:mail.*"],
    "sender": ["submit:mail.*"],
    "runner": ["work"],
    "boss": ["admin"],
    "nobody": [],
}


def token(user: str) -> str:
    return f"the-token-of-{user}-for-tests"


class Place(NamedTuple):
    """Where the page is, a job of each function, and a workflow."""

    url: str
    jobs: dict[str, str]
    workflow: str


def write_users(path: Path) -> None:
    sections = []
    for user, rights in RIGHTS.items():
        digest = hashlib.sha256(token(user).encode()).hexdigest()
        sections.append(f'[{user}]\nmay = {rights}\ntokens = [{{ digest = "sha256:{digest}" }}]\n')
    path.write_text("\n".join(sections))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server by https, where nothing is allowed without a token."""
    folder = tmp_path_factory.mktemp("rights")
    users, files = folder / "users.toml", certificates.self_signed(folder)
    write_users(users)
    flags = ["--store=memory", f"--users-file={users}", f"--tls-certificate={files.both}"]
    listens = ["--listen=https://127.0.0.1:0?may=none", "--listen=gearman://127.0.0.1:0"]
    with serving.serve(*flags, *listens) as server, Peer(int(server.urls[1].rpartition(":")[2])) as client:
        jobs = {}
        for function in ("mail.send", "mail.fetch", "billing"):
            jobs[function] = client.submit(function.encode(), b"", b"some payload", kind=Kind.SUBMIT_JOB_BG).decode()
        order = {"do": "submit_workflow", "name": "letters", "jobs": [{"function": "mail.print"}]}
        client.submit(b"geartrain.control", b"", json.dumps(order).encode())
        answer = client.body(Kind.WORK_COMPLETE).partition(b"\0")[2]
        yield Place(server.urls[0].rstrip("/"), jobs, json.loads(answer)["answer"]["handle"])


@pytest.fixture
def log_in(place: Place, visit: Visit) -> object:
    def go(user: str, fragment: str = "") -> Page:
        page = visit(f"{place.url}/{fragment}", ignore_https_errors=True)
        shows(page, "dialog", "Log in")
        page.get_by_role("textbox", name="Token").fill(token(user))
        page.get_by_role("button", name="Log in").click()
        page.locator("dialog").wait_for(state="detached")
        shows(page, "#user", user)
        return page

    return go


def navigation(page: Page) -> list[str]:
    return [text.split()[0] for text in page.locator("nav a").all_inner_texts()]


def visible_buttons(page: Page) -> set[str]:
    page.locator("main h1").first.wait_for()
    return {button.inner_text() for button in page.locator("main button, .topbar button").all() if button.is_visible()}


ALL_PAGES = ["Overview", "Functions", "Jobs", "Workflows", "Failed", "Workers", "Schedules", "System"]


def test_reader_has_no_buttons_that_change_anything(log_in: Visit, place: Place) -> None:
    page = log_in("reader", "#/functions")
    assert [name for name in navigation(page) if name in ALL_PAGES] == ALL_PAGES
    shows(page, "table", "billing")
    assert not visible_buttons(page) & {"Pause", "Limits", "Submit a job"}
    page.goto(f"{place.url}/#/jobs/{part(place.jobs['billing'])}")
    shows(page, ".head", "queued")  # the job is there, and with it the buttons
    assert not visible_buttons(page) & {"Cancel", "Submit again"}
    page.goto(f"{place.url}/#/schedules")
    shows(page, "h1", "Schedules")
    assert "New schedule" not in visible_buttons(page)


def test_reader_of_some_functions_sees_only_these(log_in: Visit, place: Place) -> None:
    page = log_in("mail", "#/functions")
    shows(page, "table", "mail.send")
    assert page.get_by_text("billing").count() == 0
    assert [name for name in navigation(page) if name in ALL_PAGES] == ALL_PAGES[:-1]
    page.goto(f"{place.url}/#/jobs")
    shows(page, "table", "mail.fetch")
    assert page.get_by_text("billing").count() == 0
    page.goto(f"{place.url}/#/overview")
    shows(page, ".limited", "Totals are of all functions")
    page.goto(f"{place.url}/#/system")  # which is for readers of everything
    shows(page, "h1", "Overview")


def test_workflows_need_the_right_for_their_function(log_in: Visit, errors: PageErrors, place: Place) -> None:
    errors.expected = ("403",)
    workflow = f"#/workflows/{part(place.workflow)}"
    page = log_in("reader", workflow)
    shows(page, ".graph-node", "mail.print")
    assert not visible_buttons(page) & {"Cancel", "Retry"}
    page.goto(f"{place.url}/#/workflows")
    shows(page, "table", "letters")
    assert not visible_buttons(page) & {"Cancel", "Retry"}
    page = log_in("boss", workflow)
    shows(page, ".graph-node", "mail.print")
    assert "Cancel" in visible_buttons(page)
    page = log_in("mail", "#/workflows")  # who may read some functions, but not this one
    shows(page, ".empty h2", "No workflows yet")
    page.goto(f"{place.url}/{workflow}")
    shows(page, ".problem", "geartrain.workflow")
    assert page.locator(".graph-node").count() == 0
    page = log_in("sender", "#/workflows")  # the list is for readers
    shows(page, "h1", "Account")


def test_buttons_are_for_the_functions_of_the_rights(log_in: Visit, place: Place) -> None:
    page = log_in("postmaster", "#/functions")
    rows = {name: page.locator("tr", has_text=name) for name in ("mail.send", "billing")}
    rows["mail.send"].get_by_role("button", name="Pause").wait_for()
    assert not rows["billing"].get_by_role("button", name="Pause").is_visible()
    assert not rows["billing"].get_by_role("button", name="Limits").is_visible()
    for function, allowed in (("mail.send", True), ("billing", False)):
        page.goto(f"{place.url}/#/jobs/{part(place.jobs[function])}")
        shows(page, "h1", place.jobs[function])
        shows(page, ".head", "queued")  # the job is there, and with it the buttons
        assert ({"Cancel", "Submit again"} <= visible_buttons(page)) == allowed
        page.goto(f"{place.url}/#/functions/{function}")
        shows(page, "h1", function)
        shows(page, "main table", place.jobs[function])
        assert bool({"Pause", "Drop", "Limits"} & visible_buttons(page)) == allowed


def test_buttons_for_all_jobs_need_the_right_for_all_of_them(log_in: Visit, place: Place) -> None:
    page = log_in("postmaster", "#/jobs?state=queued&function=mail.send")
    shows(page, "table", place.jobs["mail.send"])
    shows(page, ".bulk button", "Cancel all")
    page.goto(f"{place.url}/#/jobs?state=queued")
    shows(page, "table", "billing")
    assert page.locator(".bulk button", has_text="Cancel all").count() == 0


def test_submitter_submits_and_follows_jobs(log_in: Visit, errors: PageErrors, place: Place) -> None:
    errors.expected = ("403",)  # the payload of the job is for readers
    page = log_in("sender")
    assert navigation(page) == []
    shows(page, "main", "submit:mail.*")
    assert not page.locator("#live").is_visible()
    page.get_by_role("button", name="Submit a job").click()
    page.get_by_role("combobox", name="Function").fill("mail.send")
    page.get_by_role("button", name="Submit", exact=True).click()
    page.get_by_role("link", name="Show job").click()
    shows(page, "main", "queued")
    assert not visible_buttons(page) & {"Cancel", "Run now"}
    page.goto(f"{place.url}/#/jobs")  # the list is for readers
    shows(page, "h1", "Account")


def test_worker_sees_its_rights(log_in: Visit) -> None:
    page = log_in("runner")
    shows(page, "main", "run jobs, by a worker program")
    assert navigation(page) == []
    assert visible_buttons(page) == set()


def test_admin_sees_everything_and_logs_out(log_in: Visit, place: Place) -> None:
    page = log_in("boss", "#/functions")
    shows(page, "table", "billing")
    assert {"Pause", "Limits", "Submit a job"} <= visible_buttons(page)
    page.get_by_role("button", name="Log out").click()
    shows(page, "dialog", "Log in")
    assert page.get_by_text("billing").count() == 0
    page.get_by_role("textbox", name="Token").fill(token("mail"))
    page.get_by_role("button", name="Log in").click()
    shows(page, "table", "mail.send")
    assert "Pause" not in visible_buttons(page)


def test_tokens_that_do_not_help(visit: Visit, errors: PageErrors, place: Place) -> None:
    errors.expected = ("401",)
    page = visit(place.url, ignore_https_errors=True)
    for secret, complaint in (("nonsense", "Invalid token"), (token("nobody"), "This token has no rights")):
        page.get_by_role("textbox", name="Token").fill(secret)
        page.get_by_role("button", name="Log in").click()
        shows(page, "dialog .form-error", complaint)


def test_log_in_for_more_rights(visit: Visit, tmp_path: Path) -> None:
    """Where everybody may read, a user can still log in, and out."""
    users = tmp_path / "users.toml"
    write_users(users)
    flags = ["--store=memory", f"--users-file={users}", "--listen=http://127.0.0.1:0?may=read"]
    with serving.serve(*flags) as server:
        page = visit(server.url.rstrip("/"))
        shows(page, "#live-text", "live")
        assert not page.get_by_role("button", name="Submit a job").is_visible()
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("textbox", name="Token").fill(token("boss"))
        page.locator("dialog").get_by_role("button", name="Log in").click()
        shows(page, "#user", "boss")
        page.get_by_role("button", name="Submit a job").wait_for()
        page.get_by_role("button", name="Log out").click()
        page.get_by_role("button", name="Log in").wait_for()
        page.goto("about:blank")
