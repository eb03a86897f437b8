"""A worker that prints what it has popped and never finishes: `stuck_worker.py ours|plain URL FUNCTION LEASE`."""

import sys
import threading
from typing import Any

from geartrain import address
from geartrain.client import gearmonkey
from tests.acceptance.gearmonkey import redis_py_peer


def work(payload: bytes) -> bytes:
    print("popped", payload.decode(), flush=True)
    threading.Event().wait(60)
    return b"too late"


def main(kind: str, url: str, function: str, lease: str) -> None:
    worker: Any
    if kind == "ours":
        worker = gearmonkey.Worker(url, work, lease=float(lease))
    else:
        worker = redis_py_peer.Worker(address.parse(url).port, work)
    worker.accept(function)
    worker.run_one(0.01)
    print("ready", flush=True)
    for _ in range(30):
        worker.run_one(1)


main(*sys.argv[1:])
