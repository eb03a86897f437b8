"""Searching the audit log from its end."""

import gzip
from pathlib import Path

import pytest

from geartrain import audit
from geartrain.audit import AuditEntry, AuditQuery
from geartrain.server.audit_search import search_entries, search_file

MANY = 3000  # lines: more than the block that is read at a time


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("audit") / "audit.log"
    lines = [audit.line(entry(number)) for number in range(MANY)]
    lines[10] = '{"time": "cut'
    lines[20] = "x" * 200_000
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def entry(number: int) -> AuditEntry:
    return AuditEntry(
        time=audit.at(float(number)),
        verb="pause" if number % 2 else "cancel",
        outcome=audit.REFUSED if number % 100 == 0 else audit.OK,
        who="ops" if number % 3 else "root",
        arguments={"number": number},
    )


def numbers(entries: list[AuditEntry]) -> list[int]:
    return [entry.arguments["number"] for entry in entries]


def all_pages(path: str, **fields: object) -> list[int]:
    found: list[int] = []
    after = 0
    while True:
        page = search_file(path, AuditQuery(after=after, **fields))  # type: ignore[arg-type]
        found += numbers(page.entries)
        after = page.after
        if not after:
            return found


def test_pages_have_every_entry_once_and_skip_what_is_none(file: str) -> None:
    expected = [number for number in reversed(range(MANY)) if number not in (10, 20)]
    assert all_pages(file, limit=7) == expected
    assert all_pages(file, limit=1000) == expected


def rotated(folder: Path, files: dict[str, range]) -> str:
    """A log of these files, each with the entries of these numbers."""
    for name, span in files.items():
        text = "".join(f"{audit.line(entry(number))}\n" for number in span).encode()
        (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return str(folder / "audit.log")


@pytest.mark.parametrize(
    "names",
    [
        ["audit.log.10.gz", "audit.log.2.gz", "audit.log.1", "audit.log"],
        ["audit.log-20261115.gz", "audit.log-20261116.gz", "audit.log-20261117", "audit.log"],
        ["audit.log.1", "audit.log-20261116", "audit.log-2026111701.gz", "audit.log"],
    ],
)
def test_older_files_belong_to_the_log(tmp_path: Path, names: list[str]) -> None:
    spans = [range(900), range(900, 1000), range(1000, 1001), range(1001, 1300)]
    path = rotated(tmp_path, dict(zip(names, spans, strict=True)))
    for other in ("audit.log.bak", "audit.logs.1", "audit.log.1.xz", "other.log.1"):
        (tmp_path / other).write_text(f"{audit.line(entry(5000))}\n")
    for limit in (7, 299, 1000):
        assert all_pages(path, limit=limit) == list(reversed(range(1300)))
    assert all_pages(path, since=995.0, until=1003.0) == list(reversed(range(995, 1003)))


def test_rotation_between_two_pages(tmp_path: Path) -> None:
    path = rotated(tmp_path, {"audit.log.1": range(100), "audit.log": range(100, 200)})
    page = search_file(path, AuditQuery(limit=50))
    assert numbers(page.entries) == list(reversed(range(150, 200)))
    rotated(tmp_path, {"audit.log.2.gz": range(100), "audit.log.1": range(100, 200), "audit.log": range(200, 210)})
    assert all_pages(path, limit=50)[10:] == list(reversed(range(200)))
    assert numbers(search_file(path, AuditQuery(limit=150, after=page.after)).entries) == list(reversed(range(150)))


def test_a_damaged_older_file_does_not_hide_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = rotated(tmp_path, {"audit.log.2.gz": range(10), "audit.log.1": range(10, 20), "audit.log": range(20, 30)})
    whole = (tmp_path / "audit.log.2.gz").read_bytes()
    (tmp_path / "audit.log.2.gz").write_bytes(whole[: len(whole) // 2])
    assert all_pages(path) == list(reversed(range(10, 30)))
    assert "old audit file cannot be read" in caplog.text


def test_filters(file: str) -> None:
    assert numbers(search_file(file, AuditQuery(limit=3)).entries) == [2999, 2998, 2997]
    assert all_pages(file, since=2995.0) == [2999, 2998, 2997, 2996, 2995]
    assert all_pages(file, since=2.0, until=5.0) == [4, 3, 2]
    assert all_pages(file, since=2990.0, verb="pause") == [2999, 2997, 2995, 2993, 2991]
    assert all_pages(file, since=2990.0, who="root") == [2997, 2994, 2991]
    assert all_pages(file, refused=True, limit=4) == list(reversed(range(0, MANY, 100)))


def test_position_of_a_rotated_file_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_text(audit.line(entry(1)) + "\n")
    assert numbers(search_file(str(path), AuditQuery(after=10**6)).entries) == [1]


def test_entries_in_memory() -> None:
    entries = [(number, entry(number)) for number in range(1, 10)]
    page = search_entries(entries, AuditQuery(limit=4))
    assert (numbers(page.entries), page.after) == ([9, 8, 7, 6], 6)
    page = search_entries(entries, AuditQuery(limit=10, after=page.after))
    assert (numbers(page.entries), page.after) == ([5, 4, 3, 2, 1], 0)
