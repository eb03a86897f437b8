"""The password of a store is nowhere but in the environment or the settings file that has it."""

import contextlib
import json
import os
import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.cluster.conftest import GEARMAN, HTTP, POSTGRESQL
from tests.support import postgres, process, serving
from tests.support.gearman_peer import Kind, Peer
from tests.support.http_peer import Peer as HttpPeer

pytestmark = POSTGRESQL

MARK = "xyzzy"
PASSWORD = f"pa:ss/{MARK}@%"
ROLE = "keeper"
VARIABLE = "GEARTRAIN_STORE"
WAYS = ("environment", "settings file")


@pytest.fixture(scope="module")
def guarded() -> Iterator[postgres.Cluster]:
    """A PostgreSQL that asks for passwords on TCP."""
    cluster = postgres.new_cluster()
    rules = ("local all all trust", "host all postgres 127.0.0.1/32 trust", "host all all 127.0.0.1/32 scram-sha-256")
    (cluster.folder / "pg_hba.conf").write_text("\n".join(rules) + "\n")
    try:
        cluster.start()
        cluster.query(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")
        cluster.query(f"GRANT CREATE, TEMP ON DATABASE postgres TO {ROLE}")
        yield cluster
    finally:
        postgres.discard(cluster)


def store_url(cluster: postgres.Cluster, password: str = PASSWORD, database: str = "postgres") -> str:
    return f"postgresql://{ROLE}:{urllib.parse.quote(password, safe='')}@127.0.0.1:{cluster.port}/{database}"


@contextlib.contextmanager
def told(way: str, url: str, folder: Path) -> Iterator[tuple[dict[str, str], list[str]]]:
    """The environment and the flags by which a command learns of the store."""
    if way == "environment":
        yield {VARIABLE: url}, []
    else:
        file = folder / "geartrain.toml"
        file.write_text(f"store = {json.dumps(url)}\n")
        yield {}, ["--config", str(file)]
        file.unlink()


def run(folder: Path, environment: dict[str, str], *words: str, stdin: bytes = b"") -> tuple[int, bytes]:
    """The code of the command, and all that it writes."""
    done = subprocess.run(
        [str(serving.installed_command()), *words],
        cwd=folder,
        env={**process.clean_environment(folder), **environment},
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("way", WAYS)
def test_a_server_and_the_commands_beside_it(tmp_path: Path, guarded: postgres.Cluster, way: str) -> None:
    said: list[bytes] = []
    with told(way, store_url(guarded), tmp_path) as (environment, flags):
        files = {name: tmp_path / name for name in ("audit.log", "server.log")}
        logs = ("--log-file", str(files["server.log"]), "--log-level", "debug", "--audit-file", str(files["audit.log"]))
        own = (*flags, *logs, "--listen", GEARMAN, "--listen", HTTP, "--node-name", way.replace(" ", "-"))
        under = ["env", *(f"{name}={value}" for name, value in environment.items())]
        with serving.serve(*own, "--store-patience", "1s", under=under) as server:
            said.append(Path(f"/proc/{server.pid}/cmdline").read_bytes())
            http = HttpPeer(server.urls[1])
            with Peer(server.port) as client:
                client.submit(b"f", b"", b"payload", kind=Kind.SUBMIT_JOB_BG)
                said += [http.ask("GET", f"/api/v1/{path}").data for path in ("system", "cluster", "audit", "overview")]
                assert f"postgresql://{ROLE}@127.0.0.1:{guarded.port}/postgres".encode() in said[1]
                said += [http.ask("GET", path).data for path in ("/metrics", "/readyz")]
                for words in (["doctor"], ["doctor", "--json"], ["dump", "--records"], ["compact"], ["jobs"]):
                    code, output = run(tmp_path, environment, *words, *flags)
                    assert code == 0 or words == ["jobs"], output
                    said.append(output)
                guarded.stop()
                client.send(Kind.SUBMIT_JOB_BG, b"f", b"", b"payload")
                said.append(client.packet()[1])  # refused, with a reason
                guarded.start()
            server.stop()
            said += [server.stderr.encode(), "\n".join(server.lines).encode()]
        said += [file.read_bytes() for file in files.values()]
    assert b"commit failed, trying again" in files["server.log"].read_bytes()
    assert_silence(said)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrong", ["password", "database", "port", "url"])
def test_errors_of_a_failing_connection(tmp_path: Path, guarded: postgres.Cluster, way: str, wrong: str) -> None:
    url = {
        "password": store_url(guarded, f"wrong-{MARK}"),
        "database": store_url(guarded, database="nowhere"),
        "port": store_url(guarded).replace(f":{guarded.port}/", ":1/"),
        "url": f"postgresql://{ROLE}:{PASSWORD}@127.0.0.1/jobs",  # not escaped
    }[wrong]
    (tmp_path / "x.dump").write_text("")
    said = []
    with told(way, url, tmp_path) as (environment, flags):
        for words in (["serve", "--listen", GEARMAN], ["dump"], ["load", "x.dump"], ["doctor"]):
            code, output = run(tmp_path, environment, *words, *flags)
            assert code != 0
            assert b"Traceback" not in output
            said.append(output)
    assert all(b"postgresql://keeper@127.0.0.1" in output for output in said), said
    assert_silence(said)


@pytest.mark.parametrize("words", [["serve"], ["dump"], ["load", "x.dump"], ["doctor"], ["compact"], ["jobs"]])
@pytest.mark.parametrize("form", ["postgresql://ada:{}@db/jobs", "postgresql://ada@db/jobs?password={}"])
def test_a_password_on_the_command_line_is_refused(tmp_path: Path, words: list[str], form: str) -> None:
    code, output = run(tmp_path, {}, *words, "--store", form.format(MARK))
    assert code != 0
    assert b"a password on the command line can be seen by everybody on this machine" in b" ".join(output.split())
    assert b"GEARTRAIN_STORE" in output
    assert_silence([output])


def test_libpq_ways(tmp_path: Path, guarded: postgres.Cluster) -> None:
    """PGPASSFILE and PGPASSWORD, with the URL on the command line."""
    url = f"postgresql://{ROLE}@127.0.0.1:{guarded.port}/postgres"
    file = tmp_path / "pgpass"
    escaped = PASSWORD.replace(":", "\\:")
    file.write_text(f"127.0.0.1:{guarded.port}:postgres:{ROLE}:{escaped}\n")
    os.chmod(file, 0o600)
    said = []
    for environment in ({"PGPASSWORD": PASSWORD}, {"PGPASSFILE": str(file)}):
        code, output = run(tmp_path, environment, "doctor", "--store", url)
        assert b"ok       connection" in output
        said.append(output)
    code, output = run(tmp_path, {}, "doctor", "--store", url)
    assert code == 1
    assert b"PGPASSFILE" in output
    assert_silence(said)


def assert_silence(said: list[bytes]) -> None:
    assert [text for text in said if MARK.encode() in text] == []
