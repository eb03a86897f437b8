"""kill -9 around the firing of a schedule: each run is there exactly once."""

import base64
import json
import random
import threading
import time
from pathlib import Path

import pytest

from geartrain.store.contract import Batch
from geartrain.store.sqlite import SqliteStore
from tests.crash.conftest import Start
from tests.support import serving
from tests.support.gearman_peer import Peer
from tests.support.peer import until

ROUNDS = 6
FUNCTION = b"daily"
DAY = 86_400.0
# Seconds after the start of the process. A run that is due is submitted when the doors open, somewhere in between.
EARLIEST, LATEST = 0.15, 0.7


def due(path: Path, missed: str) -> None:
    """A file with a schedule whose time came ten times while no server ran."""
    function = base64.b64encode(FUNCTION).decode()
    start = time.time() - 10.5 * DAY
    cron = {
        "name": "daily",
        "expression": "@every 1d",
        "function": function,
        "missed": missed,
        "start": start,
        "next_at": start + DAY,
    }
    batch = Batch()
    batch.saved_values = {"cron.0": json.dumps(cron).encode()}
    store = SqliteStore(path)
    next_id = store.open()
    store.commit(batch)
    store.close(next_id)


@pytest.mark.parametrize(("missed", "runs"), [("once", 1), ("all", 10)])
def test_a_run_is_neither_lost_nor_doubled(
    tmp_path: Path, start: Start, path: Path, seed: int, missed: str, runs: int
) -> None:
    chance = random.Random(seed)
    due(path, missed)
    command = [
        str(serving.installed_command()),
        "serve",
        "--store",
        f"sqlite://{path}",
        "--listen=gearman://127.0.0.1:0",
    ]
    for _ in range(ROUNDS):
        server = serving.ServerProcess(command, tmp_path)
        threading.Event().wait(chance.uniform(EARLIEST, LATEST))
        server.kill()
    with start() as server, Peer(server.port) as peer:
        # If every server was killed too early, it is this one that makes up for the run, just after its doors open.
        until(lambda: any(int(columns[1]) >= runs for columns in peer.listing("status")), "the runs")
        jobs = [columns for columns in peer.listing("status") if columns[0] == FUNCTION]
        assert jobs == [[FUNCTION, b"%d" % runs, b"0", b"0"]]
