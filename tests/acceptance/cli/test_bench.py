"""`geartrain bench` against a running server, by every protocol, and against a real gearmand."""

from tests.acceptance.cli.conftest import run
from tests.support import serving


def rows(url: str) -> dict[str, dict[str, object]]:
    report = run("", "bench", url, "--jobs", "50", "--in-flight", "5", "--json").json
    return {row["what"]: row for row in report["rows"]}


def test_every_protocol_is_measured(url: str) -> None:
    found = rows(url)
    background = set() if url.startswith("memodb") else {"background submits", "drain"}
    assert set(found) == {"round trips"} | background
    assert all((row["jobs"], row["errors"]) == (50, 0) for row in found.values())


def test_a_real_gearmand_is_measured_too() -> None:
    with serving.gearmand() as theirs:
        assert all((row["jobs"], row["errors"]) == (50, 0) for row in rows(theirs.url).values())


def test_table(server: serving.ServerProcess) -> None:
    text = run("", "bench", server.url, "--jobs", "20").text
    assert "RATE/S" in text
    assert "background submits" in text
