"""`geartrain import gearmand redis://...`: the queue of a real gearmand in a real Redis, and keys of other versions."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.support import redis_server, serving
from tests.support.gearman_peer import Kind, Peer, assignment

# gearmand itself would read the second one's name from its key as `my`, and its payload to the zero.
SUBMITTED = (
    (Kind.SUBMIT_JOB_HIGH_BG, b"mail", b"order-17", b"urgent"),
    (Kind.SUBMIT_JOB_BG, b"my-report", b"d10a5342-e3df-11f1-b315-02fc00000001", b"a\0b\xff\r\n"),
)
PASSWORD = "open sesame"


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path / 'jobs.db'}"


@pytest.fixture
def keys() -> Iterator[redis.Redis]:
    """A Redis with a password, for the keys of its second database."""
    with redis_server.serve(options=("--requirepass", PASSWORD)) as running:
        client = redis.Redis(port=running.port, db=1, password=PASSWORD)
        yield client
        client.close()


def url_of(keys: redis.Redis) -> str:
    return f"redis://:open%20sesame@127.0.0.1:{keys.get_connection_kwargs()['port']}/1"


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return serving.run_command(folder, "import", "gearmand", *words)


@pytest.mark.peer("gearmand", "redis-server")
def test_jobs_of_a_gearmand_with_a_redis(tmp_path: Path, store: str) -> None:
    """Every byte of them, by a command that can be repeated; the Redis is as it was."""
    with redis_server.serve() as running, redis.Redis(port=running.port) as client:
        with serving.gearmand("-q", "redis", f"--redis-port={running.port}") as old, Peer(old.port) as submitter:
            for kind, *job in SUBMITTED:
                submitter.send(kind, *job).body(Kind.JOB_CREATED)
        before = {key: client.hgetall(key) for key in client.scan_iter()}
        url = f"redis://127.0.0.1:{running.port}"
        shown = json.loads(run(tmp_path, url, "--dry-run", "--json").stdout)
        assert shown["functions"] == [
            {"function": "mail", "high": 1, "normal": 0, "low": 0, "scheduled": 0},
            {"function": "my-report", "high": 0, "normal": 1, "low": 0, "scheduled": 0},
        ]
        first = run(tmp_path, url, "--store", store)
        assert first.stdout == f"imported 2 jobs from {url} into {tmp_path / 'jobs.db'}\n", first.stderr
        assert "2 already present by unique key" in run(tmp_path, url, "--store", store).stdout
        assert {key: client.hgetall(key) for key in client.scan_iter()} == before
    with serving.serve("--store", store, "--listen", "gearman://127.0.0.1:0") as new, Peer(new.port) as worker:
        worker.register(b"mail", b"my-report")
        jobs = [assignment(*worker.send(Kind.GRAB_JOB_UNIQ).packet()) for _ in SUBMITTED]
    assert [(job.function, job.unique, job.data) for job in jobs] == [tuple(job) for _, *job in SUBMITTED]


@pytest.mark.peer("redis-server")
def test_keys_of_older_and_newer_versions_and_of_another_prefix(keys: redis.Redis, tmp_path: Path, store: str) -> None:
    keys.set("other-mail-old", b"text")
    keys.hset("other-resize-x-1", mapping={"data": "", "priority": 2, "function": "resize-x", "unique": "1"})
    keys.hset("_gear_-else-1", mapping={"data": "", "priority": 1})
    shown = json.loads(run(tmp_path, url_of(keys), "--prefix", "other", "--dry-run", "--json").stdout)
    assert shown["functions"] == [
        {"function": "mail", "high": 0, "normal": 1, "low": 0, "scheduled": 0},
        {"function": "resize-x", "high": 0, "normal": 0, "low": 1, "scheduled": 0},
    ]
    password = tmp_path / "password"
    password.write_text(f"{PASSWORD}\n")
    password.chmod(0o600)
    url = url_of(keys).replace(":open%20sesame@", "")
    done = run(tmp_path, url, "--redis-password-file", str(password), "--store", store)
    assert done.stdout.startswith(f"imported 1 job from {url} into "), done.stderr


@pytest.mark.peer("redis-server")
def test_what_cannot_be_read_is_named_and_no_password_is_printed(keys: redis.Redis, tmp_path: Path, store: str) -> None:
    keys.rpush("_gear_-mail-1", "text")
    keys.hset("less-mail-1", mapping={"priority": 1})
    url = url_of(keys)
    port = str(keys.get_connection_kwargs()["port"])
    for source, said in {
        url: "the key _gear_-mail-1 is a list: no job of a gearmand that was stopped; --prefix chooses other keys",
        url.replace("/1", "/jobs"): f"redis://127.0.0.1:{port}/jobs: a database is a number",
        url.replace("open", "closed"): f"Redis at 127.0.0.1:{port}: WRONGPASS",
        f"redis://127.0.0.1:{port}": f"Redis at 127.0.0.1:{port}: NOAUTH",
        url.replace(port, str(next(filter(serving.is_free, serving.PORTS)))): "Connection refused",
    }.items():
        done = run(tmp_path, source, "--store", store)
        assert done.returncode == 1
        assert said in done.stderr
        assert "sesame" not in done.stdout + done.stderr
    assert "the key less-mail-1 has no data" in run(tmp_path, url, "--prefix", "less", "--store", store).stderr
    assert not (tmp_path / "jobs.db").exists()
