"""Dumps of a PostgreSQL store, and dumps that are loaded into one, while servers use it or not."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cluster.conftest import POSTGRESQL, Pair, member, members
from tests.acceptance.test_dump import BYTES, command, entries, fill
from tests.support import postgres, postgres_programs, serving
from tests.support.gearman_peer import Kind, Peer, worker
from tests.support.http_peer import Peer as HttpPeer
from tests.support.peer import until
from tests.support.postgres_fixtures import Clusters
from tests.support.waiting import wait_for

pytestmark = POSTGRESQL

PREFIX = ("--handle-prefix", "H:dump")
VERSIONS = [pytest.param(version, marks=pytest.mark.peer(peer)) for version, peer in postgres_programs.PEERS.items()]
LOADED = ("jobs", "records", "values")


def http(server: serving.ServerProcess) -> HttpPeer:
    return HttpPeer(server.urls[1])


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dump of a SQLite store with jobs in every state, schedules, and everything that can be set."""
    folder = tmp_path_factory.mktemp("filled")
    listen = ("--listen", f"gearman://{serving.HOST}:0", "--listen", f"http://{serving.HOST}:0", *PREFIX)
    with serving.serve("--store", f"sqlite://{folder}/jobs.db", "--max-attempts", "2", *listen) as server:
        fill(server, http(server))
        until(lambda: http(server).get("/overview")["dead"] == 3, "three jobs are dead")
    command(folder, "dump", "filled.dump", "--store", f"sqlite://{folder}/jobs.db", "--records")
    return folder / "filled.dump"


def load(folder: Path, url: str, file: Path | str, *flags: str) -> Any:
    return json.loads(command(folder, "load", str(file), "--store", url, "--json", *flags))


def dump(folder: Path, url: str, name: str) -> dict[tuple[str, Any], Any]:
    command(folder, "dump", name, "--store", url, "--records")
    return entries(folder / name)


def at_home(pair: Pair) -> int:
    """The jobs that the servers have."""
    overviews = [http(server).get("/overview?local=true") for server in pair]
    return sum(overview[state] for overview in overviews for state in ("queued", "running", "scheduled", "dead"))


@pytest.mark.parametrize("version", VERSIONS)
def test_from_a_file_to_postgresql_to_memory_and_back(
    tmp_path: Path, filled: Path, clusters: Clusters, version: int
) -> None:
    """Every field of every job, record and value is the same at every station."""
    cluster = clusters(version)
    expected = entries(filled)
    end = expected["end", None]
    with postgres.fresh_schema(cluster) as first, postgres.fresh_schema(cluster) as second:
        report = load(tmp_path, cluster.url(schema=first), filled)
        assert [report[name] for name in LOADED] == [end[name] for name in LOADED]
        assert [report[name] for name in ("present", "clashing", "replaced")] == [0, 0, 0]
        assert dump(tmp_path, cluster.url(schema=first), "postgresql.dump") == expected
        load(tmp_path, cluster.url(schema=second), "postgresql.dump")
        assert dump(tmp_path, cluster.url(schema=second), "other.dump") == expected
    load(tmp_path, f"sqlite://{tmp_path}/other.db", "other.dump")
    assert dump(tmp_path, f"sqlite://{tmp_path}/other.db", "file.dump") == expected
    with serving.serve("--store", "memory", "--listen", f"gearman://{serving.HOST}:0", *PREFIX) as server:
        command(tmp_path, "load", "other.dump", "--server", server.url)
        command(tmp_path, "dump", "memory.dump", "--server", server.url, "--records")
    assert entries(tmp_path / "memory.dump") == expected


def test_servers_that_run_take_over_what_is_loaded(tmp_path: Path, filled: Path, schema_url: str) -> None:
    with members(schema_url) as pair:
        report = load(tmp_path, schema_url, filled)
        wait_for(lambda: at_home(pair) == report["jobs"], "the jobs are taken over")
        for peer in map(http, pair):
            wait_for(lambda peer=peer: len(peer.get("/schedules")) == 2, "schedules")  # type: ignore[misc]
            wait_for(lambda peer=peer: peer.get("/functions/paused")["paused"], "pauses")  # type: ignore[misc]
        (owner,) = [server for server in pair if http(server).get("/overview?local=true")["queued"]]
        with worker(owner.port, b"paused") as taker:
            assert taker.take() is None, "the function is paused, as it was"
            http(owner).call("POST", "/functions/paused/resume")
            jobs = [taker.grab() for _ in range(4)]
            assert [job.data for job in jobs] == [b"mortal", *(BYTES + b"%d" % number for number in range(3))]
            for job in jobs:
                taker.send(Kind.WORK_COMPLETE, job.handle, b"").silence()
        again = load(tmp_path, schema_url, filled)
        assert at_home(pair) == report["jobs"] - 4
    assert [again[name] for name in ("jobs", "records", "clashing")] == [0, 0, 0]
    assert again["present"] + again["values"] == sum(report[name] for name in LOADED)


def test_servers_that_start_later_take_it_over(tmp_path: Path, filled: Path, schema_url: str) -> None:
    report = load(tmp_path, schema_url, filled)
    with member(schema_url, "one") as server, Peer(server.port) as client:
        wait_for(lambda: at_home((server, server)) == 2 * report["jobs"], "the jobs are taken over")
        held = client.submit(b"paused", b"key", b"", kind=Kind.SUBMIT_JOB_BG)
        assert held.decode() in {line.get("handle") for line in entries(filled).values()}, "its key is in use"


