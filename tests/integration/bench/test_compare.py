"""The comparison in pairs: what is computed, what is refused, and a run with few jobs."""

import argparse
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bench import compare, contenders, gearman_load, queue_runs
from bench.figures import Sample
from tests.support import serving
from tests.support.waiting import PATIENCE, wait_for

ROOT = Path(__file__).parents[3]
TWO_CORES = pytest.mark.skipif(not contenders.PINNED, reason="the servers and the load need a core each")


def pairs(*rounds: tuple[tuple[float, float], tuple[float, float]]) -> compare.Pairs:
    """(jobs per second, microseconds per job) of the measured server and of its rival, round by round."""
    results = compare.Pairs()
    for measured, rival in rounds:
        results.measured.append(Sample(*measured, load_busy=0.25))
        results.rival.append(Sample(*rival, load_busy=0.5))
    return results


def test_a_ratio_is_the_median_of_ratios_within_rounds() -> None:
    """In the second round the machine is ten times slower for both; the ratio of the medians would be 3."""
    results = pairs(((300, 10), (100, 40)), ((20, 100), (10, 200)), ((500, 5), (500, 5)))
    [row] = compare.rows({"some work": results})
    assert (row["work"], row["measured_per_s"], row["rival_per_s"]) == ("some work", 300, 100)
    assert row["rate_ratio"] == 2
    assert (row["rate_ratio_lowest"], row["rate_ratio_highest"]) == (1, 3)


def test_less_processor_time_is_a_ratio_above_one() -> None:
    [row] = compare.rows({"some work": pairs(((1, 10), (1, 40)), ((1, 100), (1, 200)), ((1, 5), (1, 5)))})
    assert row["cpu_ratio"] == 2


def test_a_server_that_used_no_measurable_time_has_no_processor_ratio() -> None:
    [row] = compare.rows({"some work": pairs(((1, 0), (1, 40)))})
    assert row["cpu_ratio"] is None
    assert "-" in compare.table([row], "gearmand")[1].split()


def test_every_round_is_in_the_result_for_programs() -> None:
    [row] = compare.rows({"some work": pairs(((300, 10), (100, 40)), ((20, 100), (10, 200)))})
    assert row["rounds"][1] == {
        "rival": {"per_s": 10, "server_us": 200, "load_busy": 0.5},
        "measured": {"per_s": 20, "server_us": 100, "load_busy": 0.25},
    }


def test_the_table_names_the_rival() -> None:
    head, line, *legend = compare.table(compare.rows({"some work": pairs(((3000, 10), (1500, 40)))}), "gearmand")
    assert head.split() == [
        "work",
        "gearmand/s",
        "measured/s",
        "rate",
        "ratio",
        "range",
        "cpu",
        "ratio",
        "load",
        "busy",
    ]
    assert line.split() == ["some", "work", "1,500", "3,000", "2.00", "2.00-2.00", "4.00", "25%"]
    assert "measured over gearmand" in legend[0]


def options(*words: str) -> argparse.Namespace:
    return compare.arguments([*words, "--", "geartrain", "serve", "--listen", "gearman://127.0.0.1:{port}"])


def test_options_of_the_command_are_not_options_of_the_comparison() -> None:
    given = compare.arguments(["--rounds", "5", "--", "serve", "--rounds", "{port}", "--json"])
    assert given.command == ["serve", "--rounds", "{port}", "--json"]
    assert (given.rounds, given.json, given.rival) == (5, False, None)


def test_a_rival_is_split_like_a_shell_does() -> None:
    assert options("--rival", "env 'A=b c' serve {port}").rival == ["env", "A=b c", "serve", "{port}"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--rounds", "0", "--", "serve", "{port}"], "--rounds: at least 1"),
        (["--payload", "-1", "--", "serve", "{port}"], "--payload: at least 0"),
        (["--cores", "0", "--", "serve", "{port}"], "--cores: at least 1"),
        (["--cores", "1", "--unpinned", "--", "serve", "{port}"], "not allowed with argument"),
        (["--", "serve"], "COMMAND: {port} is not in it"),
        (["--rival", "serve", "--", "serve", "{port}"], "--rival: {port} is not in it"),
        ([], "required: COMMAND"),
    ],
)
def test_wrong_arguments_are_refused(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        compare.arguments(words)
    assert refused.value.code == 2
    assert reason in capsys.readouterr().err


def test_it_needs_no_library() -> None:
    """It runs in the environment that `make compile` makes, and in that of any other build."""
    command = [sys.executable, "-I", "-S", str(ROOT / "bench" / "compare.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_one_core_is_not_enough(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(contenders, "PINNED", False)
    assert compare.main(["--", sys.executable, "{port}"]) == 1
    assert "two cores are needed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rival", "missing"),
    [
        ([], "gearmand is not installed (apt-get install "),
        (["--rival", "x {port}"], "cc is not installed (apt-get install "),
    ],
)
def test_a_missing_program_is_named(rival: list[str], missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contenders, "PINNED", True)
    monkeypatch.setenv("PATH", "/nowhere")
    assert missing in compare.obstacle(options(*rival))


@pytest.mark.peer("cc")
def test_a_command_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contenders, "PINNED", True)
    given = compare.arguments(["--rival", "no-such-server {port}", "--", sys.executable, "{port}"])
    assert compare.obstacle(given) == "no-such-server is not a command"


