"""The dashboard's files: what is served, and what is not."""

import json
from pathlib import Path
from typing import Any

import pytest

from geartrain.doors.http import static_files
from tests.support import http_requests


def ask(path: str, method: str = "GET", **headers: str) -> Any:
    return static_files.answer(http_requests.request(method, path, **headers))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dashboard of our own."""
    shown = tmp_path / "pages"
    (shown / "parts").mkdir(parents=True)
    (shown / "index.html").write_text("<!doctype html>")
    (shown / "parts" / "chart.js").write_text("export {}")
    (shown / "secret.py").write_text("x")
    (shown / ".hidden.js").write_text("x")
    (tmp_path / "outside.js").write_text("x")
    monkeypatch.setattr(static_files, "FOLDER", shown)
    return shown


def test_the_index_page() -> None:
    answer = ask("/")
    assert (answer.status_code, answer.body) == (200, b"<!doctype html>")
    assert answer.media_type == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_a_module() -> None:
    answer = ask("/parts/chart.js")
    assert (answer.status_code, answer.media_type) == (200, "text/javascript; charset=utf-8")


def test_the_verbs_are_a_module() -> None:
    answer = ask("/lib/verbs.js")
    assert answer.media_type == "text/javascript; charset=utf-8"
    assert answer.body.startswith(b"// Made from admin/verbs")
    table = json.loads(answer.body.split(b"export const VERBS = ")[1].rstrip(b";\n"))
    assert (table["retry"]["label"], table["retry"]["states"], table["retry"]["path"]) == (
        "Retry",
        ["dead", "failed"],
        "jobs/{handle}/retry",
    )
    assert "overview" not in table


def test_an_unchanged_file_is_not_sent_again() -> None:
    tag = ask("/").headers["etag"]
    again = ask("/", if_none_match=tag)
    assert (again.status_code, again.body) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/../outside.js",
        "/parts/../../outside.js",
        "/.hidden.js",
        "/secret.py",
        "/none.js",
        "/parts",
        "/a%00b.js",
        "//etc",
    ],
)
def test_unknown_names_are_not_found(path: str) -> None:
    assert ask(path).status_code == 404


def test_a_path_of_a_view_gets_the_index_page() -> None:
    assert ask("/functions/mail", accept="text/html,*/*").body == b"<!doctype html>"
    assert ask("/functions/mail", accept="application/json").status_code == 404


def test_files_can_only_be_read() -> None:
    answer = ask("/", "POST")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
