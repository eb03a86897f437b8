"""Clients that other people's generators make of the OpenAPI document, and what linters say about it.

openapi-generator's own linter is a Java program that is not in a package index; two others take its place.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support import serving
from tests.support.http_peer import Peer
from tools import peers

PROGRAMS = Path(__file__).parent / "openapi"
PYTHON = peers.ENVIRONMENTS / "openapi-python-client" / "bin"
NODE = peers.ENVIRONMENTS / "openapi-typescript" / "node_modules"
SECONDS = 120
TYPESCRIPT = {
    "strict": True,
    "noUncheckedIndexedAccess": True,
    "exactOptionalPropertyTypes": True,
    "target": "es2022",
    "module": "commonjs",
    "moduleResolution": "node10",
    "types": ["node"],
    "skipLibCheck": True,  # those of others; geartrain.ts is checked
}
SEEN = {
    "priority": "high",
    "progress": [1, 2],
    "completed": 204,
    "state": "done",
    "batch": [1, 1, "bad-request"],
    "listed": 2,
    "unknown": "not-found",
}


def run(folder: Path, *command: str | Path, path: Path | None = None) -> str:
    environment = {**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
    if path is not None:
        environment["PATH"] = f"{path}:{environment['PATH']}"
    ran = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS
    )
    assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
    return ran.stdout


@pytest.fixture(scope="module")
def door() -> serving.ServerProcess:
    with serving.serve("--store", "memory", "--listen", f"http://{serving.HOST}:0") as running:
        yield running


@pytest.fixture
def document(door: serving.ServerProcess, tmp_path: Path) -> Path:
    """The document as the server sends it."""
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(Peer(door.url).get("/openapi.json")))
    return path


@pytest.mark.peer("openapi-python-client")
def test_python(door: serving.ServerProcess, document: Path, tmp_path: Path) -> None:
    package = tmp_path / "geartrain_client"
    generate = ("generate", "--path", document, "--output-path", package, "--meta", "none", "--fail-on-warning")
    run(tmp_path, PYTHON / "openapi-python-client", *generate, path=PYTHON)
    seen = json.loads(run(tmp_path, PYTHON / "python", PROGRAMS / "round_trip.py", tmp_path, door.url, "python"))
    assert seen == {**SEEN, "result": (b"HELLO\xff").hex()}


@pytest.mark.peer("openapi-typescript")
def test_typescript(door: serving.ServerProcess, document: Path, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(NODE)
    (tmp_path / "round_trip.ts").write_text((PROGRAMS / "round_trip.ts").read_text())
    settings = {"compilerOptions": TYPESCRIPT, "files": ["round_trip.ts", "geartrain.ts"]}
    (tmp_path / "tsconfig.json").write_text(json.dumps(settings))
    run(tmp_path, NODE / ".bin" / "openapi-typescript", document, "--output", tmp_path / "geartrain.ts")
    run(tmp_path, NODE / ".bin" / "tsc", "--project", ".")
    seen = json.loads(run(tmp_path, "node", "round_trip.js", door.url, "typescript"))
    assert seen == {**SEEN, "result": b"HELLO".hex()}


@pytest.mark.peer("openapi-python-client")
def test_the_validator_accepts_the_document(document: Path, tmp_path: Path) -> None:
    assert "OK" in run(tmp_path, PYTHON / "openapi-spec-validator", document)


@pytest.mark.peer("redocly")
def test_the_linter_has_nothing_to_say(document: Path, tmp_path: Path) -> None:
    """With all of its recommended rules, and a warning is as bad as an error."""
    linter = peers.ENVIRONMENTS / "redocly" / "node_modules" / ".bin" / "redocly"
    report = json.loads(run(tmp_path, linter, "lint", "--extends=recommended", "--format=json", document))
    assert report["totals"] == {"errors": 0, "warnings": 0, "ignored": 0}, report["problems"]
