"""The front of `make bench`: what can be chosen, and a whole run that takes seconds."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import catalogue, run

ROOT = Path(__file__).parents[3]
LATENCIES = {f"durable-latency-{share}-{name}" for share in (30, 60, 90) for name in ("p50", "p99", "p999")}


def rows() -> list[str]:
    return [row.key for group in catalogue.GROUPS for row in group.rows]


def test_every_row_has_a_name_of_its_own_and_says_what_it_is() -> None:
    assert len(rows()) == len(set(rows()))
    for group in catalogue.GROUPS:
        for row in group.rows:
            assert row.what.endswith(".")
            assert all(contender.on for contender in row.contenders)
            assert any(contender.ours for contender in row.contenders)
            names = [contender.name for contender in row.contenders]
            assert len(names) == len(set(names))


def test_everybody_who_is_needed_can_be_installed() -> None:
    """A name that tools/peers.py has not would never be found missing."""
    known = {peer.name for peer in (*run.peers.PEERS, *run.peers.BENCH)}
    needed = {each.needs for group in catalogue.GROUPS for row in group.rows for each in row.contenders if each.needs}
    assert needed <= known


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["gearman-1x1"], {"gearman-1x1"}),
        (["durable"], {"durable-submit-1", "durable-submit-256"}),
        (["BEANSTALKD"], {"durable-submit-1", "durable-submit-256", "durable-latency-rate", *LATENCIES}),
        (["pynng", "gearmonkey-jobs"], {"memodb-1", "memodb-50", "gearmonkey-jobs"}),
        (["nothing like it"], set()),
    ],
)
def test_words_choose_rows(words: list[str], found: set[str]) -> None:
    assert run.chosen(words) == found


def test_without_words_it_is_all() -> None:
    assert run.chosen([]) == set(rows())


def test_the_list_says_what_and_on_what(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--list", "--only", "durable"]) == 0
    listed = capsys.readouterr().out
    assert "durable-submit-1: durable submits, one client that waits for each (jobs/s)" in listed
    assert "- beanstalkd: beanstalkd -b DIR -f0" in listed
    assert "gearman-1x1" not in listed


@pytest.mark.parametrize("words", [["--only", "nothing like it"], ["--rounds", "0"]])
def test_what_cannot_be_meant_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        run.main(words)
    assert refused.value.code == 2
    assert "error:" in capsys.readouterr().err


@pytest.mark.peer("gearmand", "redis-server")
def test_a_whole_run(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    options = ["--quick", "--only", "gearman-8x8", "--rounds", "2", "--json", str(file), "--svg", str(tmp_path)]
    command = [sys.executable, str(ROOT / "bench" / "run.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[8/8 round 2" in done.stderr
    assert "Geartrain, memory" in done.stdout
    assert "its figures mean nothing" in done.stdout
    found = json.loads(file.read_text())
    [row] = found["rows"]
    names = ["Geartrain, memory", "Geartrain, durable", "gearmand", "Redis lists"]
    assert [each["name"] for each in row["contenders"]] == names
    for each in row["contenders"]:
        assert [sample["value"] > 0 and sample["server_us"] >= 0 for sample in each["rounds"]] == [True, True]
    assert set(row["geartrain_is_times_better"]) == {"Geartrain, memory", "Geartrain, durable"}
    assert {"gearmand", "redis-server"} <= set(found["peers"])
    assert found["geartrain"]["core"] in ("compiled", "pure")
    assert {"cores", "kernel", "python", "filesystem", "processor"} <= set(found["machine"])
    ElementTree.fromstring((tmp_path / "bench-gearman.svg").read_text())


def test_a_run_of_our_doors(tmp_path: Path) -> None:
    """Each beside the Gearman door: loads that a change of a protocol would break."""
    file = tmp_path / "found.json"
    words = [word for group in ("periodic", "danga", "memodb-door") for word in ("--only", group)]
    assert run.main(["--quick", *words, "--json", str(file)]) == 0
    found = json.loads(file.read_text())["rows"]
    assert [row["row"] for row in found] == [
        "periodic-trips", "periodic-submit", "danga-trips", "danga-submit", "memodb-trips",
    ]  # fmt: skip
    for row in found:
        ours, gearman = row["contenders"]
        assert ours["median"] > 0
        assert gearman["name"].startswith("Gearman door")
        assert gearman["median"] > 0


@pytest.mark.peer("pynng")
def test_a_run_beside_pynng() -> None:
    assert run.main(["--quick", "--only", "memodb"]) == 0


@pytest.mark.peer("cc", "postgresql-18")
def test_a_run_of_servers_on_postgresql(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    assert run.main(["--quick", "--only", "cluster-run", "--only", "cluster-two", "--json", str(file)]) == 0
    found = {row["row"]: row for row in json.loads(file.read_text())["rows"]}
    assert found["cluster-run"]["geartrain_is_times_better"]["Geartrain, PostgreSQL"]["Geartrain, SQLite"] > 0
    assert found["cluster-two"]["geartrain_is_times_better"]["Geartrain, 2 servers"]["Geartrain, 1 server"] > 0
