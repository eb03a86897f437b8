"""The dashboard's page of the audit log: who did what, what was refused, and the users' quotas."""

import hashlib
from pathlib import Path

import pytest

from tests.browser import scene
from tests.browser.page_checks import PageErrors, Visit, hides, shows
from tests.browser.scene import api
from tests.support.http_peer import Peer

pytestmark = pytest.mark.peer("chromium", "playwright")

TOKEN = "gt_a-token-for-the-tests-of-the-audit-page"


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users.toml"
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    path.write_text(
        f'[mailer]\nmay = ["submit:mail.*", "read"]\ntokens = [{{ digest = "sha256:{digest}" }}]\nmax_queued_jobs = 5\n'
    )
    return path


def test_entries_filters_and_users(visit: Visit, users: Path, errors: PageErrors) -> None:
    with scene.serve("--store", "memory", "--users-file", str(users)) as (_, url, _port):
        api(url, "functions/mail.send/pause", {})
        mailer = Peer(url, TOKEN)
        assert mailer.call("POST", "/functions/mail.send/resume").status == 403
        assert mailer.call("POST", "/jobs", {"function": "mail.send"}).status == 201
        page = visit(f"{url}/#/audit")
        pause = shows(page, "table[aria-label='Audit log'] tbody tr", "pause")
        assert "function=mail.send" in pause.inner_text()
        refused = shows(page, "table[aria-label='Audit log'] tbody tr", "resume")
        for text in ("mailer", "refused", "the scope admin is required"):
            assert text in refused.inner_text()
        assert "1 / 5" in shows(page, "table[aria-label=Users] tbody tr", "mailer").inner_text()
        page.get_by_role("button", name="Refused").click()
        hides(page, "table[aria-label='Audit log'] tbody tr", "pause")
        shows(page, "table[aria-label='Audit log'] tbody tr", "resume")
        assert "refused=true" in page.url
        page.get_by_role("searchbox", name="User").fill("nobody")
        shows(page, ".empty h2", "No entries match")
        errors.expected = ("Failed to load resource", "ERR_")  # the server stops before the page


def test_page_is_for_admins(visit: Visit, errors: PageErrors) -> None:
    """Whoever may only read does not see it in the navigation, and is led away from its address."""
    errors.expected = ("Failed to load resource", "401", "403", "ERR_")
    secret = "only-for-those-who-read"
    with scene.serve("--store", "memory", "--http-tokens", f"read:{secret}") as (_, url, _port):
        page = visit(f"{url}/#/overview")
        page.locator("dialog input[name=token]").fill(secret)
        page.locator("dialog button", has_text="Log in").click()
        shows(page, "nav a", "System")
        hides(page, "nav a", "Audit log")
        assert Peer(url, secret).call("GET", "/audit").status == 403
