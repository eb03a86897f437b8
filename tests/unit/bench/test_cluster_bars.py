"""The bars of servers that share a PostgreSQL: each names rows and contenders that exist, and can be missed."""

import json
from pathlib import Path

import pytest

from bench import cluster, cluster_bars


def run_with(ratio: float | None) -> dict[str, object]:
    rows = {bar.row: {"row": bar.row, "title": bar.row, "geartrain_is_times_better": {}} for bar in cluster_bars.BARS}
    for bar in cluster_bars.BARS:
        better = rows[bar.row]["geartrain_is_times_better"]
        assert isinstance(better, dict)
        better.setdefault(bar.ours, {})[bar.other] = None if ratio is None else bar.least * ratio
    return {"rows": list(rows.values())}


def test_every_bar_is_measured() -> None:
    for bar in cluster_bars.BARS:
        row = next(row for row in cluster.ROWS if row.key == bar.row)
        ours = {contender.name for contender in row.contenders if contender.ours}
        others = {contender.name for contender in row.contenders if not contender.ours}
        assert bar.ours in ours
        assert bar.other in others


@pytest.mark.parametrize(("ratio", "code", "word"), [(1.01, 0, ""), (0.99, 1, "MISSED"), (None, 1, "not measured")])
def test_a_bar_is_kept_or_missed(
    ratio: float | None, code: int, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "found.json"
    file.write_text(json.dumps(run_with(ratio)))
    assert cluster_bars.main([str(file)]) == code
    shown = capsys.readouterr().out.splitlines()[1:]
    assert len(shown) == len(cluster_bars.BARS)
    assert all(line.endswith(word) for line in shown)
    assert (ratio is not None and ratio > 1) == (not any("MISSED" in line or "not" in line for line in shown))


def test_without_a_file_it_says_how_it_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert cluster_bars.main([]) == 2
    assert "found.json" in capsys.readouterr().err