def test_gearmand_gets_fewer_durable_jobs_and_another_rival_as_many() -> None:
    measured, gearmand = compare.servers(options("--durable"))
    assert [work.title for work in gearmand.works] == [work.title for work in measured.works]
    assert all(less.jobs < more.jobs for less, more in zip(gearmand.works, measured.works, strict=True))
    measured, rival = compare.servers(options("--durable", "--rival", "serve {port}"))
    assert rival.works == measured.works == compare.DURABLE


def test_a_relative_command_is_located_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "server").touch(0o755)
    monkeypatch.chdir(tmp_path)
    assert compare.located(["./server", "{port}"]) == [str(tmp_path / "server"), "{port}"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gearman_load.compile_into(tmp_path_factory.mktemp("load"))


@pytest.mark.peer("cc")
@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        ("4730", 2, "usage: gearman_load PORT MODE"),
        ("4730 sideways 1 1 1 1 1", 2, 'MODE is foreground, background, drain or run, not "sideways"'),
        ("4730 foreground 1 1 1 none 1", 2, 'WORKERS must be a number from 1 to 10000, not "none"'),
        ("1 background 1 1 1 0 1", 1, "cannot connect to 127.0.0.1:1: Connection refused"),
    ],
)
def test_the_load_says_what_is_wrong(program: Path, words: str, code: int, reason: str) -> None:
    done = subprocess.run([str(program), *words.split()], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, reason in done.stderr) == (code, True), done.stderr


@pytest.mark.peer("cc")
def test_a_payload_larger_than_every_buffer_comes_back(program: Path, server: serving.ServerProcess) -> None:
    place = contenders.Place((server.url,), server.pid)
    work = gearman_load.Work("large", "foreground", 8, clients=2, window=2, workers=2)
    assert gearman_load.run(program, place, work, 3_000_000).value > 0


@pytest.mark.peer("cc")
def test_jobs_that_are_submitted_and_run_at_once_leave_nothing_behind(
    program: Path, server: serving.ServerProcess
) -> None:
    place = contenders.Place((server.url,), server.pid)
    work = gearman_load.Work("both", "run", 500, clients=2, window=10, workers=3)
    assert gearman_load.run(program, place, work, 64).value > 0
    with socket.create_connection((serving.HOST, server.port), PATIENCE) as admin:
        wait_for(lambda: queue_runs.jobs_in(admin) == 0, "the last results have arrived")


def test_more_cores_than_there_are_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.main(["--cores", "100000", "--", sys.executable, "{port}"]) == 1
    expected = "--cores 100000: this process may use only" if contenders.PINNED else "two cores are needed"
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(("count", "servers", "load"), [(1, {1}, {2, 4}), (2, {1, 2}, {4}), (3, {1, 2, 4}, {1, 2, 4})])
def test_the_load_has_the_cores_that_servers_leave(
    count: int, servers: set[int], load: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contenders, "CORES", [1, 2, 4])
    monkeypatch.setattr(contenders, "SERVER_CORE", {1})
    monkeypatch.setattr(contenders, "LOAD_CORE", {2})
    contenders.serve_on(count)
    assert (servers, load) == (contenders.SERVER_CORE, contenders.LOAD_CORE)


@TWO_CORES
@pytest.mark.peer("cc", "gearmand")
def test_beside_gearmand_with_all_cores_and_its_default_threads() -> None:
    serve = [str(serving.installed_command()), "serve", "--store", "memory", "--listen", "gearman://127.0.0.1:{port}"]
    cores = str(len(contenders.CORES))
    command = [sys.executable, str(ROOT / "bench" / "compare.py"), "--quick", "--rounds", "1", "--cores", cores]
    done = subprocess.run([*command, "--", *serve], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"A server could use {cores} cores; gearmand, where it is one, had its default threads." in done.stdout


@TWO_CORES
@pytest.mark.peer("cc", "gearmand")
def test_a_whole_run_beside_gearmand() -> None:
    serve = [str(serving.installed_command()), "serve", "--store", "memory", "--listen", "gearman://127.0.0.1:{port}"]
    command = [sys.executable, str(ROOT / "bench" / "compare.py"), "--quick", "--rounds", "2", "--json", "--", *serve]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[24/24 round 2, drain the background queue, measured]" in done.stderr
    results = json.loads(done.stdout)
    assert results["rival"] == "gearmand"
    assert [row["work"] for row in results["rows"]] == [work.title for work in compare.IN_MEMORY]
    assert all(row["rate_ratio"] > 0 and len(row["rounds"]) == 2 for row in results["rows"])


@TWO_CORES
@pytest.mark.peer("cc")
def test_two_servers_of_ours_on_disk(capsys: pytest.CaptureFixture[str]) -> None:
    serve = (
        f"{serving.installed_command()} serve --store sqlite:///{{dir}}/jobs.db --listen gearman://127.0.0.1:{{port}}"
    )
    assert compare.main(["--quick", "--durable", "--rounds", "1", "--rival", serve, "--", *serve.split()]) == 0
    table = capsys.readouterr().out
    assert "rival/s" in table
    assert "durable submit, 4 clients x 64 in flight" in table
    assert "the figures mean nothing" in table