def test_a_dump_of_a_cluster_goes_into_another_one(tmp_path: Path, cluster: postgres.Cluster, schema_url: str) -> None:
    """Both give their servers the same numbers: what would belong to a server that runs is refused."""
    with postgres.fresh_schema(cluster) as other, member(schema_url, "one") as server, Peer(server.port) as client:
        handles = [client.submit(b"f", b"", b"%d" % number, kind=Kind.SUBMIT_JOB_BG) for number in range(3)]
        command(tmp_path, "dump", "one.dump", "--store", schema_url)
        url = cluster.url(schema=other)
        with member(url, "other") as running:
            done = serving.run_command(tmp_path, "load", "one.dump", "--store", url)
            assert "0 jobs and 0 records" in done.stdout
            assert done.stderr.count("its id belongs to server other, which is running") == 3
            running.stop()
        assert load(tmp_path, url, "one.dump")["jobs"] == 3
        with member(url, "other") as later, Peer(later.port) as another:
            assert another.submit(b"f", b"", b"", kind=Kind.SUBMIT_JOB_BG) not in handles
            wait_for(
                lambda: http(later).get("/overview?local=true")["queued"] == 4, "its own and three that were loaded"
            )
            with worker(later.port, b"f") as taker:
                assert {taker.grab().handle for _ in range(4)} >= set(handles)


def test_servers_of_a_new_cluster_use_no_id_of_the_dump(
    tmp_path: Path, cluster: postgres.Cluster, schema_url: str
) -> None:
    with member(schema_url, "one") as server, Peer(server.port) as client:
        handles = {client.submit(b"f", b"", b"%d" % number, kind=Kind.SUBMIT_JOB_BG) for number in range(3)}
        command(tmp_path, "dump", "one.dump", "--store", schema_url)
    with postgres.fresh_schema(cluster) as other:
        load(tmp_path, cluster.url(schema=other), "one.dump")
        with member(cluster.url(schema=other), "first") as server, Peer(server.port) as client:
            wait_for(lambda: http(server).get("/overview?local=true")["queued"] == 3, "the jobs are taken over")
            added = {client.submit(b"f", b"", b"new", kind=Kind.SUBMIT_JOB_BG) for _ in range(3)}
            assert not added & handles
            with worker(server.port, b"f") as taker:
                assert {taker.grab().handle for _ in range(6)} == handles | added


def test_replacing_needs_stopped_servers(tmp_path: Path, filled: Path, schema_url: str) -> None:
    expected = entries(filled)
    with member(schema_url, "one") as server:
        mine = http(server).submit("paused", "mine", unique="key")["handle"]
        http(server).call("PUT", "/schedules/nightly", {"expression": "0 4 * * *", "function": "own"})
        refused = serving.run_command(tmp_path, "load", str(filled), "--store", schema_url, "--replace")
        assert refused.returncode == 1
        assert "--replace is not possible while servers use" in refused.stderr
        assert "in memory: one. Stop them" in refused.stderr
        kept = serving.run_command(tmp_path, "load", str(filled), "--store", schema_url)
        assert f"{mine} has the same unique key" in kept.stderr
        assert http(server).get("/schedules/nightly")["expression"] == "0 4 * * *"
        server.stop()
    report = load(tmp_path, schema_url, filled, "--replace")
    end = expected["end", None]
    assert [report[name] for name in ("jobs", "records", "clashing")] == [end["jobs"], end["records"], 0]
    after = dump(tmp_path, schema_url, "after.dump")
    assert {key: line for key, line in after.items() if key[0] in ("job", "record")} == {
        key: line for key, line in expected.items() if key[0] in ("job", "record")
    }
    schedules = [json.loads(line["value"]) for key, line in after.items() if str(key[1]).startswith("cron.")]
    assert [each["expression"] for each in schedules if each["name"] == "nightly"] == ["0 3 * * *"]


@pytest.mark.parametrize("place", [3, -2])
def test_of_a_broken_dump_nothing_is_loaded(tmp_path: Path, filled: Path, schema_url: str, place: int) -> None:
    lines = filled.read_text().splitlines(keepends=True)
    lines[place] = lines[place].replace('"geartrain":', '"geartrian":')
    (tmp_path / "broken.dump").write_text("".join(lines))
    done = serving.run_command(tmp_path, "load", "broken.dump", "--store", schema_url)
    assert done.returncode == 1
    assert f"line {place % len(lines) + 1}: " in done.stderr
    assert done.stderr.endswith("; nothing was loaded\n")
    assert dump(tmp_path, schema_url, "empty.dump").keys() == {("end", None)}


def test_a_schema_without_a_store(tmp_path: Path, schema_url: str) -> None:
    done = serving.run_command(tmp_path, "dump", "--store", schema_url)
    assert done.returncode == 1
    assert "has no store in schema" in done.stderr


def test_compacting_is_left_to_postgresql(tmp_path: Path, schema_url: str) -> None:
    assert "nothing to do; PostgreSQL removes dead rows" in command(tmp_path, "compact", "--store", schema_url)
    answer = json.loads(command(tmp_path, "compact", "--store", schema_url, "--json"))
    assert (answer["before"], answer["after"]) == (None, None)


def test_the_history_of_jobs_needs_a_file(tmp_path: Path, schema_url: str) -> None:
    done = serving.run_command(tmp_path, "jobs", "--store", schema_url)
    assert done.returncode == 1
    assert "has no file" in done.stderr
