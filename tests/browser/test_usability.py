"""The dashboard by keyboard, on a phone, in both themes, on an empty server, with a token, and without a server."""

import pytest

from tests.browser import scene
from tests.browser.page_checks import PageErrors, Visit, hides, part, shows
from tests.browser.scene import Scene, api
from tests.support import serving

pytestmark = pytest.mark.peer("chromium", "playwright")

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
PAGES = {
    "o": "Overview",
    "f": "Functions",
    "j": "Jobs",
    "l": "Workflows",
    "d": "Failed and dead",
    "w": "Workers",
    "s": "Schedules",
    "a": "Audit log",
    "y": "System",
}


def test_keyboard_shortcuts(busy: Scene, visit: Visit) -> None:
    page = visit(busy.url)
    shows(page, "h1", "Overview")
    for key, heading in PAGES.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        shows(page, "h1", heading)
    page.keyboard.press("g")
    page.keyboard.press("f")
    shows(page, "tbody tr", "thumbnail")
    page.keyboard.press("/")
    page.keyboard.type("video")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    shows(page, "h1", "video-transcode")


def test_a_dialog_keeps_the_focus_and_gives_it_back(busy: Scene, visit: Visit) -> None:
    page = visit(busy.url)
    shows(page, "h1", "Overview")
    page.get_by_role("button", name="Keyboard").focus()
    page.keyboard.press("?")
    shows(page, "dialog", "Go to Failed and dead")
    for _ in range(4):
        page.keyboard.press("Tab")
        # The body stands for the browser's own controls, which are part of the round.
        assert page.evaluate("document.activeElement.matches('body, dialog *')")
    page.keyboard.press("Escape")
    hides(page, "dialog", "Keyboard")
    assert page.evaluate("document.activeElement.id") == "help"


def test_the_skip_link_comes_first_and_leads_to_the_page(busy: Scene, visit: Visit) -> None:
    page = visit(f"{busy.url}/#/functions")
    shows(page, "tbody tr", "thumbnail")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    shows(page, "h1", "Functions")


def test_the_theme_is_saved(busy: Scene, visit: Visit) -> None:
    page = visit(busy.url, color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    for theme in ("light", "dark"):
        page.locator("#theme").click()
        assert page.evaluate("document.documentElement.dataset.theme") == theme
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    assert page.evaluate(background) == dark


def test_every_page_fits_a_phone(busy: Scene, visit: Visit) -> None:
    page = visit(busy.url, **PHONE)
    shows(page, "#live-text", "live")
    for heading in PAGES.values():
        page.locator("nav a").filter(has_text=heading).first.click()
        shows(page, "h1", heading)
        page.locator("main .chart:visible, main td:visible, main .empty:visible").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") == 360, heading
    for place in (f"jobs/{part(busy.waiting)}", "functions/thumbnail"):
        page.goto(f"{busy.url}/#/{place}")
        page.locator("main .card:visible").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") == 360, place


@pytest.mark.parametrize("width", [1280, 1024, 390])
def test_functions_with_long_names_fit_the_window(busy: Scene, visit: Visit, width: int) -> None:
    name = "com.example.billing.invoices.rendering." * 13 + "later"  # 512 bytes, the longest that the server accepts
    assert len(name) == 512
    api(busy.url, "jobs", {"function": name, "payload": "x"})
    page = visit(f"{busy.url}/#/functions?search=com.example", viewport={"width": width, "height": 800})
    row = shows(page, "tbody tr", name)
    assert row.locator("td").first.get_attribute("title") == name
    wide = "[...document.querySelectorAll('html, .table-wrap')].some((box) => box.scrollWidth > box.clientWidth)"
    assert not page.evaluate(wide)
    button = row.get_by_role("button", name="Pause").bounding_box()
    assert button is not None
    assert button["x"] + button["width"] <= width
    row.get_by_role("link").click()
    shows(page, "h1", name)
    shows(page, "td", "queued")
    assert not page.evaluate(wide)


def test_rows_become_cards_on_a_phone(busy: Scene, visit: Visit) -> None:
    page = visit(f"{busy.url}/#/functions", **PHONE)
    row = shows(page, "tbody tr", "thumbnail")
    tops = row.locator("td").evaluate_all("cells => cells.map((cell) => cell.getBoundingClientRect().top)")
    assert len(set(tops)) > 4  # not beside each other
    label = row.locator("td").nth(1).evaluate("cell => getComputedStyle(cell, '::before').content")
    assert label == '"Queued"'


def test_an_empty_server_shows_what_to_do(visit: Visit, errors: PageErrors) -> None:
    with scene.serve("--store", "memory") as (_, url, port):
        page = visit(url)
        shows(page, ".command", f"gearman -h 127.0.0.1 -p {port} -w -f reverse -- rev")
        shows(page, ".command", f"echo 'Hello, gears' | gearman -h 127.0.0.1 -p {port} -f reverse")
        for place, text in {
            "functions": "No functions yet",
            "jobs": "No jobs yet",
            "workers": "No workers",
            "failures": "No failed or dead jobs",
            "dead": "No dead jobs",
        }.items():
            page.goto(f"{url}/#/{place}")
            shows(page, ".empty h2", text)
        errors.expected = ("Failed to load resource", "ERR_")


def test_commands_name_no_door_that_is_closed(visit: Visit, errors: PageErrors) -> None:
    with serving.serve("--store", "memory", "--listen", "http://127.0.0.1:0") as server:
        url = server.urls[0].rstrip("/")
        page = visit(f"{url}/#/workers")
        shows(page, ".command", f"geartrain work -s {url} reverse -- rev")
        page.goto(f"{url}/#/jobs")
        shows(page, ".command", f"geartrain submit -s {url} report monday")
        assert "gearman" not in page.locator(".command").inner_text()
        errors.expected = ("Failed to load resource", "ERR_")


def test_the_page_reconnects(visit: Visit, errors: PageErrors) -> None:
    with scene.serve("--store", "memory") as (_, url, _):
        page = visit(url)
        shows(page, "#live-text", "live")
        errors.expected = ("Failed to load resource", "ERR_")
    shows(page, "#live[data-state=reconnecting]", "reconnecting")
    with scene.serve("--store", "memory", listen=url):
        shows(page, "#live[data-state=live]", "live")


def test_a_token_is_asked_for_once(visit: Visit, errors: PageErrors) -> None:
    errors.expected = ("401",)
    secret = "a-secret-of-some-length"
    with scene.serve("--store", "memory", "--http-tokens", f"read:{secret}") as (_, url, _):
        page = visit(url)
        shows(page, "dialog", "Log in")
        page.get_by_role("textbox", name="Token").fill("not-the-right-one-at-all")
        page.get_by_role("button", name="Log in").click()
        shows(page, "dialog .form-error", "Invalid token")
        page.get_by_role("textbox", name="Token").fill(secret)
        page.get_by_role("button", name="Log in").click()
        shows(page, "#live-text", "live")
        assert page.locator("dialog").count() == 0
        assert not page.get_by_role("button", name="Submit a job").is_visible()  # the token may only read
        page.reload()
        shows(page, "#live-text", "live")
        errors.expected = ("401", "Failed to load resource", "ERR_")
