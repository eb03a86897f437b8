"""The files in deploy/cluster: its scripts run with a real PostgreSQL, the rest is checked as far as it can be here."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from geartrain.server.config import settings
from tests.acceptance.cluster.conftest import POSTGRESQL
from tests.support import postgres, postgres_programs, process, scratch, serving
from tests.support.waiting import wait_for

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy" / "cluster"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
DROP_IN = FOLDER / "geartrain-cluster.conf"
SECONDS = 60


def command(cluster: postgres.Cluster, script: str, *arguments: str, **variables: str) -> list[str]:
    """A script, as the user that PostgreSQL runs as, with the programs of that PostgreSQL."""
    path = f"{cluster.programs.folder}:{os.environ['PATH']}"
    environment = [f"{name}={value}" for name, value in {"PATH": path, **variables}.items()]
    copy = cluster.folder.with_name(script)  # the checkout may be closed to that user
    shutil.copy(FOLDER / script, copy)
    return postgres_programs.unprivileged("env", "--ignore-environment", *environment, str(copy), *arguments)


@POSTGRESQL
def test_the_scripts_make_a_synchronous_pair() -> None:
    with postgres.running() as primary:
        own = {"PGHOST": serving.HOST, "PGPORT": str(primary.port)}
        admin = {**own, "PGUSER": postgres.USER}
        passwords = {"GEARTRAIN_PASSWORD": "it's one", "REPLICATION_PASSWORD": "two"}
        prepare = command(primary, "primary.sh", **admin, PGDATA=str(primary.folder), **passwords)
        subprocess.run(prepare, check=True, timeout=SECONDS, cwd=primary.folder)
        primary.query("SELECT pg_reload_conf()")
        with psycopg.connect(primary.url("jobs").replace(f"{postgres.USER}@", "geartrain@")) as connection:
            assert connection.execute("SELECT current_user").fetchone() == ("geartrain",)
        folder = postgres.new_folder("standby")
        port = next(port for port in serving.PORTS if serving.is_free(port))
        options = ("-c", f"port={port}", "-c", f"unix_socket_directories={folder}")
        follow = command(primary, "standby.sh", *options, **own, PGPASSWORD="two", PGDATA=str(folder))
        standby = process.Process(follow, primary.folder)
        try:
            synchronous = command(primary, "synchronous.sh", **admin)
            subprocess.run(synchronous, check=True, timeout=SECONDS, cwd=primary.folder)
            state = "SELECT usename, sync_state FROM pg_stat_replication"
            wait_for(lambda: primary.query(state) == [("replicator", "sync")], "the standby is synchronous")
        finally:
            scratch.clear(folder)
            standby.kill()


@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.sh")), ids=lambda path: path.name)
def test_scripts_are_valid_and_can_be_run(script: Path) -> None:
    assert os.access(script, os.X_OK)
    assert subprocess.run(["sh", "-n", script], timeout=SECONDS).returncode == 0


def test_the_compose_file_names_what_there_is() -> None:
    services = COMPOSE["services"]
    mounts = [volume for service in services.values() for volume in service.get("volumes", ())]
    for mount in mounts:
        source = mount.partition(":")[0]
        assert (FOLDER / source).exists() if source.startswith("./") else source in COMPOSE["volumes"], mount
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services), name
    ports = [port.rpartition(":")[0] for service in services.values() for port in service.get("ports", ())]
    assert len(ports) == len(set(ports))


def known_settings() -> set[str]:
    return {f"{settings.PREFIX}{name.upper()}" for name in settings.Settings.__dataclass_fields__}


def test_the_compose_file_sets_what_the_server_knows() -> None:
    for name in ("jobs1", "jobs2", "jobs3"):
        service = COMPOSE["services"][name]
        assert service["hostname"] == name
        ours = {variable for variable in service["environment"] if variable.startswith(settings.PREFIX)}
        assert "GEARTRAIN_STORE" in ours
        assert ours <= known_settings()


@pytest.mark.peer("systemd-analyze")
def test_systemd_accepts_the_drop_in(tmp_path: Path) -> None:
    unit = tmp_path / "geartrain.service"
    unit.write_text(
        (ROOT / "deploy" / unit.name).read_text().replace("/usr/bin/geartrain", str(serving.installed_command()))
    )
    folder = tmp_path / "geartrain.service.d"
    folder.mkdir()
    shutil.copy(DROP_IN, folder / "cluster.conf")
    environment = {**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"}
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_drop_in_sets_what_the_server_knows() -> None:
    named = set(re.findall(r"GEARTRAIN_[A-Z_]+", DROP_IN.read_text()))
    assert {"GEARTRAIN_STORE", "GEARTRAIN_NODE_NAME"} <= named <= known_settings()
